//! `export`: one file of everything, driven as a user drives it. That its numbers are
//! the cells' bit for bit is tested in `store`.

mod support;

use support::Bench;

fn filled() -> Bench {
    let bench = Bench::new();
    for name in ["logistic.toml", "diverging.toml"] {
        let manifest = bench.bring(name);
        bench.run(&["run", &manifest, "--quiet"]).expect(0);
    }
    bench
}

/// The lines of a CSV file, by column.
fn column(text: &str, name: &str) -> Vec<String> {
    let mut reader = text.lines();
    let place = reader.next().unwrap().split(',').position(|n| n == name).unwrap();
    reader.map(|line| line.split(',').nth(place).unwrap().to_owned()).collect()
}

#[test]
fn all_cells_in_one_file_with_their_digests() {
    let bench = filled();
    let said = bench.run(&["export", "--out", "all.csv"]).expect(0);
    assert!(said.err.contains("of 30 cells of 2 experiments"), "{}", said.err);
    let text = bench.read("all.csv");
    let mut digests: Vec<String> = column(&text, "cell")
        .into_iter()
        .zip(column(&text, "digest"))
        .map(|(cell, digest)| format!("{cell} {digest}"))
        .collect();
    digests.sort();
    digests.dedup();
    let told = bench.run(&["digest"]).expect(0).out;
    assert_eq!(digests, told.lines().collect::<Vec<_>>());
    assert!(text.starts_with("experiment,cell,problem,algorithm,label,clients,step_size"));
    assert!(column(&text, "last_run").iter().all(|x| x == "true"));
    let diverged = column(&text, "outcome").iter().filter(|o| *o == "diverged").count();
    assert!(diverged > 0 && diverged < text.lines().count());
    // The last errors of summary.csv come from these rows.
    assert!(column(&text, "sq_error").iter().all(|x| x.parse::<f64>().is_ok()));

    let said = bench.run(&["export", "--out", "all.parquet"]).expect(0);
    assert!(said.err.contains(&format!("{} rows", text.lines().count() - 1)), "{}", said.err);
    let bytes = std::fs::read(bench.path("all.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    bench.run(&["export", "--out", "all.parquet", "--quiet"]).expect(0);
    assert_eq!(std::fs::read(bench.path("all.parquet")).unwrap(), bytes, "the same bytes again");
}

#[test]
fn one_experiment_and_cells_of_earlier_settings() {
    let bench = filled();
    let manifest = "experiments/smoke/diverging.toml";
    bench.run(&["run", manifest, "--set", "seed=8", "--quiet"]).expect(0);
    let only = ["export", "--experiment", "smoke/diverging", "--out", "one.csv"];
    let said = bench.run(&only).expect(0);
    assert!(said.err.contains("4 cells of 1 experiments"), "{}", said.err);
    let text = bench.read("one.csv");
    for (seed, last) in column(&text, "seed").iter().zip(column(&text, "last_run")) {
        assert_eq!(last == "true", seed == "8", "those of the last run");
    }
}

/// What is damaged is left out and told; the rest is there.
#[test]
fn a_damaged_cell_is_left_out_and_told() {
    let bench = filled();
    let digests = bench.run(&["digest"]).expect(0).out;
    let cell = digests.lines().next().unwrap().split(' ').next().unwrap();
    for name in ["logistic", "diverging"] {
        let file = bench.path(&format!("results/smoke/{name}/{cell}/traces.parquet"));
        let Ok(mut bytes) = std::fs::read(&file) else { continue };
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    let said = bench.run(&["export", "--out", "all.csv"]).expect(4);
    assert!(said.err.contains(cell) && said.err.contains("hash"), "{}", said.err);
    assert!(said.err.contains("1 damaged cells are left out"), "{}", said.err);
    let text = bench.read("all.csv");
    assert!(!text.contains(cell) && said.err.contains("of 29 cells"), "{}", said.err);
}

#[test]
fn what_cannot_be_exported_costs_exit_two_and_writes_nothing() {
    let bench = filled();
    bench.write("empty/driftbench.toml", &bench.read("results/driftbench.toml"));
    let before = bench.files();
    for (arguments, message) in [
        (vec!["--out", "all.json"], "must end in .parquet or .csv"),
        (vec!["--out", "absent/all.csv"], "absent"),
        (vec!["absent", "--out", "all.csv"], "there are no results here"),
        (vec!["empty", "--out", "all.csv"], "no cell has results yet"),
        (
            vec!["--experiment", "smoke/logistik", "--out", "all.csv"],
            "did you mean `smoke/logistic`?",
        ),
        (vec![], "--out"),
    ] {
        let all: Vec<&str> = std::iter::once("export").chain(arguments).collect();
        let said = bench.run(&all).expect(2);
        assert!(said.err.starts_with("error: ") && said.err.contains(message), "{}", said.err);
        assert_eq!(bench.files(), before, "{all:?} left something");
    }
}
