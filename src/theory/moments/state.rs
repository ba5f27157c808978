//! Second moments of the server's and all clients' variables, by types of
//! clients: clients of one type are exchangeable, so that the size does not
//! depend on how many they are.

use crate::linalg::Matrix;

/// E of the products of s (m numbers, the first of them 1) and of each client's
/// v. Symmetric to the last bit after every round.
#[derive(Clone, Debug)]
pub struct State {
    /// How many clients each type has.
    pub counts: Vec<f64>,
    /// E s sᵀ, m × m.
    pub s: Matrix,
    /// E s vᵀ for a client of each type, m × n.
    pub x: Vec<Matrix>,
    /// E v vᵀ of one client, n × n.
    pub p: Vec<Matrix>,
    /// E v v'ᵀ of two different clients, type by type, n × n.
    pub q: Vec<Matrix>,
}

/// What one stage of a round does to the members of a type: with e a random
/// vector of mean 0 given all else, independent between clients,
/// s ← A s + Σ over members of (`s_s` s + `s_v` v + `s_e` e), and of a member
/// v ← v + `v_s` s + `v_v` v + `v_e` e.
#[derive(Clone, Debug)]
pub struct Member {
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

/// A stage of a round: who takes part, and what that does.
#[derive(Clone, Debug)]
pub struct Stage {
    /// A, m × m.
    pub keep: Matrix,
    /// The chance that a client takes part, and that two given clients do.
    pub inclusion: (f64, f64),
    /// One a type.
    pub members: Vec<Member>,
}

/// a b cᵀ.
pub fn sandwich(a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    a.times(b).times(&c.transpose())
}

fn symmetric(a: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows(), a.cols(), |i, j| 0.5 * (a[(i, j)] + a[(j, i)]))
}

impl State {
    /// The state where nothing is random: s and each type's v are these.
    pub fn fixed(counts: Vec<f64>, s: &[f64], v: &[Vec<f64>]) -> Self {
        let outer = |a: &[f64], b: &[f64]| Matrix::from_fn(a.len(), b.len(), |i, j| a[i] * b[j]);
        let pairs = v.iter().flat_map(|a| v.iter().map(move |b| (a, b)));
        Self {
            s: outer(s, s),
            x: v.iter().map(|v| outer(s, v)).collect(),
            p: v.iter().map(|v| outer(v, v)).collect(),
            q: if v.iter().all(Vec::is_empty) {
                Vec::new()
            } else {
                pairs.map(|(a, b)| outer(a, b)).collect()
            },
            counts,
        }
    }

    /// Number of types.
    pub fn types(&self) -> usize {
        self.counts.len()
    }

    /// Length of v.
    pub fn own(&self) -> usize {
        self.p.first().map_or(0, Matrix::rows)
    }

    /// E v v'ᵀ of a client of type g and another of type h.
    pub fn pair(&self, g: usize, h: usize) -> &Matrix {
        &self.q[g * self.types() + h]
    }

    /// Clients of type h beside one of type g.
    pub fn others(&self, g: usize, h: usize) -> f64 {
        self.counts[h] - f64::from(u8::from(g == h))
    }

    /// Σ over types, as many times as the type has clients.
    fn sum(&self, rows: usize, cols: usize, of: impl Fn(usize) -> Matrix) -> Matrix {
        let mut out = Matrix::zeros(rows, cols);
        (0..self.types()).for_each(|g| out.add(self.counts[g], &of(g)));
        out
    }

