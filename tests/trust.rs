//! Results that are not what they say: experiments that hide below others, damaged or
//! missing manifests, records and numbers of other cells. Every command names the file.

mod support;

use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use support::Bench;

/// Two cells, and a claim whose margin one flipped bit makes 4.9.
const SMALL: &str = "title = \"Small\"
seed = 3
replicates = 4
problem = { quadratic = { dimension = 2, clients = 2, noise = 0.1, spectrum = { from = 0.5, to = 2.0 } } }
start = { offset = 1.0 }
budget = { rounds = 20 }
[record]
points = 4
[[algorithm.fedavg]]
step-size = [0.05, 0.1]
local-steps = 2
[[claim.matches]]
id = \"near\"
statement = \"It ends near its exact moments\"
of = { label = \"FedAvg\" }
prediction = \"exact-moments\"
margin = 0.9
";

fn ran() -> Bench {
    let bench = Bench::new();
    bench.write("small.toml", SMALL);
    bench.run(&["run", "small.toml", "--quiet"]).expect(0);
    bench
}

fn cells(bench: &Bench, experiment: &str) -> Vec<String> {
    let entries = fs::read_dir(bench.path(experiment)).unwrap().map(|e| e.unwrap());
    let folders = entries.filter(|e| e.path().join("cell.toml").is_file());
    let mut ids: Vec<String> =
        folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    ids.sort();
    ids
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Edits a text with a checksum and corrects the checksum.
fn edit(bench: &Bench, file: &str, edit: impl Fn(&str) -> String) {
    let text = bench.read(file);
    let (body, _) = text.split_once("# sha256 ").unwrap();
    let new = edit(body);
    assert_ne!(new, body, "the edit finds its place");
    bench.write(file, &format!("{new}# sha256 {}\n", hash(new.as_bytes())));
}

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
        let said = bench.run(&arguments);
        let told = said.out.clone() + &said.err;
        assert!(codes.contains(&said.code), "{arguments:?}: {} {told}", said.code);
        assert!(told.contains(named) && !told.contains("panicked"), "{arguments:?}: {told}");
    }
}

fn copy_folder(bench: &Bench, from: &str, to: &str) {
    for file in bench.files_below(from) {
        let below = file.strip_prefix(bench.path(from)).unwrap().to_owned();
        let place = bench.path(to).join(below);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&file, place).unwrap();
    }
}

#[test]
fn nested_experiments_are_found_by_every_command() {
    let bench = Bench::new();
    let [outer, inner] = ["experiments/a.toml", "experiments/a/b.toml"];
    bench.write(outer, SMALL);
    bench.write(inner, &SMALL.replace("seed = 3", "seed = 4"));
    bench.run(&["run", outer, inner, "--quiet"]).expect(0);
    let digests = bench.run(&["digest"]).expect(0).out;
    assert_eq!(digests.lines().count(), 4, "{digests}");
    let said = bench.run(&["verify", "--all"]).expect(0);
    assert!(said.out.contains("4 of 4 cells run again: 4 bit-identical"), "{}", said.out);
    bench.run(&["report", "--quiet"]).expect(0);
    for page in ["reports/a/report.md", "reports/a/b/report.md"] {
        assert!(bench.path(page).is_file(), "{page}");
    }
    let said = bench.run(&["export", "--out", "all.csv"]).expect(0);
    assert!(said.err.contains("of 4 cells of 2 experiments"), "{}", said.err);
    let said = bench.run(&["merge", "results", "--out", "merged"]).expect(0);
    assert!(said.err.contains("4 cells copied"), "{}", said.err);
    assert_eq!(bench.run(&["digest", "merged"]).expect(0).out, digests);
    let said = bench.run(&["diff", "results", "merged"]).expect(0);
    assert!(said.out.contains("4 cells bit-identical"), "{}", said.out);
    let said = bench.run(&["run", outer, inner]).expect(0);
    assert_eq!(said.err.matches("all 2 cells are done").count(), 2, "{}", said.err);
}

#[test]
fn a_damaged_or_missing_manifest_of_results_is_an_error() {
    let bench = ran();
    let file = "results/small/experiment.toml";
    copy_folder(&bench, "results", "sound");
    let sound = bench.read_bytes(file);
    let margin = String::from_utf8(sound.clone()).unwrap().find("margin = 0.9").unwrap();
    let mut flipped = sound.clone();
    flipped[margin + "margin = ".len()] ^= 4;
    assert!(String::from_utf8(flipped.clone()).unwrap().contains("margin = 4.9"));
    fs::write(bench.path(file), &flipped).unwrap();
    refused_by_all(&bench, "small/experiment.toml: is not as it was written");
    // As a manifest it is refused too, and the sound one is taken.
    bench.write("x/experiment.toml", &String::from_utf8(flipped).unwrap());
    let said = bench.run(&["run", "x/experiment.toml", "--out", "x/out"]).expect(2);
    assert!(said.err.contains("x/experiment.toml: is not as it was written"), "{}", said.err);
    bench.run(&["run", "sound/small/experiment.toml", "--out", "y", "--quiet"]).expect(0);
    // Without its checksum, truncated, of another experiment, or gone.
    let text = String::from_utf8(sound.clone()).unwrap();
    let (body, _) = text.split_once("# sha256 ").unwrap();
    let renamed = body.replace("name = \"small\"", "name = \"other\"");
    let renamed = format!("{renamed}# sha256 {}\n", hash(renamed.as_bytes()));
    for (wrong, named) in [
        (body, "is not as it was written"),
        (&text[..text.len() / 2], "is not as it was written"),
        (&renamed, "is of the experiment \"other\""),
    ] {
        bench.write(file, wrong);
        refused_by_all(&bench, &format!("small/experiment.toml: {named}"));
    }
    fs::remove_file(bench.path(file)).unwrap();
    refused_by_all(
        &bench,
        "small/experiment.toml: does not exist, although its folder contains cells",
    );
    // A run writes it again, and keeps the cells.
    let said = bench.run(&["run", "small.toml"]).expect(0);
    assert!(said.err.contains("all 2 cells are done"), "{}", said.err);
    assert_eq!(bench.read_bytes(file), sound);
    bench.run(&["digest"]).expect(0);
}

