//! The noises of a round: their covariances, and second moments of forms.
//!
//! A noise has mean 0 given all that was drawn before it. That of clients is the mean over a type,
//! and of each client the deviation from that mean.

use super::form::Form;
use crate::linalg::Matrix;

/// A form with the coordinates that it reads, by whose places its weights are numbered.
#[derive(Clone, Debug)]
pub(super) struct Small {
    support: Vec<usize>,
    form: Form,
}

impl Small {
    pub fn new(form: &Form) -> Self {
        let mut support: Vec<usize> = form.rows.iter().flatten().map(|(i, _)| *i).collect();
        support.sort_unstable();
        support.dedup();
        let place = |i: usize| support.partition_point(|known| *known < i);
        let row = |row: &Vec<(usize, f64)>| row.iter().map(|(i, x)| (place(*i), *x)).collect();
        let rows = form.rows.iter().map(row).collect();
        Self { form: Form { rows, noise: form.noise.clone() }, support }
    }
}

/// Covariances of each noise with those that it depends on, by number, in increasing order.
#[derive(Clone, Debug, Default)]
pub(super) struct NoiseCovariances(Vec<Vec<(usize, Matrix)>>);

impl NoiseCovariances {
    /// Another noise, uncorrelated with all before.
    fn add(&mut self, own: Matrix) -> usize {
        self.0.push(vec![(self.0.len(), own)]);
        self.0.len() - 1
    }

    /// The covariance of two noises.
    fn get(&self, a: usize, b: usize) -> Option<&Matrix> {
        let all = &self.0[a];
        all.binary_search_by_key(&b, |(id, _)| *id).ok().map(|at| &all[at].1)
    }

    fn correlate(&mut self, a: usize, b: usize, covariance: Matrix) {
        let turned = covariance.transpose();
        for (of, with, matrix) in [(a, b, covariance), (b, a, turned)] {
            let at = self.0[of].partition_point(|(id, _)| *id < with);
            self.0[of].insert(at, (with, matrix));
        }
    }

    /// Of the noises of two forms; `None` if it is 0.
    pub fn between(&self, a: &Form, b: &Form) -> Option<Matrix> {
        let mut sum: Option<Matrix> = None;
        if b.noise.is_empty() {
            return None;
        }
        for (id, left) in &a.noise {
            for (other, covariance) in &self.0[*id] {
                if let Ok(at) = b.noise.binary_search_by_key(other, |(id, _)| *id) {
                    let part = left.times(covariance).times_transposed(&b.noise[at].1);
                    match &mut sum {
                        Some(sum) => sum.add(1.0, &part),
                        None => sum = Some(part),
                    }
                }
            }
        }
        sum
    }
}

/// What is known within a round.
pub(super) struct KnownMoments {
    /// Means of the coordinates, of which the first is the number 1.
    pub mean: Vec<f64>,
    /// Their covariances; the coordinates known so far are the first of them.
    pub covariance: Matrix,
    /// Covariances of the deviations of a client of each type.
    pub own: Vec<Matrix>,
    /// Of the noises.
    pub noise: NoiseCovariances,
    /// Of their deviations.
    pub own_noise: NoiseCovariances,
    /// Sums of noises, each with its parts.
    sums: Vec<(usize, Vec<(usize, Matrix)>)>,
}

impl KnownMoments {
    /// At the start of a round; `width` coordinates will be known in it.
    pub fn new(mean: &[f64], covariance: &Matrix, own: &[Matrix], width: usize) -> Self {
        let mut all = Matrix::zeros(width, width);
        for i in 0..mean.len() {
            (0..mean.len()).for_each(|j| all[(i, j)] = covariance[(i, j)]);
        }
        let (noise, own_noise, sums) =
            (NoiseCovariances::default(), NoiseCovariances::default(), Vec::new());
        Self { mean: mean.to_vec(), covariance: all, own: own.to_vec(), noise, own_noise, sums }
    }

