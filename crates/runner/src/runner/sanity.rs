//! Checks of what must hold in every run, at recorded rounds.
//!
//! *Invariant*: a run that contradicts itself is a failed cell, never a result.

use super::prepare::Scenario;
use crate::trace::Trace;
use exactfed_core::federated::Run;
use exactfed_core::kernel::{axpy, dot};
use thiserror::Error;

/// The largest norm of N Σ π_c ξ_c, relative to the sum of the norms of its terms, that counts as 0: rounding alone
/// leaves 10⁻¹⁴.
const TOLERANCE: f64 = 1e-8;
/// The squared error, or the squared length of an estimate where θ* is left out, beyond which a run may be about to
/// overflow: then metrics may be infinite.
const LARGE: f64 = 1e100;

/// A run contradicts what must hold in every run.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SanityError {
    /// A quantity is not finite, though the estimate is not large.
    #[error("{name} is {value} at round {round}")]
    NotFinite {
        /// The quantity.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The round.
        round: u64,
    },
    /// The mean of the control variates is not 0.
    #[error(
        "the corrections of the control variates sum to {sum:.1e} instead of 0 at round {round}, where their size is {size:.1e}"
    )]
    Corrections {
        /// The norm of their sum.
        sum: f64,
        /// The sum of their norms.
        size: f64,
        /// The round.
        round: u64,
    },
}

/// The state of the checks of one run.
#[derive(Default)]
pub struct Sanity {
    /// The largest sum of the norms of the terms of N Σ π_c ξ_c so far: errors of rounding stay in ξ_c after the terms
    /// have become small.
    size: f64,
}

impl Sanity {
    /// Checks that the values in the last row of a trace are finite unless its estimate is far away. Also checks that
    /// the corrections of the clients sum to 0, which takes longer, at rows 1, 2, 4, 8, … and at each hundredth. It is
    /// called right after a row was recorded of `run` on `scenario`.
    ///
    /// # Errors
    /// The first of these that does not hold.
    pub fn check(
        &mut self,
        trace: &Trace,
        run: &dyn Run,
        scenario: &Scenario,
    ) -> Result<(), SanityError> {
        let rows = trace.rows();
        let round = trace.round[rows - 1];
        let theta = run.estimate();
        let size = trace.sq_error.last().copied().unwrap_or_else(|| dot(theta, theta));
        let measured =
            trace.further.iter().filter_map(|(m, values)| Some((m.name(), values.last()?)));
        let limit = trace.sq_error_limit.last().map(|value| ("sq-error-limit", value));
        for (name, value) in measured.chain(limit) {
            if !value.is_finite() && size < LARGE {
                return Err(SanityError::NotFinite { name, value: *value, round });
            }
        }
        if rows.is_power_of_two() || rows.is_multiple_of(100) {
            self.corrections(run, scenario, round)?;
        }
        Ok(())
    }

    /// Checks that Σ π_c ξ_c = 0 up to rounding, as it is after every round (`federated::correction`).
    fn corrections(
        &mut self,
        run: &dyn Run,
        scenario: &Scenario,
        round: u64,
    ) -> Result<(), SanityError> {
        let Some(clients) = run.clients().filter(|c| !c.corrections.is_empty()) else {
            return Ok(());
        };
        let d = scenario.instance.dim();
        let mut sum = vec![0.0; d];
        let mut size = 0.0;
        let rows = clients.corrections.chunks_exact(d).zip(&clients.lengths);
        for (client, (xi, length)) in rows.enumerate() {
            let weight = scenario.instance.weight(client);
            axpy(weight, xi, &mut sum);
            // Corrections learn from differences of ends, divided by the length, so that these are rounded too. Where
            // ends were not formed, the estimate has their size.
            let end = match clients.ends {
                [] => run.estimate(),
                ends => &ends[client * d..][..d],
            };
            size += weight * (norm(xi) + norm(end) / length);
        }
        self.size = self.size.max(size);
        let sum = norm(&sum);
        let size = self.size;
        if sum.is_finite() && sum > TOLERANCE * size {
            return Err(SanityError::Corrections { sum, size, round });
        }
        Ok(())
    }
}

fn norm(x: &[f64]) -> f64 {
    libm::sqrt(dot(x, x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Metric;
    use crate::plan::Plan;
    use crate::runner::prepare;
    use exactfed_core::federated::{Clients, Cost};
    use exactfed_core::problem::arrays::NoFiles;

    /// A run with prescribed values.
    struct Prescribed {
        ends: Vec<f64>,
        corrections: Vec<f64>,
    }

    impl Run for Prescribed {
        fn round(&mut self) {}
        fn estimate(&self) -> &[f64] {
            &self.ends
        }
        fn cost(&self) -> Cost {
            Cost::default()
        }
        fn clients(&self) -> Option<Clients<'_>> {
            let lengths = vec![0.5; 4];
            let ends = &self.ends[..];
            let corrections = &self.corrections[..];
            Some(Clients { ends, apart: false, corrections, lengths })
        }
    }

    #[test]
    fn a_run_that_contradicts_itself_is_found() {
        let plan = Plan::of_text(crate::sample::LOGISTIC, &[]);
        let prepared = prepare(&NoFiles, &[&plan.cells[0]]).unwrap();
        let scenario = prepared[0].scenario(0);
        let d = scenario.instance.dim();
        let mut run = Prescribed { ends: vec![1.0; 4 * d], corrections: vec![1e3; 4 * d] };
        run.corrections[d..].iter_mut().for_each(|x| *x = -1e3 / 3.0);
        let row = |error: f64, metric: f64| Trace {
            round: vec![7],
            sq_error: vec![error],
            further: vec![(Metric::Lyapunov, vec![metric])],
            ..Trace::default()
        };
        let check = |trace: &Trace, run: &Prescribed| Sanity::default().check(trace, run, scenario);
        assert_eq!(check(&row(1.0, 2.0), &run), Ok(()), "rounding is no contradiction");
        run.corrections[0] += 1e-3;
        let said = check(&row(1.0, 2.0), &run).unwrap_err().to_string();
        assert!(said.contains("sum to 1.0e-3 instead of 0 at round 7"), "{said}");
        run.corrections[0] -= 1e-3;
        let said = check(&row(1.0, f64::NAN), &run).unwrap_err().to_string();
        assert_eq!(said, "lyapunov is NaN at round 7");
        assert_eq!(check(&row(1e200, f64::INFINITY), &run), Ok(()), "it is diverging");
    }
}
