//! Second moments of the server's and the clients' variables, by types of clients.
//! Clients of one type are exchangeable, so the size does not depend on their number.

use crate::linalg::Matrix;

/// E of the products of s (m numbers, the first of them 1) and of each client's
/// v. Symmetric to the last bit after every round.
#[derive(Clone, Debug)]
pub struct MomentState {
    /// The number of clients of each type.
    pub counts: Vec<f64>,
    /// N π of a client of each type; 1 if shares are equal.
    pub weights: Vec<f64>,
    /// E s sᵀ, m × m.
    pub s: Matrix,
    /// E s vᵀ for a client of each type, m × n.
    pub x: Vec<Matrix>,
    /// E v vᵀ of one client, n × n.
    pub p: Vec<Matrix>,
    /// E v v'ᵀ of two different clients, type by type, n × n.
    pub q: Vec<Matrix>,
}

/// The update of one stage of a round for the members of a type: with e a random
/// vector of mean 0 given everything else, independent between clients,
/// s ← A s + Σ over members of (`s_s` s + `s_v` v + `s_e` e), and of a member
/// v ← v + `v_s` s + `v_v` v + `v_e` e.
#[derive(Clone, Debug)]
pub struct MemberUpdate {
    /// m × m.
    pub s_s: Matrix,
    /// m × n.
    pub s_v: Matrix,
    /// m × k.
    pub s_e: Matrix,
    /// n × m.
    pub v_s: Matrix,
    /// n × n.
    pub v_v: Matrix,
    /// n × k.
    pub v_e: Matrix,
}

/// A stage of a round: the chance of taking part, and the update.
#[derive(Clone, Debug)]
pub struct Stage {
    /// A, m × m.
    pub keep: Matrix,
    /// The probability that a given client takes part, and that two given clients do.
    pub inclusion: (f64, f64),
    /// One per type.
    pub members: Vec<MemberUpdate>,
    /// For a member of each type, the sum of the `s_s` of all other clients.
    others: Vec<Matrix>,
}

impl Stage {
    /// A stage with `counts` clients of each type.
    pub fn new(
        keep: Matrix,
        inclusion: (f64, f64),
        members: Vec<MemberUpdate>,
        counts: &[f64],
    ) -> Self {
        let mut all = Matrix::zeros(keep.rows(), keep.cols());
        members.iter().zip(counts).for_each(|(member, count)| all.add(*count, &member.s_s));
        let others = members.iter().map(|member| all.plus(-1.0, &member.s_s)).collect();
        Self { keep, inclusion, members, others }
    }
}

/// a b cᵀ.
pub fn sandwich(a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    a.times(b).times_transposed(c)
}

/// The same for sparse a and c, such as maps that pick entries.
pub fn sparse_sandwich(a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    // The nonzero entries of c, and the end of each of its rows.
    let (mut entries, mut ends) = (Vec::new(), Vec::with_capacity(c.rows()));
    for j in 0..c.rows() {
        entries.extend(c.row(j).iter().copied().enumerate().filter(|(_, x)| *x != 0.0));
        ends.push(entries.len());
    }
    let mut line = vec![0.0; b.cols()];
    let mut out = Vec::with_capacity(a.rows() * c.rows());
    for i in 0..a.rows() {
        line.fill(0.0);
        for (k, x) in a.row(i).iter().enumerate().filter(|(_, x)| **x != 0.0) {
            line.iter_mut().zip(b.row(k)).for_each(|(sum, y)| *sum += x * y);
        }
        let mut begin = 0;
        for end in &ends {
            let row = &entries[begin..*end];
            out.push(row.iter().fold(0.0, |sum, (k, x)| sum + line[*k] * x));
            begin = *end;
        }
    }
    Matrix::from_entries(a.rows(), c.rows(), out)
}

/// Products that several parts of a stage's update share.
#[derive(Default)]
struct SharedProducts {
    /// E (s_s s + s_v v) sᵀ of a member, m × m.
    all: Vec<Matrix>,
    /// E (s_v v) sᵀ of all clients but one, m × m.
    rest: Vec<Matrix>,
    /// The others' `s_s` times E s vᵀ, m × n.
    by_others: Vec<Matrix>,
    /// [`MomentState::product_of_others`].
    of_others: Vec<Matrix>,
}

