use exactfed_core::federated::*;
use exactfed_core::problem::logistic::{Logistic, Loss};
use exactfed_core::rng::Stream;
use std::time::Instant;
fn main() {
    let d: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut rng = Stream::shared_instance(3);
    let loss = Loss { l2: 0.1, margin: 0.0, batch: 1 };
    let held = (0..20).map(|_| (0..250 * d).map(|_| 0.03 * rng.gaussian()).collect()).collect();
    let p = Logistic::new(d, 20, loss, held).unwrap();
    let start = vec![0.0; d];
    let terms = Terms::fedavg(0.1, 100);
    let from: Vec<_> = (0..10)
        .map(|replicate| Conditions { seed: 5, replicate, start: &start, rounds: 9, copy: 0 })
        .collect();
    for _ in 0..4 {
        let rounds = 20;
        let mut runs: Vec<_> = from.iter().map(|f| Federated::new(&p, terms.clone(), f)).collect();
        let t = Instant::now();
        for run in &mut runs {
            for _ in 0..rounds {
                run.round();
            }
        }
        let a = t.elapsed().as_secs_f64() * 1e9 / (rounds * 20 * 100 * 10) as f64;
        let mut tog = Together::new(&p, &terms, &from);
        let t = Instant::now();
        for _ in 0..rounds {
            tog.round();
        }
        let b = t.elapsed().as_secs_f64() * 1e9 / (rounds * 20 * 100 * 10) as f64;
        println!("d {d}: apart {a:.0} ns, together {b:.0} ns, ratio {:.2}", b / a);
    }
}
