//! TD(0) on a user's chains, from an `.npz` file.

use super::arrays::{DataFile, Files, NpzArrays};
use super::chain::Chain;
use super::cost::ProblemCost;
use super::fault::{Fault, Faults};
use super::probabilities::{ROUNDING, check_probabilities, has_single_precision};
use super::td::{self, Environment, NoSolution, Noise, Td};
use crate::kernel::td::MAX_STATES;
use crate::linalg::Matrix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use thiserror::Error;

/// Policy evaluation as in `garnet`, on chains that a file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// An `.npz` file with features `phi` (S, d), kernels under the policy `P`
    /// (N, S, S), rewards `r` (N, S), stationary distributions `mu` (N, S), which must agree with
    /// those that are computed from the kernels, and the discount `gamma` ().
    #[schemars(example = &"chains.npz")]
    pub file: DataFile,
    /// Whether the draws of a client are independent or follow its chain.
    #[serde(default, skip_serializing_if = "Noise::is_independent")]
    #[schemars(extend("default" = "independent"))]
    pub noise: Noise,
}

impl super::settings::Settings for Settings {
    type Instance = Td;

    /// Reports what is wrong with the noise; the file is checked when it is read.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        self.noise.check(&mut faults);
        faults.0
    }

    fn uses_seed(&self) -> bool {
        false
    }

    fn cost(&self, _exact: bool) -> ProblemCost {
        td::cost(self.extent().as_ref())
    }

    fn files(&mut self) -> Vec<(&'static str, &mut DataFile)> {
        vec![("file", &mut self.file)]
    }

    /// Reads the instance from the file; nothing is drawn.
    fn build(&self, _seed: u64, files: &dyn Files) -> Result<Td, Fault> {
        let contents = files.open(&self.file).map_err(|e| Fault::new("file", e.to_string()))?;
        build(&NpzArrays::new(&self.file, &contents)?, self.noise)
    }
}

/// The largest difference of a probability in a file's `mu`, if it is of float32 numbers, from the one of
/// the stationary distribution that is computed from `P`.
const SINGLE: f64 = 1e-5;

/// Reads the chains of all clients, checks them, and builds the instance, in which each client has an environment of
/// its own. The stationary distributions of the file are only compared with the computed ones, so that an `mu` of
/// other chains is noticed; the instance has the computed ones.
///
/// # Errors
/// A [`Fault`] of `file`: an array that does not hold what it should, a chain that is periodic or has several recurrent
/// classes, or a singular mean system.
fn build(arrays: &NpzArrays<'_>, noise: Noise) -> Result<Td, Fault> {
    // 0 is a length that is not known yet: `get` sets it to that of the first array with this axis.
    let mut s = 0;
    let mut d = 0;
    let mut n = 0;
    let mut next = 0;
    let phi = arrays.get("phi", &mut [("S", &mut s), ("d", &mut d)])?;
    if s > MAX_STATES {
        return Err(arrays.fault(format!("`phi` has {s} states; at most {MAX_STATES} are allowed")));
    }
    let p = arrays.get("P", &mut [("N", &mut n), ("S", &mut s), ("S", &mut next)])?;
    if next != s {
        return Err(arrays.fault(format!("`P` has {s} × {next} kernels; they must be square")));
    }
    let p = check_probabilities(arrays, "P", p, &[n, s, s])?;
    let rewards = arrays.get("r", &mut [("N", &mut n), ("S", &mut s)])?;
    let mu = arrays.get("mu", &mut [("N", &mut n), ("S", &mut s)])?;
    let tolerance = if has_single_precision(mu) { SINGLE } else { ROUNDING };
    let gamma = arrays.get("gamma", &mut [])?[0];
    if !(0.0..1.0).contains(&gamma) {
        return Err(arrays.fault(format!("`gamma` is {gamma}; a discount is in [0, 1)")));
    }
    for c in 0..n {
        let transitions = kernel_of_client(&p, s, c);
        if let Err(error) = check_one_class(&transitions) {
            return Err(arrays.fault(format!("`P`[{c}] {error}")));
        }
        let shares = Chain::new(&transitions)
            .stationary()
            .map_err(|_| arrays.fault(format!("`P`[{c}] has no unique stationary distribution")))?;
        for (i, (share, mu)) in shares.iter().zip(&mu[c * s..][..s]).enumerate() {
            if (share - mu).abs() > tolerance {
                return Err(arrays.fault(format!(
                    "`mu`[{c}, {i}] is {mu}, but the stationary distribution of `P`[{c}] has {share}"
                )));
            }
        }
    }
    let environments = (0..n).map(|c| Environment {
        transitions: kernel_of_client(&p, s, c),
        rewards: rewards[c * s..][..s].to_vec(),
    });
    Td::new(phi.to_vec(), d, gamma, environments, (0..n).collect(), noise).map_err(|reason| match reason {
        NoSolution::Stationary(c) => arrays.fault(format!("`P`[{c}] has no unique stationary distribution")),
        NoSolution::Client(c) => {
            arrays.fault(format!("client {c}'s mean system is singular: `phi` has too many features for the states that recur"))
        }
        NoSolution::Mean => arrays.fault("the clients' mean system is singular: there is no unique θ*"),
    })
}

