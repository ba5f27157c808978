//! Linear stochastic approximation from atoms (SCAFFLSA A1): client c draws
//! (A, b) from a finite distribution, F_c(θ; Z) = A(Z)θ − b(Z). The instance is read from
//! the user's `.npz` file: `A` (N, M, d, d), `b` (N, M, d), `p` (N, M).

use super::affine::{Affine, mean_part};
use super::arrays::{DataFile, Files, NpzArrays};
use super::facts::Facts;
use super::fault::Fault;
use super::optimum_set::{OptimumSet, Roots};
use super::oracle::Problem;
use super::probabilities::check_probabilities;
use crate::kernel::alias::Alias;
use crate::kernel::{Draws, axpy, dot};
use crate::linalg::Matrix;
use crate::rng::MAX_CLIENTS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Linear stochastic approximation whose noise takes finitely many values: client c draws atom m
/// with probability p_cm and evaluates A_cm θ − b_cm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// An `.npz` file with `A` (N, M, d, d), `b` (N, M, d) and `p` (N, M): M
    /// atoms for each of N clients; each row of `p` sums to one.
    #[schemars(example = &"lsa.npz")]
    pub file: DataFile,
}

impl super::settings::Settings for Settings {
    type Instance = Atoms;

    fn check(&self) -> Vec<Fault> {
        Vec::new()
    }

    fn uses_seed(&self) -> bool {
        false
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("file", &mut self.file)]
    }

    /// Reads the instance from the file; nothing is drawn.
    fn build(&self, _seed: u64, files: &dyn Files) -> Result<Atoms, Fault> {
        let contents = files.open(&self.file).map_err(|e| Fault::new("file", e.to_string()))?;
        Atoms::new(&NpzArrays::new(&self.file, &contents)?)
    }
}

/// The distribution of one client's draws, and its mean field.
struct AtomClient {
    /// The table from which the number of an atom is drawn.
    distribution: Alias<u32>,
    /// p, M numbers.
    probabilities: Vec<f64>,
    /// The mean field Σ_m p_m (A_m θ − b_m).
    mean: Affine,
}

/// An instance: the atoms of all clients, and the exact facts that follow from them.
pub struct Atoms {
    /// M, the number of atoms of each client.
    atoms: usize,
    /// A, N × M × d × d.
    matrices: Vec<f64>,
    /// b, N × M × d.
    offsets: Vec<f64>,
    clients: Vec<AtomClient>,
    /// The shares π_c of the clients, N numbers; `None` if all are 1/N.
    shares: Option<Vec<f64>>,
    /// Σ π_c Ā_c, d × d.
    mean_matrix: Matrix,
    /// θ*, and all of them if there are several.
    roots: Roots,
}

/// The atoms of all clients, M for each of N.
pub struct AtomTables {
    /// A, N × M × d × d numbers.
    pub matrices: Vec<f64>,
    /// b, N × M × d numbers.
    pub offsets: Vec<f64>,
    /// p, N × M numbers: the probability of each atom of a client.
    pub probabilities: Vec<f64>,
    /// The shares π_c of the clients, N numbers; `None` if all are 1/N.
    pub shares: Option<Vec<f64>>,
}

/// The mean of the clients' mean fields has no root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the clients' mean matrix is singular, and no θ solves their mean system A θ = b: there is no θ*"
)]
pub struct NoRoot;