    /// Σ over the clients beside one of type g of `s_v` E v v'ᵀ, m × n.
    fn pull_of_others(&self, stage: &Stage, g: usize) -> Matrix {
        let mut out = Matrix::zeros(self.s.rows(), self.own());
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
        let (m, n, types) = (self.s.rows(), self.own(), self.types());
        let (one, two) = stage.inclusion;
        let members = &stage.members;
        // Λ_c = E (s_s s + s_v v) sᵀ; its sum; the sum of s_s.
        let pulls: Vec<Matrix> = (0..types)
            .map(|g| {
                let mut pull = members[g].s_s.times(&self.s);
                if n > 0 {
                    pull.add(1.0, &members[g].s_v.times(&self.x[g].transpose()));
                }
                pull
            })
            .collect();
        let pull = self.sum(m, m, |g| pulls[g].clone());
        let weight = self.sum(m, m, |g| members[g].s_s.clone());
        let from_others: Vec<Matrix> = if n > 0 {
            (0..types).map(|g| self.pull_of_others(stage, g)).collect()
        } else {
            Vec::new()
        };
        let cross_sum = self.sum(m, m, |g| self.pulled_with(members, g));
        let mut s = sandwich(&stage.keep, &self.s, &stage.keep);
        let crossed = stage.keep.times(&pull.transpose());
        s.add(one, &crossed);
        s.add(one, &crossed.transpose());
        // Members with themselves, then with each other.
        let own = self.sum(m, m, |g| self.square(members, &pulls, g, &noise[g]));
        s.add(one, &own);
        if two > 0.0 {
            let between = self.sum(m, m, |g| {
                let member = &members[g];
                let mut out = sandwich(&weight.plus(-1.0, &member.s_s), &self.s, &member.s_s);
                if n > 0 {
                    let rest = cross_sum.plus(-1.0, &self.pulled_with(members, g));
                    out.add(1.0, &rest.times(&member.s_s.transpose()));
                    let others = weight.plus(-1.0, &member.s_s);
                    out.add(1.0, &sandwich(&others, &self.x[g], &member.s_v));
                    out.add(1.0, &from_others[g].times(&member.s_v.transpose()));
                }
                out
            });
            s.add(two, &between);
        }
        let mut next = Self {
            counts: self.counts.clone(),
            s: symmetric(&s),
            x: self.x.clone(),
            p: self.p.clone(),
            q: Vec::new(),
        };
        if n > 0 {
            // H_g = E s (v_s s + v_v v)ᵀ.
            let moves: Vec<Matrix> = (0..types)
                .map(|g| {
                    let mut out = self.x[g].times(&members[g].v_v.transpose());
                    out.add(1.0, &self.s.times(&members[g].v_s.transpose()));
                    out
                })
                .collect();
            for g in 0..types {
                let member = &members[g];
                let others = weight.plus(-1.0, &member.s_s);
                let rest = cross_sum.plus(-1.0, &self.pulled_with(members, g));
                let mut x = stage.keep.times(&self.x[g]);
                x.add(one, &stage.keep.times(&moves[g]));
                x.add(one, &others.times(&self.x[g]));
                x.add(one, &from_others[g]);
                x.add(two, &others.times(&moves[g]));
                x.add(two, &from_others[g].times(&member.v_v.transpose()));
                x.add(two, &rest.times(&member.v_s.transpose()));
                x.add(one, &member.s_s.times(&self.x[g].plus(1.0, &moves[g])));
                let mut own = self.p[g].plus(1.0, &self.p[g].times(&member.v_v.transpose()));
                own.add(1.0, &self.x[g].transpose().times(&member.v_s.transpose()));
                x.add(one, &member.s_v.times(&own));
                x.add(one, &sandwich(&member.s_e, &noise[g], &member.v_e));
                next.x[g] = x;
                let mut move_self = member.v_s.times(&self.x[g]);
                move_self.add(1.0, &member.v_v.times(&self.p[g]));
                let mut p = self.p[g].plus(one, &move_self);
                p.add(one, &move_self.transpose());
                p.add(one, &member.v_s.times(&moves[g]));
                let mut rest = self.x[g].transpose().times(&member.v_s.transpose());
                rest.add(1.0, &self.p[g].times(&member.v_v.transpose()));
                p.add(one, &member.v_v.times(&rest));
                p.add(one, &sandwich(&member.v_e, &noise[g], &member.v_e));
                next.p[g] = symmetric(&p);
            }
            next.q = self.pairs_after(members, &moves, (one, two));
        }
        next
    }