#[test]
fn settings_that_are_not_of_the_cells_id_are_refused() {
    let bench = ran();
    copy_folder(&bench, "results", "sound");
    let before = bench.run(&["digest"]).expect(0).out;
    let id = cells(&bench, "results/small").remove(0);
    let file = format!("results/small/{id}/cell.toml");
    edit(&bench, &file, |text| text.replace("local-steps = 2", "local-steps = 3"));
    refused_by_all(&bench, &format!("where those of {id} belong"));
    // A run finds it too, quarantines it and computes the cell again.
    let said = bench.run(&["run", "small.toml"]).expect(0);
    assert!(said.err.contains("has settings of cell") && said.err.contains("run again"));
    assert_eq!(bench.run(&["digest"]).expect(0).out, before);
}

#[test]
fn numbers_of_another_cell_are_refused() {
    let bench = ran();
    copy_folder(&bench, "results", "sound");
    let before = bench.run(&["digest"]).expect(0).out;
    let ids = cells(&bench, "results/small");
    let [to, from] = [0, 1].map(|i| format!("results/small/{}", ids[i]));
    let bytes = bench.read_bytes(&format!("{from}/traces.parquet"));
    fs::write(bench.path(&format!("{to}/traces.parquet")), &bytes).unwrap();
    let value = |text: &str, key: &str| -> String {
        let line = text.lines().find(|l| l.starts_with(&format!("{key} = "))).unwrap();
        line.to_owned()
    };
    let theirs = bench.read(&format!("{from}/cell.toml"));
    edit(&bench, &format!("{to}/cell.toml"), |text| {
        let mut text = text.to_owned();
        for key in ["digest", "bytes", "sha256"] {
            text = text.replace(&value(&text, key), &value(&theirs, key));
        }
        text
    });
    let named = format!("traces.parquet: has rows of cell {} where those of {}", ids[1], ids[0]);
    let named = named.replace("traces.parquet: ", "");
    refused_by_all(&bench, &named);
    let said = bench.run(&["run", "small.toml"]).expect(0);
    assert!(said.err.contains("has rows of cell") && said.err.contains("run again"));
    assert_eq!(bench.run(&["digest"]).expect(0).out, before);
}

/// A digest that is not that of the numbers beside it.
#[test]
fn a_digest_of_other_numbers_is_refused() {
    let bench = ran();
    let id = cells(&bench, "results/small").remove(0);
    let digest = bench.run(&["digest"]).expect(0).out;
    let digest = digest.lines().find(|l| l.starts_with(&id)).unwrap()[17..].to_owned();
    let other: String = digest.chars().rev().collect();
    let file = format!("results/small/{id}/cell.toml");
    edit(&bench, &file, |text| text.replace(&digest, &other));
    let named = format!("does not hold the numbers of cell {id}");
    for (arguments, code) in [
        (vec!["digest"], 4),
        (vec!["report", "--quiet"], 2),
        (vec!["export", "--out", "all.parquet"], 4),
        (vec!["verify", "--all"], 4),
    ] {
        let said = bench.run(&arguments).expect(code);
        assert!((said.out + &said.err).contains(&named), "{arguments:?}");
    }
}

/// The same in a pack, whose index is named by its hash: two cells are exchanged.
#[test]
fn exchanged_cells_of_a_pack_are_refused() {
    let bench = Bench::new();
    let steps: Vec<String> = (1..=1001).map(|i| format!("{:?}", f64::from(i) * 1e-4)).collect();
    let many = SMALL.replace("[0.05, 0.1]", &format!("[{}]", steps.join(", ")));
    let many = many.split("[[claim").next().unwrap().replace("rounds = 20", "rounds = 2");
    bench.write("many.toml", &many);
    bench.run(&["run", "many.toml", "--quiet"]).expect(0);
    let before = bench.run(&["digest"]).expect(0).out;
    copy_folder(&bench, "results", "sound");
    let entries = fs::read_dir(bench.path("results/many")).unwrap().map(|e| e.unwrap().path());
    let is_pack = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().starts_with("pack-");
    let pack = entries.filter(is_pack).min().unwrap();
    let index = fs::read_to_string(pack.join("cells.jsonl")).unwrap();
    let parsed: Vec<serde_json::Value> =
        index.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for keys in [&["id"][..], &["id", "cell"]] {
        let mut lines = parsed.clone();
        for key in keys {
            let (a, b) = (lines[1][key].clone(), lines[2][key].clone());
            (lines[1][key], lines[2][key]) = (b, a);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(pack.join("cells.jsonl"), &text).unwrap();
        let place = pack.with_file_name(format!("pack-{}", &hash(text.as_bytes())[..16]));
        fs::rename(&pack, &place).unwrap();
        let said = bench.run(&["digest"]).expect(4);
        let named = if keys.len() == 1 { "has settings of cell" } else { "has rows of cell" };
        assert!(said.err.contains(named), "{}", said.err);
        bench.run(&["report", "--quiet"]).expect(2);
        let said = bench.run(&["run", "many.toml"]).expect(0);
        assert!(said.err.contains(named) && said.err.contains("run again"), "{}", said.err);
        assert_eq!(bench.run(&["digest"]).expect(0).out, before);
        fs::remove_dir_all(bench.path("results")).unwrap();
        copy_folder(&bench, "sound", "results");
    }
}