impl Atoms {
    /// Reads the atoms of all clients, checks them, and computes the facts that follow from them.
    ///
    /// # Errors
    /// A [`Fault`] of `file` if an array is missing or does not hold what it should, or the mean field has no root. It
    /// may have several, and a client none.
    fn new(arrays: &NpzArrays<'_>) -> Result<Self, Fault> {
        // 0 is a length that is not known yet: `get` sets it to that of the first array with this axis.
        let mut n = 0;
        let mut m = 0;
        let mut d = 0;
        let mut columns = 0;
        let axes = &mut [("N", &mut n), ("M", &mut m), ("d", &mut d), ("d", &mut columns)];
        let matrices = arrays.get("A", axes)?.to_vec();
        if columns != d {
            return Err(
                arrays.fault(format!("`A` holds {d} × {columns} matrices; they must be square"))
            );
        }
        let axes = &mut [("N", &mut n), ("M", &mut m), ("d", &mut d)];
        let offsets = arrays.get("b", axes)?.to_vec();
        let p = arrays.get("p", &mut [("N", &mut n), ("M", &mut m)])?;
        let p = check_probabilities(arrays, "p", p, &[n, m])?;
        if n as u64 > MAX_CLIENTS {
            return Err(
                arrays.fault(format!("{n} clients; at most {MAX_CLIENTS} have a stream each"))
            );
        }
        let given = AtomTables { matrices, offsets, probabilities: p, shares: None };
        Self::from_tables(n, d, given).map_err(|error| arrays.fault(error.to_string()))
    }

    /// Computes the facts that follow from the atoms of `n` clients in dimension `d`. The rows of probabilities must
    /// have one length M and sum to 1, and the other tables must have entries for as many atoms.
    ///
    /// # Errors
    /// If there is no θ*. There may be several, and a client may have none.
    pub fn from_tables(n: usize, d: usize, tables: AtomTables) -> Result<Self, NoRoot> {
        let AtomTables { matrices, offsets, probabilities, shares } = tables;
        let m = probabilities.len() / n;
        let mut clients = Vec::with_capacity(n);
        for c in 0..n {
            let row = &probabilities[c * m..][..m];
            let mut matrix = Matrix::zeros(d, d);
            let mut offset = vec![0.0; d];
            for (z, &p) in row.iter().enumerate() {
                let entry = c * m + z;
                matrix = matrix
                    .plus(p, &Matrix::from_fn(d, d, |i, j| matrices[(entry * d + i) * d + j]));
                axpy(p, &offsets[entry * d..][..d], &mut offset);
            }
            let weights: Vec<(u32, f64)> = (0..m as u32).zip(row.iter().copied()).collect();
            let distribution = Alias::new(&weights);
            let probabilities = row.to_vec();
            let mean = Affine::new(matrix, offset);
            clients.push(AtomClient { distribution, probabilities, mean });
        }
        let means = clients.iter().map(|c: &AtomClient| &c.mean);
        let mean = Affine::weighted_mean(means, shares.as_deref());
        let roots = Roots::new(&mean.matrix, &mean.offset).map_err(|_| NoRoot)?;
        let mean_matrix = mean.matrix;
        Ok(Self { atoms: m, matrices, offsets, clients, shares, mean_matrix, roots })
    }

    /// Σ π_c Ā_c, the mean over the clients of their mean matrices, d × d.
    pub fn mean_matrix(&self) -> &Matrix {
        &self.mean_matrix
    }

    /// Writes A_cm θ − b_cm of atom m of client c to `field`, d numbers.
    #[inline(always)]
    fn field(&self, client: usize, atom: usize, theta: &[f64], field: &mut [f64]) {
        let d = theta.len();
        let entry = client * self.atoms + atom;
        let matrix = &self.matrices[entry * d * d..][..d * d];
        let offset = &self.offsets[entry * d..][..d];
        for (i, field) in field.iter_mut().enumerate() {
            *field = dot(theta, &matrix[i * d..][..d]) - offset[i];
        }
    }
}