impl MomentState {
    /// The state without randomness, from s and each type's v.
    pub fn fixed((counts, weights): (Vec<f64>, Vec<f64>), s: &[f64], v: &[Vec<f64>]) -> Self {
        let pairs = v.iter().flat_map(|a| v.iter().map(move |b| (a, b)));
        Self {
            s: Matrix::outer(s, s),
            x: v.iter().map(|v| Matrix::outer(s, v)).collect(),
            p: v.iter().map(|v| Matrix::outer(v, v)).collect(),
            q: if v.iter().all(Vec::is_empty) {
                Vec::new()
            } else {
                pairs.map(|(a, b)| Matrix::outer(a, b)).collect()
            },
            counts,
            weights,
        }
    }

    /// Number of types.
    pub fn types(&self) -> usize {
        self.counts.len()
    }

    /// Length of v.
    pub fn client_length(&self) -> usize {
        self.p.first().map_or(0, Matrix::rows)
    }

    /// E v v'ᵀ of a client of type g and another of type h.
    pub fn pair(&self, g: usize, h: usize) -> &Matrix {
        &self.q[g * self.types() + h]
    }

    /// The number of clients of type h other than a given one of type g.
    pub fn others(&self, g: usize, h: usize) -> f64 {
        self.counts[h] - f64::from(u8::from(g == h))
    }

    /// Σ w over the clients of a type, whose sum over types is N.
    pub fn weight(&self, g: usize) -> f64 {
        self.counts[g] * self.weights[g]
    }

    /// The mean over clients, by their shares, of `own(g)` for one client of each type g itself and `pair(g, h)` for
    /// each other client, of type h.
    pub fn with_mean(
        &self,
        own: impl Fn(usize) -> Matrix,
        pair: impl Fn(usize, usize) -> Matrix,
    ) -> Vec<Matrix> {
        let n = self.counts.iter().sum::<f64>();
        let mean = |g: usize| {
            let mut sum = own(g).scaled(self.weights[g]);
            for h in (0..self.types()).filter(|&h| self.others(g, h) > 0.0) {
                sum.add(self.others(g, h) * self.weights[h], &pair(g, h));
            }
            sum.scaled(1.0 / n)
        };
        (0..self.types()).map(mean).collect()
    }

    /// Σ over types, each weighted by its number of clients.
    fn sum(&self, rows: usize, cols: usize, value: impl Fn(usize) -> Matrix) -> Matrix {
        let mut out = Matrix::zeros(rows, cols);
        (0..self.types()).for_each(|g| out.add(self.counts[g], &value(g)));
        out
    }

    /// The shared products of a stage, from the state before it.
    fn products(&self, stage: &Stage) -> SharedProducts {
        let (m, n, types) = (self.s.rows(), self.client_length(), self.types());
        let members = &stage.members;
        let mut all: Vec<Matrix> = members.iter().map(|member| member.s_s.times(&self.s)).collect();
        if n == 0 {
            return SharedProducts { all, ..SharedProducts::default() };
        }
        let own: Vec<Matrix> =
            (0..types).map(|g| members[g].s_v.times_transposed(&self.x[g])).collect();
        all.iter_mut().zip(&own).for_each(|(all, own)| all.add(1.0, own));
        let sum = self.sum(m, m, |g| own[g].clone());
        SharedProducts {
            all,
            rest: own.iter().map(|own| sum.plus(-1.0, own)).collect(),
            by_others: (0..types).map(|g| stage.others[g].times(&self.x[g])).collect(),
            of_others: (0..types).map(|g| self.product_of_others(stage, g)).collect(),
        }
    }

    /// Σ over the clients other than a given one of type g of `s_v` E v v'ᵀ, m × n.
    fn product_of_others(&self, stage: &Stage, g: usize) -> Matrix {
        let mut out = Matrix::zeros(self.s.rows(), self.client_length());
        for h in 0..self.types() {
            let count = self.others(g, h);
            if count > 0.0 {
                out.add(count, &stage.members[h].s_v.times(self.pair(h, g)));
            }
        }
        out
    }