    /// E (s_v v) sᵀ of a client of type g, m × m.
    fn pulled_with(&self, members: &[Member], g: usize) -> Matrix {
        if self.own() == 0 {
            return Matrix::zeros(self.s.rows(), self.s.rows());
        }
        members[g].s_v.times(&self.x[g].transpose())
    }

    /// E of the square of what a member of type g adds to s.
    fn square(&self, members: &[Member], pulls: &[Matrix], g: usize, noise: &Matrix) -> Matrix {
        let member = &members[g];
        let mut out = pulls[g].times(&member.s_s.transpose());
        if self.own() > 0 {
            let mut with_v = member.s_s.times(&self.x[g]);
            with_v.add(1.0, &member.s_v.times(&self.p[g]));
            out.add(1.0, &with_v.times(&member.s_v.transpose()));
        }
        out.add(1.0, &sandwich(&member.s_e, noise, &member.s_e));
        out
    }

    fn pairs_after(
        &self,
        members: &[Member],
        moves: &[Matrix],
        (one, two): (f64, f64),
    ) -> Vec<Matrix> {
        let (types, n) = (self.types(), self.own());
        let mut out = vec![Matrix::zeros(n, n); types * types];
        for g in 0..types {
            for h in g..types {
                if self.others(g, h) <= 0.0 {
                    continue;
                }
                let (a, b, q) = (&members[g], &members[h], self.pair(g, h));
                // E v_g (v_s s + v_v v)_hᵀ and the other way round.
                let mut right = q.times(&b.v_v.transpose());
                right.add(1.0, &self.x[g].transpose().times(&b.v_s.transpose()));
                let mut left = a.v_v.times(q);
                left.add(1.0, &a.v_s.times(&self.x[h]));
                let mut both = a.v_v.times(&right);
                both.add(1.0, &a.v_s.times(&moves[h]));
                let mut new = q.plus(one, &right);
                new.add(one, &left);
                new.add(two, &both);
                if g == h {
                    new = symmetric(&new);
                }
                out[h * types + g] = new.transpose();
                out[g * types + h] = new;
            }
        }
        out
    }

    /// All numbers but E 1·1, for a linear solver.
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
            s: block(&self.s),
            x: self.x.iter().map(&mut block).collect(),
            p: self.p.iter().map(&mut block).collect(),
            q: self.q.iter().map(&mut block).collect(),
        }
    }
}

/// Σ over past rounds of the estimate, with the state: what averages need.
#[derive(Clone, Debug)]
pub struct Past {
    /// E (Σ ε) sᵀ, d × m.
    pub s: Matrix,
    /// E (Σ ε) vᵀ for a client of each type, d × n.
    pub v: Vec<Matrix>,
}

impl Past {
    /// Nothing yet.
    pub fn new(d: usize, state: &State) -> Self {
        let v = state.counts.iter().map(|_| Matrix::zeros(d, state.own())).collect();
        Self { s: Matrix::zeros(d, state.s.rows()), v }
    }

    /// Adds the estimate ε = L s of this state.
    pub fn add(&mut self, estimate: &Matrix, state: &State) {
        self.s.add(1.0, &estimate.times(&state.s));
        for (v, x) in self.v.iter_mut().zip(&state.x) {
            v.add(1.0, &estimate.times(x));
        }
    }

    /// The same sum, with the state after a stage.
    pub fn after(&self, stage: &Stage, counts: &[f64]) -> Self {
        let mut s = self.s.times(&stage.keep.transpose());
        for ((member, count), v) in stage.members.iter().zip(counts).zip(&self.v) {
            let weight = stage.inclusion.0 * count;
            s.add(weight, &self.s.times(&member.s_s.transpose()));
            s.add(weight, &v.times(&member.s_v.transpose()));
        }
        let moved = |(member, v): (&Member, &Matrix)| {
            let mut out = v.clone();
            out.add(stage.inclusion.0, &self.s.times(&member.v_s.transpose()));
            out.add(stage.inclusion.0, &v.times(&member.v_v.transpose()));
            out
        };
        Self { s, v: stage.members.iter().zip(&self.v).map(moved).collect() }
    }
}
