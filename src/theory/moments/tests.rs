//! Exact moments against themselves: stationary against long runs, types against
//! single clients. Simulation against them is in `tests/moments.rs`.

use super::*;
use crate::problem::arrays::NoFiles;
use crate::problem::{Settings as _, quadratic, spectrum::Spectrum};

fn quadratic(clients: usize, heterogeneity: f64) -> impl Facts {
    quadratic::Settings {
        dimension: 2,
        clients,
        spectrum: Spectrum { from: 0.5, to: 1.5 },
        gradient_heterogeneity: heterogeneity,
        hessian_heterogeneity: 0.2 * heterogeneity,
        noise: 0.7,
        multiplicative_noise: 0.3,
    }
    .build(3, &NoFiles)
    .unwrap()
}

fn scheme(clients: usize, correction: Correction, steps: u64, coin: Option<f64>) -> Scheme<'static> {
    let run = Run {
        weight: 1.0,
        work: Box::new(move |_| Work::plain(0.05, steps)),
        server_step: 1.0,
        correction,
    };
    Scheme { runs: vec![run], cohort: clients, common: true, coin, burn_in: None }
}

/// What a long run comes to is what the fixed point says.
#[test]
fn stationary_moments_are_the_limit_of_long_runs() {
    let facts = quadratic(4, 1.0);
    for (correction, steps, coin) in [
        (Correction::None, 5, None),
        (Correction::Kept, 1, None),
        (Correction::Kept, 5, None),
        (Correction::KeptFresh, 5, None),
        (Correction::Fresh, 5, None),
        (Correction::Kept, 1, Some(0.2)),
    ] {
        let scheme = scheme(4, correction, steps, coin);
        let exact = Exact::new(&facts, &scheme).unwrap();
        let long = exact.at(facts.optimum(), &[3000]).remove(0);
        let what = format!("{correction:?}, {steps}, {coin:?}");
        let found = exact.stationary().unwrap_or_else(|| panic!("{what}: none found"));
        let off = (found.sq_error / long.sq_error - 1.0).abs();
        assert!(off < 1e-9, "{what}: {} and {}", found.sq_error, long.sq_error);
        if let (Some(a), Some(b)) = (found.lyapunov, long.lyapunov) {
            assert!((a / b - 1.0).abs() < 1e-9, "{what}: {a} and {b}");
        }
    }
}
