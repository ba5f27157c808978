//! Linear problems from arrays: Markov chains in `[problem.mdp]` and atoms of a law in `[problem.atoms]` run
//! where their numbers are right, and are refused with the array, the index and the number where they are not.

use super::Data;
use crate::npz::{Named, doubles, singles};

/// The table of a problem that reads Markov chains from `chains.npz`.
const CHAINS: &str = "[problem.mdp]\nfile = \"chains.npz\"";

/// Arrays of two clients on three states with two features, as NumPy would store them.
fn chains(p: Vec<f64>, mu: Vec<f64>, gamma: f64) -> [Named<'static>; 5] {
    [
        ("phi", &[3, 2], vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5]),
        ("P", &[2, 3, 3], p),
        ("r", &[2, 3], vec![1.0, 0.0, 0.5, 0.2, 0.1, 0.9]),
        ("mu", &[2, 3], mu),
        ("gamma", &[], vec![gamma]),
    ]
}

/// Transitions of both clients that are doubly stochastic: their stationary distribution is uniform.
fn doubly_stochastic() -> Vec<f64> {
    [0.2, 0.3, 0.5, 0.3, 0.5, 0.2, 0.5, 0.2, 0.3].repeat(2)
}

/// The transitions of `doubly_stochastic` with another number at one place.
fn with_entry(at: usize, number: f64) -> Vec<f64> {
    let mut transitions = doubly_stochastic();
    transitions[at] = number;
    transitions
}

/// The bytes of `chains.npz` in double precision.
fn archive_of_chains(p: Vec<f64>, mu: Vec<f64>, gamma: f64) -> Vec<u8> {
    doubles(&chains(p, mu, gamma))
}

#[test]
fn chains_from_a_file_run() {
    let bytes = archive_of_chains(doubly_stochastic(), vec![1.0 / 3.0; 6], 0.9);
    Data::new(CHAINS, "chains.npz", &bytes).accepted();
}

#[test]
fn chains_that_are_wrong_are_refused() {
    let third = vec![1.0 / 3.0; 6];
    let wheel = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0].repeat(2);
    let islands = [1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.5].repeat(2);
    let mut other = third.clone();
    other[4] = 0.4;
    for (bytes, message) in [
        (
            archive_of_chains(with_entry(13, 0.6), third.clone(), 0.9),
            "`P`[1, 1] sums to 1.0999999999999999; a row must sum to one",
        ),
        (
            archive_of_chains(with_entry(2, -0.5), third.clone(), 0.9),
            "`P`[0, 0, 2] is -0.5; a probability is 0 or more",
        ),
        (
            archive_of_chains(with_entry(2, f64::NAN), third.clone(), 0.9),
            "`P`[0, 0, 2] is NaN; every number",
        ),
        (
            archive_of_chains(doubly_stochastic(), third.clone(), 1.0),
            "`gamma` is 1; a discount is in [0, 1)",
        ),
        (
            archive_of_chains(doubly_stochastic(), other, 0.9),
            "`mu`[1, 1] is 0.4, but the stationary distribution of `P`[1] has 0.333",
        ),
        (archive_of_chains(wheel, third.clone(), 0.9), "`P`[0] is periodic"),
        (
            archive_of_chains(islands, third.clone(), 0.9),
            "`P`[0] has no unique stationary distribution",
        ),
        (doubles(&[("phi", &[3, 2], vec![0.0; 6])]), "there is no array `P`, only phi"),
        (doubles(&[("phi", &[6], vec![0.0; 6])]), "`phi` has the shape [6]; expected (S, d)"),
        (b"PK\x03\x04 no more".to_vec(), "chains.npz: it is not a zip archive"),
    ] {
        let output = Data::new(CHAINS, "chains.npz", &bytes).refused(message);
        output.warns("mine.toml:6:8 (problem.mdp.file)");
    }
}

/// Rows of float32 sum to one within float32's rounding. A larger difference is refused, with a
/// message that has enough digits to show it.
#[test]
fn chains_in_single_precision_run() {
    let p = [0.1, 0.2, 0.7, 0.2, 0.7, 0.1, 0.7, 0.1, 0.2].repeat(2);
    let sum = p[..3].iter().fold(0.0, |sum, x| sum + f64::from(*x as f32));
    assert!((sum - 1.0).abs() > 1e-9, "{sum} is no test");
    let single = |p| singles(&chains(p, vec![1.0 / 3.0; 6], 0.9));
    Data::new(CHAINS, "chains.npz", &single(p.clone())).accepted();
    let mut off = p;
    off[0] += 2e-6;
    let output = Data::new(CHAINS, "chains.npz", &single(off)).refused("`P`[0, 0] sums to 1.00000");
    assert!(!output.err.contains("sums to 1.000000;"), "{}", output.err);
}

#[test]
fn a_singular_system_is_refused() {
    law_of_matrices([1.0, -1.0]).refused("the clients' mean matrix is singular");
    law_of_matrices([1.0, 2.0]).accepted();
}

/// Two clients with one unknown and one atom each, whose 1 × 1 matrices are these.
fn law_of_matrices(matrices: [f64; 2]) -> Data {
    let ones = vec![1.0, 1.0];
    let arrays: [Named<'_>; 3] = [
        ("A", &[2, 1, 1, 1], matrices.to_vec()),
        ("b", &[2, 1, 1], ones.clone()),
        ("p", &[2, 1], ones),
    ];
    Data::new("[problem.atoms]\nfile = \"lsa.npz\"", "lsa.npz", &doubles(&arrays))
}
