//! Results that are not what they say: experiments that hide below others, damaged or
//! missing manifests, records and numbers of other cells. Every command names the file.

use crate::support::{Bench, SMALL, array, edited, sealed};
use std::fs;

/// Every command that reads results ends with an error that names this.
#[track_caller]
fn refused_by_all(bench: &Bench, named: &str) {
    for (arguments, codes) in [
        (vec!["digest"], [4, 4]),
        (vec!["report", "--quiet"], [2, 4]),
        (vec!["verify", "--all"], [4, 1]),
        (vec!["export", "--out", "all.parquet"], [2, 4]),
        (vec!["merge", "results", "--out", "merged"], [2, 4]),
        (vec!["diff", "sound", "results"], [2, 1]),
    ] {
        let output = bench.run(&arguments);
        let text = output.out.clone() + &output.err;
        assert!(codes.contains(&output.code), "{arguments:?}: {} {text}", output.code);
        assert!(text.contains(named) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn nested_experiments_are_found_by_every_command() {
    let bench = Bench::new();
    let [outer, inner] = ["experiments/a.toml", "experiments/a/b.toml"];
    bench.write(outer, SMALL);
    bench.write(inner, SMALL.replace("seed = 3", "seed = 4"));
    bench.compute(&[outer, inner]);
    let digests = bench.digests("results");
    assert_eq!(digests.len(), 4, "{digests:?}");
    bench.run(&["verify", "--all"]).expect(0).prints("4 of 4 cells run again: 4 bit-identical");
    bench.report();
    for page in ["reports/a/report.md", "reports/a/b/report.md"] {
        assert!(bench.path(page).is_file(), "{page}");
    }
    bench.run(&["export", "--out", "all.csv"]).expect(0).warns("of 4 cells of 2 experiments");
    bench.run(&["merge", "results", "--out", "merged"]).expect(0).warns("4 cells copied");
    assert_eq!(bench.digests("merged"), digests);
    bench.run(&["diff", "results", "merged"]).expect(0).prints("4 cells bit-identical");
    let output = bench.run(&["run", outer, inner]).expect(0);
    assert_eq!(output.err.matches("all 2 cells are done").count(), 2, "{}", output.err);
}

#[test]
fn a_damaged_or_missing_manifest_of_results_is_an_error() {
    let bench = Bench::ran(SMALL);
    let file = "results/m/experiment.toml";
    bench.copy_folder("results", "sound");
    let sound = bench.read_bytes(file);
    let margin = String::from_utf8(sound.clone()).unwrap().find("margin = 0.9").unwrap();
    let mut flipped = sound.clone();
    flipped[margin + "margin = ".len()] ^= 4;
    assert!(String::from_utf8(flipped.clone()).unwrap().contains("margin = 4.9"));
    bench.write(file, &flipped);
    refused_by_all(&bench, "m/experiment.toml: is not as it was written");
    // As a manifest it is refused too, and the sound one is taken.
    bench.write("x/experiment.toml", &flipped);
    let output = bench.run(&["run", "x/experiment.toml", "--out", "x/out"]).expect(2);
    output.warns("x/experiment.toml: is not as it was written");
    bench.compute(&["sound/m/experiment.toml", "--out", "y"]);
    // Without its checksum, truncated, of another experiment, or gone.
    let text = String::from_utf8(sound.clone()).unwrap();
    let (body, _) = text.split_once("# sha256 ").unwrap();
    let renamed = sealed(&edited(body, &[("name = \"m\"", "name = \"other\"")]));
    for (wrong, named) in [
        (body, "is not as it was written"),
        (&text[..text.len() / 2], "is not as it was written"),
        (&renamed, "is of the experiment \"other\""),
    ] {
        bench.write(file, wrong);
        refused_by_all(&bench, &format!("m/experiment.toml: {named}"));
    }
    fs::remove_file(bench.path(file)).unwrap();
    refused_by_all(&bench, "m/experiment.toml: does not exist, although its folder contains cells");
    // A run writes it again, and keeps the cells.
    bench.run(&["run", "m.toml"]).expect(0).warns("all 2 cells are done");
    assert_eq!(bench.read_bytes(file), sound);
    bench.run(&["digest"]).expect(0);
}

#[test]
fn settings_that_are_not_of_the_cells_id_are_refused() {
    let bench = Bench::ran(SMALL);
    bench.copy_folder("results", "sound");
    let before = bench.digests("results");
    let line = bench.digests("results").remove(0);
    let id = line.split(' ').next().unwrap();
    let pack = bench.pack_of("results/m", id);
    bench.reindex(&pack, &[("local-steps = 2", "local-steps = 3")]);
    refused_by_all(&bench, &format!("where those of {id} belong"));
    // A run finds it too, quarantines it and computes the cell again.
    bench.run(&["run", "m.toml"]).expect(0).warns("has settings of cell").warns("run again");
    assert_eq!(bench.digests("results"), before);
}

/// A digest that is not that of the numbers beside it.
#[test]
fn a_digest_of_other_numbers_is_refused() {
    let bench = Bench::ran(SMALL);
    let line = bench.digests("results").remove(0);
    let (id, digest) = line.split_once(' ').unwrap();
    let other: String = digest.chars().rev().collect();
    bench.reindex(&bench.pack_of("results/m", id), &[(digest, &other)]);
    let named = format!("does not hold the numbers of cell {id}");
    for (arguments, code) in [
        (vec!["digest"], 4),
        (vec!["report", "--quiet"], 2),
        (vec!["export", "--out", "all.parquet"], 4),
        (vec!["verify", "--all"], 4),
    ] {
        let output = bench.run(&arguments).expect(code);
        assert!((output.out + &output.err).contains(&named), "{arguments:?}");
    }
}

/// Two cells of a pack are exchanged, and its checksum and hash are right.
#[test]
fn exchanged_cells_of_a_pack_are_refused() {
    let many = array((1..=1001).map(|i| f64::from(i) * 1e-4));
    let many = edited(SMALL, &[("[0.05, 0.1]", &many), ("rounds = 20", "rounds = 2")]);
    let bench = Bench::ran(many.split("[[claim").next().unwrap());
    let before = bench.digests("results");
    bench.copy_folder("results", "sound");
    let pack = bench.largest_pack("results/m");
    let index = {
        let bytes = bench.read_bytes(&pack);
        let key = b"{\"id\":";
        let from = bytes.windows(key.len()).position(|part| part == key).unwrap();
        let text = String::from_utf8_lossy(&bytes[from..]).into_owned();
        text.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let parsed: Vec<serde_json::Value> =
        index.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for keys in [&["id"][..], &["id", "cell"]] {
        let mut lines = parsed.clone();
        for key in keys {
            let (a, b) = (lines[0][key].clone(), lines[1][key].clone());
            (lines[0][key], lines[1][key]) = (b, a);
        }
        let line = |value: &serde_json::Value| {
            let text = |key: &str| format!("\"{key}\":{}", value[key]);
            let keys = ["id", "label", "digest", "rows", "seconds", "cell"];
            format!("{{{}}}", keys.map(text).join(","))
        };
        let old = index.join("\n");
        let new: Vec<String> = lines.iter().map(line).collect();
        bench.reindex(&pack, &[(&old, &new.join("\n"))]);
        let named = if keys.len() == 1 { "has settings of cell" } else { "has rows of cell" };
        bench.run(&["digest"]).expect(4).warns(named);
        bench.run(&["report", "--quiet"]).expect(2);
        bench.run(&["run", "m.toml"]).expect(0).warns(named).warns("run again");
        assert_eq!(bench.digests("results"), before);
        fs::remove_dir_all(bench.path("results")).unwrap();
        bench.copy_folder("sound", "results");
    }
}