impl Facts for Atoms {
    fn clients(&self) -> usize {
        self.clients.len()
    }
    fn unequal_shares(&self) -> Option<&[f64]> {
        self.shares.as_deref()
    }
    fn optimum(&self) -> &[f64] {
        &self.roots.root
    }
    fn optimum_set(&self) -> Option<&OptimumSet> {
        self.roots.set.as_ref()
    }
    fn local_optimum(&self, client: usize) -> Option<&[f64]> {
        self.clients[client].mean.root()
    }
    fn mean_field(&self, client: usize, theta: &[f64], field: &mut [f64]) {
        self.clients[client].mean.evaluate(theta, field);
    }
    fn jacobian(&self, client: usize) -> Matrix {
        self.clients[client].mean.matrix.clone()
    }
    /// The covariance of the client's draws at θ*: Σ_m p_m (F_m − F̄_c)(F_m − F̄_c)ᵀ, with F_m the field of atom m.
    fn noise_covariance(&self, client: usize) -> Matrix {
        let mean = self.field_at_optimum(client);
        let mut covariance = Matrix::zeros(self.dim(), self.dim());
        let mut field = vec![0.0; self.dim()];
        for (z, &p) in self.clients[client].probabilities.iter().enumerate() {
            self.field(client, z, self.optimum(), &mut field);
            axpy(-1.0, &mean, &mut field);
            covariance.add_outer(p, &field, &field);
        }
        covariance
    }
    /// The covariance of the client's draws between two points θ and θ', given s = E (e, 1)(e', 1)ᵀ with e = θ − θ*
    /// and e' = θ' − θ*: Σ_m p_m M_m s M_mᵀ − M s Mᵀ, where the field of atom m is M_m (e, 1) with
    /// M_m = (A_m, F_m(θ*)), and M = Σ_m p_m M_m gives the mean field. It is linear in s, which
    /// need not be such a moment, and always known, since draws are independent.
    fn noise_map(&self, client: usize, s: &Matrix) -> Option<Matrix> {
        let d = self.dim();
        let mut second = Matrix::zeros(d, d);
        let mut constant = vec![0.0; d];
        for (z, &p) in self.clients[client].probabilities.iter().enumerate() {
            let matrix = &self.matrices[(client * self.atoms + z) * d * d..][..d * d];
            self.field(client, z, self.optimum(), &mut constant);
            let m = Matrix::from_fn(d, d + 1, |i, j| match j {
                _ if j == d => constant[i],
                _ => matrix[i * d + j],
            });
            second = second.plus(p, &m.times(s).times(&m.transpose()));
        }
        Some(second.plus(-1.0, &mean_part(self, client, s)))
    }
    /// M d, and not M: theory estimates its time from this number as if the matrix of each draw had rank one, and the
    /// matrix of an atom may have rank d.
    fn draws(&self) -> usize {
        self.atoms * self.dim()
    }
    fn linear(&self) -> bool {
        true
    }
}

impl Problem for Atoms {
    type State = ();

    /// Draws an atom and writes its A θ − b.
    #[inline(always)]
    fn oracle(&self, client: usize, draws: &mut Draws<()>, theta: &[f64], field: &mut [f64]) {
        let atom = self.clients[client].distribution.pick(draws.rng.bits()) as usize;
        self.field(client, atom, theta, field);
    }

    /// Draws the bits that pick an atom.
    fn draw(&self, _client: usize, draws: &mut Draws<()>, _records: &mut Vec<usize>) {
        draws.rng.bits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::arrays::{Array, Column, Contents};
    use crate::problem::check;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    /// The arrays of a sound file: m random atoms for each of n clients, with matrices around I.
    fn contents(n: usize, m: usize, d: usize) -> BTreeMap<String, Array> {
        let mut rng = Stream::shared_instance(12);
        let mut array = |shape: &[usize], f: &mut dyn FnMut(usize, &mut Stream) -> f64| {
            let numbers = (0..shape.iter().product()).map(|i| f(i, &mut rng)).collect();
            Array::of_numbers(shape.to_vec(), numbers)
        };
        let a = array(&[n, m, d, d], &mut |i, rng| {
            let row = i / d % d;
            let column = i % d;
            0.3 * rng.gaussian() + if row == column { 1.0 } else { 0.0 }
        });
        let b = array(&[n, m, d], &mut |_, rng| rng.gaussian());
        let p = array(&[n, m], &mut |i, _| [0.5, 0.25, 0.25][i % m]);
        [("A", a), ("b", b), ("p", p)].map(|(k, v)| (k.to_owned(), v)).into()
    }

    /// The numbers of an array, to be changed.
    fn numbers_of(array: &mut Array) -> &mut [f64] {
        let Column::Numbers(numbers) = &mut array.values else {
            panic!("the array holds no numbers")
        };
        numbers
    }

    /// The instance of a file with these arrays, or the message of its fault.
    fn build(arrays: BTreeMap<String, Array>) -> Result<Atoms, String> {
        let file = DataFile::at("x.npz");
        let contents = Contents::Arrays(arrays);
        let arrays = NpzArrays::new(&file, &contents).map_err(|f| f.message)?;
        Atoms::new(&arrays).map_err(|f| f.message)
    }

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        check::agree(&build(contents(3, 3, 2)).unwrap(), 200_000);
    }