    /// The state after a stage in which the vector e of type g has the
    /// covariance `noise(g)`, k × k.
    pub fn after(&self, stage: &Stage, noise: &[Matrix]) -> Self {
        let products = self.products(stage);
        let mut next = Self {
            counts: self.counts.clone(),
            weights: self.weights.clone(),
            s: self.shared_after(stage, &products, noise),
            x: Vec::with_capacity(self.x.len()),
            p: Vec::with_capacity(self.p.len()),
            q: Vec::new(),
        };
        if self.client_length() == 0 {
            (next.x, next.p) = (self.x.clone(), self.p.clone());
            return next;
        }
        // E s (v_s s + v_v v)ᵀ.
        let moves: Vec<Matrix> = (0..self.types())
            .map(|g| {
                let mut out = self.x[g].times_transposed(&stage.members[g].v_v);
                out.add(1.0, &self.s.times_transposed(&stage.members[g].v_s));
                out
            })
            .collect();
        for g in 0..self.types() {
            let (x, p) = self.own_after(stage, &products, &moves[g], g, &noise[g]);
            next.x.push(x);
            next.p.push(p);
        }
        next.q = self.pairs_after(&stage.members, &moves, stage.inclusion);
        next
    }

    /// E s sᵀ after a stage.
    fn shared_after(&self, stage: &Stage, products: &SharedProducts, noise: &[Matrix]) -> Matrix {
        let (m, n, members) = (self.s.rows(), self.client_length(), &stage.members);
        let (one, two) = stage.inclusion;
        let moved = self.sum(m, m, |g| products.all[g].clone());
        let mut s = sparse_sandwich(&stage.keep, &self.s, &stage.keep);
        let crossed = stage.keep.times_transposed(&moved);
        s.add(one, &crossed);
        s.add(one, &crossed.transpose());
        // Members with themselves, then pairs of members.
        let own = self.sum(m, m, |g| self.square(members, products, g, &noise[g]));
        s.add(one, &own);
        if two > 0.0 {
            let between = self.sum(m, m, |g| {
                let member = &members[g];
                let mut out = sandwich(&stage.others[g], &self.s, &member.s_s);
                if n > 0 {
                    out.add(1.0, &products.rest[g].times_transposed(&member.s_s));
                    out.add(1.0, &products.by_others[g].times_transposed(&member.s_v));
                    out.add(1.0, &products.of_others[g].times_transposed(&member.s_v));
                }
                out
            });
            s.add(two, &between);
        }
        s.symmetric_part()
    }

    /// E s vᵀ and E v vᵀ of a member of type g after a stage.
    fn own_after(
        &self,
        stage: &Stage,
        products: &SharedProducts,
        moves: &Matrix,
        g: usize,
        noise: &Matrix,
    ) -> (Matrix, Matrix) {
        let (one, two) = stage.inclusion;
        let (member, others) = (&stage.members[g], &stage.others[g]);
        let (x, p, from_others) = (&self.x[g], &self.p[g], &products.of_others[g]);
        let turned = member.v_s.times(x).transpose();
        let with_own = p.times_transposed(&member.v_v);

        let mut next_x = stage.keep.times(x);
        next_x.add(one, &stage.keep.times(moves));
        next_x.add(one, &products.by_others[g]);
        next_x.add(one, from_others);
        next_x.add(two, &others.times(moves));
        next_x.add(two, &from_others.times_transposed(&member.v_v));
        next_x.add(two, &products.rest[g].times_transposed(&member.v_s));
        next_x.add(one, &member.s_s.times(&x.plus(1.0, moves)));
        let mut own = p.plus(1.0, &with_own);
        own.add(1.0, &turned);
        next_x.add(one, &member.s_v.times(&own));
        next_x.add(one, &sparse_sandwich(&member.s_e, noise, &member.v_e));

        let mut moved = turned.transpose();
        moved.add(1.0, &member.v_v.times(p));
        let mut next_p = p.plus(one, &moved);
        next_p.add(one, &moved.transpose());
        next_p.add(one, &member.v_s.times(moves));
        let mut rest = turned;
        rest.add(1.0, &with_own);
        next_p.add(one, &member.v_v.times(&rest));
        next_p.add(one, &sparse_sandwich(&member.v_e, noise, &member.v_e));
        (next_x, next_p.symmetric_part())
    }

