//! Which files and seeds make which instance of a problem: files by name and by content, the copies of files and
//! the optima that results keep, and an instance for each replicate.

use super::{Data, TABLE, final_errors_in, manifest, records, records_in};
use crate::support::{Bench, QUADRATIC, edited};

/// Where the file varies, pages and exports name each file by as few folders as tell the files apart, and not by the
/// hash of its content.
#[test]
fn files_that_vary_are_named() {
    for (paths, names) in [
        (["data/first.csv", "data/second.csv"], ["first.csv", "second.csv"]),
        (["low/records.csv", "high/records.csv"], ["low/records.csv", "high/records.csv"]),
    ] {
        let problem = format!(
            "[problem.logistic-dataset]\nl2 = 0.1\n[problem.logistic-dataset.dataset]\nclients = 2\nfile = {paths:?}"
        );
        let bench = Bench::new();
        bench.write("mine.toml", manifest(&problem));
        for (place, path) in paths.iter().enumerate() {
            let mut table = String::from("a,label\n");
            (0..20).for_each(|i| table += &format!("{},{}\n", place + i % 7, i % 2));
            bench.write(path, table);
        }
        bench.compute(&["mine.toml"]);
        bench.report();
        let page = bench.read("reports/mine/report.md");
        bench.run(&["export", "--out", "frame.csv"]).expect(0);
        let frame = bench.read("frame.csv");
        for name in names {
            assert!(page.contains(name) && frame.contains(name), "{name}\n{page}\n{frame}");
        }
        assert!(!page.contains("sha256:") && !frame.contains("sha256:"), "{page}\n{frame}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_path() {
    let bench = Bench::new();
    bench.write("folder/mine.toml", manifest(&records("clients = 2")));
    let output = bench.run(&["check", "folder/mine.toml"]).expect(2);
    output.warns("folder/r.csv cannot be read: there is no such file");
    bench.write("folder/r.csv", TABLE);
    bench.write("folder/mine.toml", manifest(&records_in("r.xls", "clients = 2")));
    bench.write("folder/r.xls", "");
    bench.run(&["check", "folder/mine.toml"]).expect(2).warns("must end in .npz, .csv");
}

/// A cell's id follows the file's bytes and not its name.
#[test]
fn cells_follow_the_bytes_of_their_file() {
    let base = first_cell_id("r.csv", TABLE);
    assert_eq!(first_cell_id("other.csv", TABLE), base);
    assert_ne!(first_cell_id("r.csv", &TABLE.replace("5.5", "5.6")), base);
}

/// The id of the first cell that `plan` prints for a manifest on this table in a file of this name.
fn first_cell_id(file: &str, table: &str) -> String {
    let data = Data::of_records("features = [\"age\"], clients = 2", file, table.as_bytes());
    let output = data.bench.run(&["plan", "mine.toml"]).expect(0);
    output.out.lines().nth(1).unwrap().trim().split(' ').next().unwrap().to_owned()
}

/// A report reads the copy that the results keep of a data file: the page has the same bytes when the file is changed
/// or gone, and when the report is made in another folder. Without a sound copy `report` names the file, and `verify`
/// counts the cell as not comparable.
#[test]
fn reports_outlive_their_data() {
    let data = Data::new(&records("features = [\"age\"], clients = 2"), "r.csv", TABLE.as_bytes());
    data.accepted();
    let bench = &data.bench;
    let page = bench.read("reports/mine/report.md");
    assert!(page.contains("Heterogeneity of the clients"), "{page}");
    for change in [Some(TABLE.replace("5.5", "5.6")), None] {
        match change {
            Some(table) => bench.write("r.csv", &table),
            None => std::fs::remove_file(bench.path("r.csv")).unwrap(),
        }
        bench.report();
        assert_eq!(bench.read("reports/mine/report.md"), page);
        bench.run(&["verify"]).expect(0).prints("1 of 1 cells run again: 1 bit-identical");
    }
    let elsewhere = Bench::new();
    let results = bench.path("results");
    elsewhere.run(&["report", results.to_str().unwrap(), "--quiet"]).expect(0);
    assert_eq!(elsewhere.read("reports/mine/report.md"), page);
    elsewhere.run(&["merge", results.to_str().unwrap(), "--out", "results", "-q"]).expect(0);
    elsewhere.run(&["report", "--out", "merged", "--quiet"]).expect(0);
    assert_eq!(elsewhere.read("merged/mine/report.md"), page);
    elsewhere.run(&["diff", results.to_str().unwrap(), "results"]).expect(0);

    let copies = bench.files_below("results/.data");
    assert_eq!(copies.len(), 1);
    std::fs::write(&copies[0], "damaged").unwrap();
    let output = bench.run(&["report", "--quiet"]).expect(2);
    let text = "r.csv cannot be read: there is no such file; and these results have no sound copy";
    assert!(output.err.contains("error: mine cannot be reported: "), "{}", output.err);
    assert!(output.err.contains(text), "{}", output.err);
    let output = bench.run(&["verify"]).expect(4);
    output
        .prints("cannot be run: ")
        .prints(text)
        .prints("0 bit-identical, 0 different, 1 not comparable");
    // Once the file is there again, a run heals the copy.
    bench.write("r.csv", TABLE);
    bench.compute(&["mine.toml"]);
    std::fs::remove_file(bench.path("r.csv")).unwrap();
    bench.report();
}

/// θ* of many unknowns is kept in the results folder, in a file for each instance. The file changes no digest and no
/// page: runs with it, with a damaged one and without one give the same, and leave the same file.
#[test]
fn optima_are_kept() {
    let wide = "[problem.synthetic]\nalpha = 1.0\nbeta = 1.0\nclients = 3\ndimension = 10\n\
                classes = 4\nrecords = { equal = 30 }\nl2 = 0.01";
    let bench = Bench::new();
    bench.write("mine.toml", manifest(wide));
    bench.compute(&["mine.toml"]);
    bench.report();
    let digests = bench.digests("results");
    let page = bench.read("reports/mine/report.md");
    let kept = bench.files_below("results/.optima");
    let [file] = &kept[..] else { panic!("{kept:?}") };
    let bytes = std::fs::read(file).unwrap();
    let run_again_and_compare = || {
        bench.compute(&["mine.toml", "--force"]);
        bench.report();
        assert_eq!(bench.digests("results"), digests);
        assert_eq!(bench.read("reports/mine/report.md"), page);
        assert_eq!(std::fs::read(file).unwrap(), bytes);
    };
    run_again_and_compare();
    std::fs::write(file, &bytes[..bytes.len() - 8]).unwrap();
    run_again_and_compare();
    std::fs::remove_file(file).unwrap();
    run_again_and_compare();
    // Another seed is another instance.
    bench.compute(&["mine.toml", "--set", "seed=2"]);
    assert_eq!(bench.files_below("results/.optima").len(), 2);
}

/// With an instance for each replicate, replicates differ in the problem, and more replicates leave the first ones as
/// they were.
#[test]
fn instances_per_replicate_differ() {
    let bench = Bench::new();
    let own = "replicates = 3\ninstance = \"per-replicate\"\noracle = \"exact\"";
    let changes = [
        ("replicates = 2", own),
        ("quadratic", "lms"),
        ("clients = 2", "clients = 3"),
        ("noise = 0.1", "model-spread = 1.0, noise = 0.1"),
        ("offset = 1.0", "zero = true"),
        ("rounds = 20", "rounds = 5"),
    ];
    let entry = "algorithm.fedavg = [{ step-size = 0.1, local-steps = 2 }]\n";
    bench.write("mine.toml", edited(QUADRATIC, &changes) + entry);
    let finals = |out: &str, replicates: &str| {
        bench.compute(&["mine.toml", "--out", out, "--replicates", replicates]);
        bench.run(&["report", out, "--out", "pages", "-q"]).expect(0);
        final_errors_in(&bench, "pages").split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let few = finals("a", "2");
    let many = finals("b", "4");
    assert_eq!(few[..], many[..2]);
    assert!(many[0] != many[1] && many[1] != many[2], "{many:?}");
}

/// Fifty records, of which a client has two, both of which may be drawn for a test set.
fn table_with_small_client() -> String {
    let mut table = String::from("a,site,label\n");
    for i in 0..50_u32 {
        let site = if i % 25 == 4 { "small" } else { ["b", "c"][i as usize % 2] };
        table += &format!("{},{site},{}\n", i * 7 % 13, i % 2);
    }
    table
}

/// The instances of all replicates that `--until-decided` may come to are built before the first run: each replicate
/// has its own division of the records.
#[test]
fn instances_of_later_replicates_are_checked_before_the_first_run() {
    let manifest = "title = \"t\"\nseed = 1\nreplicates = 2\ninstance = \"per-replicate\"\n\n\
        [problem.logistic-dataset]\nl2 = 0.01\n\
        dataset = { file = \"r.csv\", split = { column = \"site\" }, test = 0.2 }\n\n\
        [start]\nzero = true\n\n[record]\npoints = 2\n\n[budget]\nrounds = 3\n\n\
        [[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n\n\
        [[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 2\n\n\
        [[claim.less]]\nid = \"c\"\nstatement = \"c\"\nfactor = 0.9999\n\
        left = { label = \"Scaffold\" }\nright = { label = \"FedAvg\" }\n";
    let bench = Bench::new();
    bench.write("mine.toml", manifest);
    bench.write("r.csv", table_with_small_client());
    let mut refused = 0;
    for seed in 1..=8 {
        let set = format!("seed={seed}");
        let most = "8";
        // A run of all replicates at once says what is right.
        let all = bench.run(&["check", "mine.toml", "--set", &set, "--replicates", most]);
        let out = format!("results-{seed}");
        let run = bench.run(&[
            "run",
            "mine.toml",
            "--set",
            &set,
            "--until-decided",
            "--max-replicates",
            most,
            "--out",
            &out,
        ]);
        assert_eq!(run.code, all.code, "{}\n{}", all.err, run.err);
        if all.code == 2 {
            refused += 1;
            run.warns("`test`: all records of the client \"small\" are drawn for the test set");
            let cells = bench.path(&out).join("mine");
            assert!(!cells.exists(), "{}", run.err);
        }
    }
    assert!((1..8).contains(&refused), "{refused}");
}

/// A client of two records, both of which may be drawn for the test set of one of the twenty instances: ten for the
/// candidates, and ten for the fresh runs of those that are selected. Each is built before the first run.
#[test]
fn instances_of_fresh_runs_are_checked_before_the_candidates_run() {
    let manifest = "title = \"t\"\nseed = 1\nreplicates = 1\ninstances = 10\n\n\
        [problem.logistic-dataset]\nl2 = 0.01\n\
        dataset = { file = \"r.csv\", split = { column = \"site\" }, test = 0.2 }\n\n\
        [start]\nzero = true\n\n[record]\npoints = 2\nmetrics = [\"test-loss\"]\n\n\
        [budget]\nrounds = 3\n\n[tune]\nover = \"step-size\"\nvalues = [0.01, 0.1]\n\
        metric = \"test-loss\"\n\n[[algorithm.fedavg]]\nlocal-steps = 2\n";
    let bench = Bench::new();
    bench.write("mine.toml", manifest);
    bench.write("r.csv", table_with_small_client());
    let mut refused = 0;
    for seed in 1..=12 {
        let set = format!("seed={seed}");
        let check = bench.run(&["check", "mine.toml", "--set", &set]);
        let out = format!("results-{seed}");
        let run = bench.run(&["run", "mine.toml", "--set", &set, "--yes", "--out", &out]);
        assert_eq!(run.code, check.code, "{}\n{}", check.err, run.err);
        if check.code == 2 {
            refused += 1;
            check.warns("`test`: all records of the client \"small\" are drawn for the test set");
            assert!(!bench.path(&out).exists());
        }
    }
    assert!((1..12).contains(&refused), "{refused}");
}