    /// A client whose mean matrix is 0 has no optimum of its own, and the mean of all has one.
    #[test]
    fn a_client_without_curvature_is_a_client() {
        let mut arrays = contents(3, 3, 2);
        numbers_of(arrays.get_mut("A").unwrap())[..12].fill(0.0);
        let problem = build(arrays).unwrap();
        assert_eq!(problem.local_optimum(0), None);
        assert!(problem.local_optimum(1).is_some() && problem.optimum_set().is_none());
        check::agree(&problem, 200_000);
    }

    /// Where all matrices have the kernel of (1, −1), the optima are a line, and what lies along it is no error.
    #[test]
    fn optima_of_a_singular_mean_are_a_set() {
        let mut arrays = contents(3, 3, 2);
        for row in numbers_of(arrays.get_mut("A").unwrap()).chunks_exact_mut(4) {
            row.copy_from_slice(&[row[0]; 4]);
        }
        for row in numbers_of(arrays.get_mut("b").unwrap()).chunks_exact_mut(2) {
            row[1] = row[0];
        }
        let problem = build(arrays).unwrap();
        let set = problem.optimum_set().unwrap();
        assert_eq!(set.dimension(), 1);
        let star = problem.optimum();
        assert!((star[0] - star[1]).abs() < 1e-14, "the least one");
        assert!(problem.sq_distance_to_optimum(&[star[0] + 3.0, star[1] - 3.0]) < 1e-28);
        let away = problem.sq_distance_to_optimum(&[star[0] + 4.0, star[1]]);
        assert!((away - 8.0).abs() < 1e-13, "{away}");
        check::agree(&problem, 200_000);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_index() {
        let broken = |f: &dyn Fn(&mut BTreeMap<String, Array>)| {
            let mut arrays = contents(2, 3, 2);
            f(&mut arrays);
            build(arrays).map(|_| ()).unwrap_err()
        };
        let set = |a: &mut BTreeMap<String, Array>, name: &str, i: usize, x: f64| {
            numbers_of(a.get_mut(name).unwrap())[i] = x;
        };
        for (message, wanted) in [
            (broken(&|a| drop(a.remove("p"))), "there is no array `p`, only A, b"),
            (
                broken(&|a| a.get_mut("p").unwrap().values = Column::Text(vec!["half".into(); 6])),
                "`p`: it holds texts, such as \"half\"; expected numbers",
            ),
            (broken(&|a| set(a, "A", 13, f64::NAN)), "`A`[1, 0, 0, 1] is NaN"),
            (broken(&|a| set(a, "p", 4, 0.3)), "`p`[1] sums to 1.05; a row must sum to one"),
            (broken(&|a| set(a, "p", 0, -0.5)), "`p`[0, 0] is -0.5; a probability is 0 or more"),
            (
                broken(&|a| a.get_mut("b").unwrap().shape = vec![2, 2, 3]),
                "`b` has the shape [2, 2, 3]; expected (N = 2, M = 3, d = 2)",
            ),
            (
                broken(&|a| numbers_of(a.get_mut("A").unwrap()).fill(0.0)),
                "the clients' mean matrix is singular, and no θ solves",
            ),
        ] {
            assert!(message.contains(wanted), "{message}");
        }
    }
}