    /// E x xᵀ for the x that a member of type g adds to s.
    fn square(
        &self,
        members: &[MemberUpdate],
        products: &SharedProducts,
        g: usize,
        noise: &Matrix,
    ) -> Matrix {
        let member = &members[g];
        let mut out = products.all[g].times_transposed(&member.s_s);
        if self.client_length() > 0 {
            let mut with_v = member.s_s.times(&self.x[g]);
            with_v.add(1.0, &member.s_v.times(&self.p[g]));
            out.add(1.0, &with_v.times_transposed(&member.s_v));
        }
        out.add(1.0, &sparse_sandwich(&member.s_e, noise, &member.s_e));
        out
    }

    fn pairs_after(
        &self,
        members: &[MemberUpdate],
        moves: &[Matrix],
        (one, two): (f64, f64),
    ) -> Vec<Matrix> {
        let (types, n) = (self.types(), self.client_length());
        let mut out = vec![Matrix::zeros(n, n); types * types];
        for g in 0..types {
            for h in g..types {
                if self.others(g, h) <= 0.0 {
                    continue;
                }
                let (a, b, q) = (&members[g], &members[h], self.pair(g, h));
                // E v_g (v_s s + v_v v)_hᵀ and the other way round.
                let mut right = q.times_transposed(&b.v_v);
                right.add(1.0, &b.v_s.times(&self.x[g]).transpose());
                let mut left = a.v_v.times(q);
                left.add(1.0, &a.v_s.times(&self.x[h]));
                let mut both = a.v_v.times(&right);
                both.add(1.0, &a.v_s.times(&moves[h]));
                let mut new = q.plus(one, &right);
                new.add(one, &left);
                new.add(two, &both);
                if g == h {
                    new = new.symmetric_part();
                }
                out[h * types + g] = new.transpose();
                out[g * types + h] = new;
            }
        }
        out
    }

    /// All numbers except E 1·1, for a linear solver.
    pub fn numbers(&self) -> Vec<f64> {
        let blocks = std::iter::once(&self.s).chain(&self.x).chain(&self.p).chain(&self.q);
        blocks.flat_map(|b| b.entries().iter().copied()).skip(1).collect()
    }

    /// The state of this shape with these numbers, and E 1·1 = `one`.
    pub fn with(&self, one: f64, numbers: &[f64]) -> Self {
        let mut rest = std::iter::once(one).chain(numbers.iter().copied());
        let mut block = |like: &Matrix| {
            let count = like.rows() * like.cols();
            Matrix::from_entries(like.rows(), like.cols(), rest.by_ref().take(count).collect())
        };
        Self {
            counts: self.counts.clone(),
            weights: self.weights.clone(),
            s: block(&self.s),
            x: self.x.iter().map(&mut block).collect(),
            p: self.p.iter().map(&mut block).collect(),
            q: self.q.iter().map(&mut block).collect(),
        }
    }
}

/// Products of the sum of past estimates with the state, for averages.
#[derive(Clone, Debug)]
pub struct Past {
    /// E (Σ ε) sᵀ, d × m.
    pub s: Matrix,
    /// E (Σ ε) vᵀ for a client of each type, d × n.
    pub v: Vec<Matrix>,
}

impl Past {
    /// The sum of no estimates.
    pub fn new(d: usize, state: &MomentState) -> Self {
        let v = state.counts.iter().map(|_| Matrix::zeros(d, state.client_length())).collect();
        Self { s: Matrix::zeros(d, state.s.rows()), v }
    }

    /// Adds the estimate ε = L s of this state.
    pub fn add(&mut self, estimate: &Matrix, state: &MomentState) {
        self.s.add(1.0, &estimate.times(&state.s));
        for (v, x) in self.v.iter_mut().zip(&state.x) {
            v.add(1.0, &estimate.times(x));
        }
    }

    /// The same sum, with the state after a stage.
    pub fn after(&self, stage: &Stage, counts: &[f64]) -> Self {
        let mut s = self.s.times_transposed(&stage.keep);
        for ((member, count), v) in stage.members.iter().zip(counts).zip(&self.v) {
            let weight = stage.inclusion.0 * count;
            s.add(weight, &self.s.times_transposed(&member.s_s));
            s.add(weight, &v.times_transposed(&member.s_v));
        }
        let moved = |(member, v): (&MemberUpdate, &Matrix)| {
            let mut out = v.clone();
            out.add(stage.inclusion.0, &self.s.times_transposed(&member.v_s));
            out.add(stage.inclusion.0, &v.times_transposed(&member.v_v));
            out
        };
        Self { s, v: stage.members.iter().zip(&self.v).map(moved).collect() }
    }
}
