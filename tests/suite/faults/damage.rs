//! Results that something else than a run changes: files that are damaged or gone, a full disk, the times of files, and
//! numbers that the program does not reproduce.

use super::{SLOW, many, nothing_half_written};
use crate::support::process::Program;
use crate::support::{Bench, Finished, LOGISTIC, edited};
use exactfed::store::Provenance;
use std::sync::Arc;
use std::time::Duration;

/// In whichever way a pack, of one cell or of many, is damaged or gone, commands say so, and the next run computes the
/// cells of that pack alone.
#[test]
fn what_is_damaged_is_set_aside_and_run_again() {
    let few = edited(SLOW, &[("rounds = 5000", "rounds = 20")]);
    for (text, cells) in [(few, 24), (many(20), 1080)] {
        let bench = Bench::ran(&text);
        let calm = bench.digests("results");
        assert_eq!(calm.len(), cells);
        for harm in ["flip", "cut", "empty", "gone"] {
            let kept = bench.cells("results/m");
            let path = &kept[0];
            let bytes = bench.read_bytes(path);
            match harm {
                "flip" => bench.damage(path),
                "cut" => bench.write(path, &bytes[..bytes.len() - 1]),
                "empty" => bench.write(path, ""),
                _ => std::fs::remove_file(bench.path(path)).unwrap(),
            }
            // When a pack is gone, its name is not known any more, but the ids of its cells are.
            let is_gone = harm == "gone";
            let report = bench.run(&["report", "--quiet"]).expect(2);
            if is_gone {
                report.warns("a run stored all cells, and ").warns("gone, so that a file was");
                let stored = bench.digests("results");
                let gone = calm.iter().filter(|line| !stored.contains(line)).count();
                report.warns(&format!("and {gone} of them "));
                let verified = bench.run(&["verify", "--sample", "1"]).expect(4);
                verified.prints("a run stored all cells, and ");
                if gone == 1 {
                    let cell = calm.iter().find(|line| !stored.contains(line)).unwrap();
                    report
                        .warns(&format!("is gone, so that a file was removed: {} (", &cell[..16]));
                }
            } else {
                report.warns(path);
            }
            let output = bench.run(&["run", "m.toml"]).expect(0);
            let reported =
                ["moved to", "and run again"].iter().all(|text| output.err.contains(text));
            assert!(is_gone || reported, "{harm}: {}", output.err);
            assert_eq!(bench.digests("results"), calm, "{harm}");
            let now = bench.cells("results/m");
            let stayed = kept[1..].iter().filter(|file| now.contains(file)).count();
            assert_eq!(stayed, kept.len() - 1, "{harm}: others were touched");
        }
    }
}

/// A cell counts as removed only if a run has ended with all cells before. A run of a shard lacks cells that nobody
/// removed, and so does the first run with another number of replicates: `report` accepts both.
#[test]
fn cells_that_were_never_run_are_not_removed_ones() {
    let bench = Bench::new();
    bench.write("m.toml", edited(SLOW, &[("rounds = 5000", "rounds = 20")]));
    bench.compute(&["m.toml", "--shard", "1/2"]);
    bench.report();
    assert!(bench.read("reports/m/report.md").contains(" of 24 cells have no results yet"));
    bench.compute(&["m.toml"]);
    bench.report();
    std::fs::remove_file(bench.path(&bench.cells("results/m")[0])).unwrap();
    bench.run(&["report", "--quiet"]).expect(2);
    bench.compute(&["m.toml"]);
    bench.report();
    // Other numbers of replicates are other cells.
    bench.compute(&["m.toml", "--shard", "1/2", "--replicates", "3"]);
    bench.report();
    bench.compute(&["m.toml"]);
    bench.report();
}

/// A limit of the size of files stands for a full disk, because it needs no rights.
#[test]
fn a_full_disk_costs_a_message_and_keeps_what_is_stored() {
    let bench = Bench::new();
    let text = SLOW.replace("rounds = 5000", "rounds = 400");
    let fits = text.replace("record.points = 4", "record.points = 1");
    let grows = text.replace("record.points = 4", "record = { every = 1, iterates = true }");
    bench.write("fits.toml", &fits);
    bench.write("grows.toml", &grows);
    let binary = env!("CARGO_BIN_EXE_exactfed");
    let script = format!("trap '' XFSZ; ulimit -f 32; exec '{binary}' run fits.toml grows.toml");
    let run = Program::new("sh").args(["-c", &script]).folder(&bench.folder);
    Finished::from(run.run())
        .expect(4)
        .warns("File too large")
        .warns("grows: 0 of 24 cells are stored");
    nothing_half_written(&bench.path("results/grows"));
    assert_eq!(bench.digests("results").len(), 24);
    bench.compute(&["fits.toml", "grows.toml"]);
    assert_eq!(bench.digests("results").len(), 48);
}

/// `run` and `report` do the same whatever the times of the stored files are.
#[test]
fn a_clock_that_jumps_changes_nothing() {
    let bench = Bench::of_smoke(&["logistic"]);
    bench.report();
    let page = bench.read("reports/smoke/logistic/report.md");
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(86400);
    let far_ahead = std::time::SystemTime::now() + Duration::from_secs(3_000_000_000);
    for time in [long_ago, far_ahead] {
        for file in bench.files_below("results") {
            let file = std::fs::File::options().append(true).open(file).unwrap();
            file.set_modified(time).unwrap();
        }
        bench.run(&["run", LOGISTIC]).expect(0).warns("all 28 cells are done");
        bench.report();
        assert_eq!(bench.read("reports/smoke/logistic/report.md"), page);
    }
}

#[test]
fn verify_runs_cells_again_and_finds_other_numbers() {
    let bench = Bench::of_smoke(&["logistic"]);
    let output = bench.run(&["verify", "--sample", "5", "--quiet"]).expect(0);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("", ""));
    bench.run(&["verify", "--all"]).expect(0).prints("28 of 28 cells run again: 28 bit-identical");
    // The results of one cell are stored soundly, but the last bit of a number is wrong.
    let id = forge(&bench);
    let output = bench.run(&["verify", "--all", "--quiet"]).expect(1);
    let wanted = format!("smoke/logistic: cell {id} ");
    assert!(output.out.contains(&wanted), "{}", output.out);
    assert!(output.out.contains("replicate 1, round "), "{}", output.out);
    assert!(output.out.contains("written by exactfed forger, commit none"), "{}", output.out);
    assert!(output.out.contains("27 bit-identical, 1 different"), "{}", output.out);
}

/// Stores a cell again, as a run would, with the last bit of one number flipped, and returns the id of the cell.
fn forge(bench: &Bench) -> String {
    let id = std::cell::OnceCell::new();
    bench.forge("results", |cell, stored| {
        let number = &mut stored.traces[1].sq_error[1];
        *number = f64::from_bits(number.to_bits() ^ 1);
        stored.record.provenance =
            Arc::new(Provenance { version: "forger".into(), commit: "none".into(), dirty: false });
        id.set(cell.id).is_ok()
    });
    id.into_inner().unwrap().to_string()
}
