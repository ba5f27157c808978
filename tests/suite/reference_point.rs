//! Distances from a reference point, against the iterates that are recorded.

use crate::support::{Bench, QUADRATIC, edited};

const ALGORITHM: &str = "[[algorithm.fedavg]]\nstep-size = 0.2\nlocal-steps = 2\n";

/// A manifest that records distances from this reference point.
fn manifest(reference: &str) -> String {
    let record = format!(
        "start.offset = 1.0\n[record]\nevery = 1\niterates = true\nmetrics = [\"sq-error-reference\"]\n{reference}\n[budget]\nrounds = 20"
    );
    edited(QUADRATIC, &[("start.offset = 1.0\nbudget.rounds = 20", &record)]) + ALGORITHM
}

#[test]
fn distances_are_from_the_point() {
    let bench = Bench::ran(&manifest("reference = { point = [0.5, -0.25] }"));
    bench.run(&["export", "--out", "rows.csv", "--quiet"]).expect(0);
    let rows = bench.rows("rows.csv");
    assert_eq!(rows.len(), 2 * 21);
    for row in rows {
        let theta: Vec<f64> = row["theta"]
            .trim_matches(['[', ']'])
            .split([',', ';', ' '])
            .filter(|x| !x.is_empty())
            .map(|x| x.parse().unwrap())
            .collect();
        let wanted = (theta[0] - 0.5).powi(2) + (theta[1] + 0.25).powi(2);
        let found: f64 = row["sq_error_reference"].parse().unwrap();
        assert!((found - wanted).abs() <= 1e-14 * wanted.max(1.0), "{found}, not {wanted}");
    }
}

/// The optimum of a client alone is another point than θ*, and it enters the ids of cells.
#[test]
fn distances_are_from_the_optimum_of_a_client() {
    let of = |client: u32| {
        let text = manifest(&format!("reference = {{ optimum-of-client = {client} }}"));
        let heterogeneous =
            edited(&text, &[("noise = 0.1", "gradient-heterogeneity = 1.0, noise = 0.1")]);
        let bench = Bench::ran(&heterogeneous);
        bench.run(&["export", "--out", "rows.csv", "--quiet"]).expect(0);
        bench.rows("rows.csv")
    };
    let first = of(0);
    let second = of(1);
    assert_ne!(first[0]["cell"], second[0]["cell"]);
    assert_eq!(first[20]["sq_error"], second[20]["sq_error"]);
    assert_ne!(first[20]["sq_error_reference"], first[20]["sq_error"]);
    assert_ne!(first[20]["sq_error_reference"], second[20]["sq_error_reference"]);
}

#[test]
fn reference_points_are_checked() {
    let bench = Bench::new();
    for (reference, part) in [
        ("", "`sq-error-reference` needs a point"),
        ("reference = { point = [1.0] }", "must have d = 2 numbers, not 1"),
        ("reference = { point = [1.0, inf] }", "must be finite"),
        (
            "reference = { optimum-of-client = 2 }",
            "must be the number of a client, from 0 to 1, not 2",
        ),
    ] {
        bench.write("m.toml", manifest(reference));
        let output = bench.run(&["check", "m.toml"]);
        assert_eq!(output.code, 2, "{reference}: {}", output.err);
        assert!(output.err.contains(part), "no {part:?} in\n{}", output.err);
    }
    let unused = edited(
        &manifest("reference = { point = [1.0, 1.0] }"),
        &[("metrics = [\"sq-error-reference\"]", "metrics = []")],
    );
    bench.write("m.toml", &unused);
    let output = bench.run(&["check", "m.toml"]);
    assert!(output.err.contains("`reference` has no effect without metrics"), "{}", output.err);
}