/// Why a chain does not forget its start, as every client's chain must.
#[derive(Debug, Error)]
enum ChainError {
    #[error(
        "has no unique stationary distribution: from state {from} state {to} cannot be reached"
    )]
    Unreachable { from: usize, to: usize },
    #[error("is periodic: its states recur in multiples of {period} steps only")]
    Periodic { period: usize },
}

/// The kernel of a client, S × S, from the kernels of all clients, N × S × S.
fn kernel_of_client(kernels: &[f64], states: usize, client: usize) -> Matrix {
    let own = &kernels[client * states * states..];
    Matrix::from_fn(states, states, |i, j| own[i * states + j])
}

/// Checks that the chain with these transition probabilities, S × S, has one recurrent class, which is aperiodic; other
/// states may be left for ever. Draws that follow a periodic chain would never forget where they began.
///
/// # Errors
/// Two states between which there is no way, or the period.
fn check_one_class(transitions: &Matrix) -> Result<(), ChainError> {
    let n = transitions.rows();
    let backwards = transitions.transpose();
    // Begin at a state, and move to one that it reaches and from which there is no way back, as long as
    // there is such a state. The class of the last state is never left.
    let mut recurrent = 0;
    let mut steps_there = depths_from(transitions, recurrent);
    let mut steps_back = depths_from(&backwards, recurrent);
    while let Some(next) =
        (0..n).find(|&t| steps_there[t] != usize::MAX && steps_back[t] == usize::MAX)
    {
        recurrent = next;
        steps_there = depths_from(transitions, recurrent);
        steps_back = depths_from(&backwards, recurrent);
    }
    if let Some(apart) = steps_back.iter().position(|&steps| steps == usize::MAX) {
        return Err(ChainError::Unreachable { from: apart, to: recurrent });
    }
    // The states that are reached are the class. Its period is the greatest common divisor of what the
    // number of steps to a state by way of a transition differs from the least number of steps to it.
    let mut period = 0;
    for s in (0..n).filter(|&s| steps_there[s] != usize::MAX) {
        for t in (0..n).filter(|&t| transitions[(s, t)] > 0.0) {
            period = gcd(period, (steps_there[s] + 1).abs_diff(steps_there[t]));
        }
    }
    if period > 1 {
        return Err(ChainError::Periodic { period });
    }
    Ok(())
}

/// The least number of transitions from a state to each state, by a breadth-first search; `usize::MAX`
/// where there is no way.
fn depths_from(transitions: &Matrix, start: usize) -> Vec<usize> {
    let n = transitions.rows();
    let mut depth = vec![usize::MAX; n];
    depth[start] = 0;
    let mut queue = VecDeque::from([start]);
    while let Some(s) = queue.pop_front() {
        for t in 0..n {
            if transitions[(s, t)] > 0.0 && depth[t] == usize::MAX {
                depth[t] = depth[s] + 1;
                queue.push_back(t);
            }
        }
    }
    depth
}

/// The greatest common divisor of two numbers; the other one if one of them is 0, so that 0 begins a fold.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`check_one_class`] says of the chain with these rows of probabilities.
    fn check<const N: usize>(rows: [[f64; N]; N]) -> Result<(), String> {
        check_one_class(&Matrix::from_fn(N, N, |i, j| rows[i][j]))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn chains_without_a_unique_stationary_distribution_are_found() {
        assert!(check([[0.5, 0.5], [1.0, 0.0]]).is_ok());
        assert!(check([[1.0]]).is_ok());
        let transient = [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0]];
        assert!(check(transient).is_ok(), "a state that is left for ever is allowed");
        assert!(check([[1.0, 0.0], [0.0, 1.0]]).unwrap_err().contains("cannot be reached"));
        let two_ends = [[0.2, 0.4, 0.4], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        assert!(check(two_ends).unwrap_err().contains("cannot be reached"));
        assert!(check([[0.0, 1.0], [1.0, 0.0]]).unwrap_err().contains("multiples of 2 steps"));
        let wheel = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];
        assert!(check(wheel).unwrap_err().contains("multiples of 3 steps"));
    }
}