    /// E 1·1, which is 0 if the state is the difference of two runs.
    pub fn unit(&self) -> f64 {
        self.covariance[(0, 0)] + self.mean[0] * self.mean[0]
    }

    /// Makes the numbers of a form coordinates, without its noise.
    pub fn append(&mut self, form: &Form) {
        let begin = self.mean.len();
        let left = form.times(&self.covariance, begin);
        let square = form.transposed_after(&left);
        for i in 0..left.rows() {
            for j in 0..begin {
                self.covariance[(begin + i, j)] = left[(i, j)];
                self.covariance[(j, begin + i)] = left[(i, j)];
            }
            (0..left.rows()).for_each(|j| self.covariance[(begin + i, begin + j)] = square[(i, j)]);
        }
        let value = form.value(&self.mean);
        self.mean.extend(value);
    }

    /// E a bᵀ of forms of the coordinates.
    pub fn second(&self, a: &Small, b: &Small) -> Matrix {
        let entry = |i: usize, j: usize| self.covariance[(i, j)] + self.mean[i] * self.mean[j];
        product(a, b, entry, &self.noise)
    }

    /// E a bᵀ of forms of the deviations of a client of type g.
    pub fn own_second(&self, g: usize, a: &Small, b: &Small) -> Matrix {
        product(a, b, |i, j| self.own[g][(i, j)], &self.own_noise)
    }

    /// A noise with its covariance and that of its deviations, and its covariances with noises
    /// before it.
    pub fn add_noise(
        &mut self,
        (covariance, own): (Matrix, Matrix),
        with: Vec<(usize, Matrix)>,
        own_with: Vec<(usize, Matrix)>,
    ) {
        let id = self.noise.add(covariance);
        self.own_noise.add(own);
        let correlated = !with.is_empty();
        with.into_iter().for_each(|(other, matrix)| self.noise.correlate(id, other, matrix));
        own_with
            .into_iter()
            .for_each(|(other, matrix)| self.own_noise.correlate(id, other, matrix));
        if !correlated {
            return;
        }
        for (sum, parts) in &self.sums {
            let mut all: Option<Matrix> = None;
            for (part, weight) in parts {
                let Some(covariance) = self.noise.get(id, *part) else { continue };
                let more = covariance.times_transposed(weight);
                match &mut all {
                    Some(all) => all.add(1.0, &more),
                    None => all = Some(more),
                }
            }
            if let Some(all) = all {
                self.noise.correlate(id, *sum, all);
            }
        }
    }

    /// A noise that is a sum of others.
    pub fn add_sum(&mut self, parts: &[(usize, Matrix)]) {
        let d = parts[0].1.rows();
        let mut with: Vec<(usize, Matrix)> = Vec::new();
        let mut own = Matrix::zeros(d, d);
        for (part, weight) in parts {
            for (other, covariance) in &self.noise.0[*part] {
                let more = weight.times(covariance);
                match with.binary_search_by_key(other, |(id, _)| *id) {
                    Ok(at) => with[at].1.add(1.0, &more),
                    Err(at) => with.insert(at, (*other, more)),
                }
            }
        }
        for (other, covariance) in &with {
            if let Ok(at) = parts.binary_search_by_key(other, |(id, _)| *id) {
                own.add(1.0, &covariance.times_transposed(&parts[at].1));
            }
        }
        let id = self.noise.add(own);
        self.own_noise.add(Matrix::zeros(d, d));
        with.into_iter().for_each(|(other, matrix)| self.noise.correlate(id, other, matrix));
        self.sums.push((id, parts.to_vec()));
    }
}

fn product(
    a: &Small,
    b: &Small,
    entry: impl Fn(usize, usize) -> f64,
    noise: &NoiseCovariances,
) -> Matrix {
    let between =
        Matrix::from_fn(a.support.len(), b.support.len(), |i, j| entry(a.support[i], b.support[j]));
    let left = a.form.times(&between, b.support.len());
    let mut out = b.form.transposed_after(&left);
    if let Some(more) = noise.between(&a.form, &b.form) {
        out.add(1.0, &more);
    }
    out
}
