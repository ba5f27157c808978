//! The means of a round: how E u evolves for each run, with u as in `round.rs`.

use super::local::ClientType;
use crate::linalg::Matrix;

/// The runs of a method.
pub struct MethodRuns<'a> {
    /// The weights of their estimates.
    pub weights: &'static [f64],
    /// γH of each.
    pub lengths: &'a [f64],
    /// Whether clients have variates.
    pub corrected: bool,
    /// The multiple of the way to the clients' mean that the server goes.
    pub server_step: f64,
}

/// y = (x, 1, v̄_g), or (x, 1) without variates, from u.
fn begin_of_type(proportions: &[f64], d: usize, corrected: bool, g: usize) -> Matrix {
    let types = proportions.len();
    if !corrected {
        return Matrix::identity(d + 1);
    }
    let n = types * d + 1;
    let last = g + 1 == types;
    Matrix::from_fn(2 * d + 1, n, |i, j| match i {
        _ if i < d => f64::from(u8::from(i == j)),
        _ if i == d => f64::from(u8::from(j + 1 == n)),
        _ if j < d || j + 1 == n || (i - d - 1) != j % d => 0.0,
        _ if last => -proportions[j / d - 1] / proportions[g],
        _ => f64::from(u8::from(j / d == g + 1)),
    })
}

/// The means of a round.
pub struct RoundMeans {
    /// The proportions of the types.
    pub proportions: Vec<f64>,
    /// The weights of the runs' estimates.
    pub weights: &'static [f64],
    /// The server step.
    server_step: f64,
    /// The end of a client's local steps as a map of y, by type and run.
    pub ends: Vec<Vec<Matrix>>,
    /// The y of the mean of each type as a map of u.
    pub starts: Vec<Matrix>,
    /// u after from u before, for each run.
    pub maps: Vec<Matrix>,
    /// u before the first round with x = 0, for each run.
    pub begins: Vec<Vec<f64>>,
}

impl RoundMeans {
    /// The means of rounds whose local steps have these ends.
    pub fn new(types: &[ClientType], ends: Vec<Vec<Matrix>>, runs: &MethodRuns<'_>) -> Self {
        let proportions: Vec<f64> = types.iter().map(|t| t.proportion).collect();
        let d = types[0].field.len();
        let start = |g| begin_of_type(&proportions, d, runs.corrected, g);
        let starts: Vec<Matrix> = (0..types.len()).map(start).collect();
        let all = 0..runs.weights.len();
        let server_step = runs.server_step;
        let map = |run| map_of_means(&ends, &starts, &proportions, (run, server_step));
        let maps = all.map(map).collect();
        let begin = |length: &f64| begin(types, *length, runs.corrected);
        let begins = runs.lengths.iter().map(begin).collect();
        Self { proportions, weights: runs.weights, server_step, ends, starts, maps, begins }
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.ends[0][0].rows()
    }

    /// The share of the mean end of type g in each block of d entries of u.
    pub fn shares(&self, g: usize) -> Vec<f64> {
        let blocks = (self.maps[0].rows() - 1) / self.dim();
        let share = |block: usize| match block {
            0 => self.server_step * self.proportions[g],
            _ => f64::from(u8::from(block == g + 1)) - self.proportions[g],
        };
        (0..blocks).map(share).collect()
    }
}

/// u after from u before.
fn map_of_means(
    ends: &[Vec<Matrix>],
    starts: &[Matrix],
    proportions: &[f64],
    (run, server_step): (usize, f64),
) -> Matrix {
    let n = starts[0].cols();
    let ends: Vec<Matrix> =
        ends.iter().zip(starts).map(|(ends, start)| ends[run].times(start)).collect();
    let d = ends[0].rows();
    let mut all = Matrix::zeros(d, n);
    ends.iter().zip(proportions).for_each(|(end, share)| all.add(*share, end));
    Matrix::from_fn(n, n, |i, j| match i / d {
        0 => server_step * all[(i, j)] + (1.0 - server_step) * f64::from(u8::from(i == j)),
        _ if i + 1 == n => f64::from(u8::from(i == j)),
        g => f64::from(u8::from(i == j)) + ends[g - 1][(i % d, j)] - all[(i % d, j)],
    })
}

/// u with x = 0 and ξ = 0, where γH = `length`.
fn begin(types: &[ClientType], length: f64, corrected: bool) -> Vec<f64> {
    let mut u = vec![0.0; types[0].field.len()];
    if corrected {
        let last = types.len() - 1;
        u.extend(types[..last].iter().flat_map(|t| t.field.iter().map(|f| length * f)));
    }
    u.push(1.0);
    u
}
