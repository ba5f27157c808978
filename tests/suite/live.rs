//! `reproduce`: pages are written while cells are run, and are in the end those of `report`.
#![cfg(unix)]

use crate::live_run::SOME_FAIL;
use crate::support::process::Running;
use crate::support::{Bench, Finished, TINY, edited, exactfed, root};

/// The page of the experiment that takes no time, whose name comes last.
const QUICK: &str = "reports/z/quick/report.html";
/// The index, which is written after the pages.
const INDEX: &str = "reports/README.md";

/// Two experiments of which one takes seconds and has cells that fail.
fn bench() -> Bench {
    let bench = Bench::new();
    let slow = edited(SOME_FAIL, &[("rounds = 100000", "rounds = 60000")]);
    bench.write("experiments/a/slow.toml", slow);
    bench.write("experiments/z/quick.toml", TINY);
    bench
}

/// Starts `reproduce`, and waits until the index has the quick experiment.
#[track_caller]
fn started(bench: &Bench) -> Running {
    let run = ["reproduce", "--threads", "1"];
    let mut run = exactfed().args(run).folder(&bench.folder).start();
    run.wait_for("pages", |_| {
        std::fs::read_to_string(bench.path(INDEX)).ok()?.contains("z/quick/").then_some(())
    });
    run
}

/// The shorter experiment comes first. Its pages are there, and stay as they are but for the links to
/// the pages about all experiments, while the page of the other, some of whose cells have no
/// results, is written again.
#[test]
fn pages_of_an_experiment_are_complete_while_another_is_run() {
    let bench = bench();
    let mut run = started(&bench);
    let (page, index) = (bench.read(QUICK), bench.read(INDEX));
    assert!(!run.has_ended() && !index.contains("a/slow/"), "{index}");
    assert!(!page.contains("no results yet") && page.ends_with("</html>\n"), "{page}");
    let finished = Finished::from(run.finish()).expect(4);
    finished.warns("2 reports written");
    let content = |page: &str| page.split_once("</nav>").map(|(_, content)| content.to_owned());
    assert!(content(&page).is_some_and(|content| content.len() > 1000));
    assert_eq!(content(&bench.read(QUICK)), content(&page));
    let index = bench.read(INDEX);
    assert!(index.contains("a/slow/") && index.contains("z/quick/"), "{index}");
    bench.has_pages_of_report();
}

/// What an interrupted run has written is complete, and the next one goes on.
#[test]
fn an_interruption_leaves_the_pages_of_what_has_ended() {
    let bench = bench();
    let run = started(&bench);
    let page = bench.read(QUICK);
    run.signal("INT");
    let finished = Finished::from(run.finish()).expect(130);
    finished.warns("a/slow: interrupted: ");
    assert_eq!(bench.read(QUICK), page);
    assert!(!bench.path("reports/a").exists(), "a page of an experiment that has not ended");
    assert!(bench.read(INDEX).contains("z/quick/"));
    bench.run(&["reproduce", "--quiet"]).expect(4);
    bench.has_pages_of_report();
}

/// The experiment that is named comes first, though it takes longer, and it is printed where its page
/// is; a name that no manifest has costs one message.
#[test]
fn the_first_page_is_that_of_the_experiment_that_is_named() {
    let bench = Bench::new();
    bench.write("experiments/a/slow.toml", edited(TINY, &[("rounds = ", "rounds = 100")]));
    bench.write("experiments/z/quick.toml", TINY);
    let run = bench.run(&["reproduce", "--first", "a/slow", "--threads", "1"]).expect(0);
    run.warns("the first page is written: open reports/index.html; the others follow");
    let place = |text: &str| run.err.find(text).unwrap_or_else(|| panic!("{text}: {}", run.err));
    assert!(place("a/slow: ") < place("the first page is written"), "{}", run.err);
    assert!(place("the first page is written") < place("z/quick: "), "{}", run.err);
    let wrong = bench.run(&["reproduce", "--first", "b"]).expect(2);
    wrong.warns("error: --first b: experiments contains no experiment of this name");
}

/// `make reproduce` begins with the experiment whose figure README.md shows.
#[test]
fn the_figure_of_the_readme_comes_first() {
    let [readme, makefile] =
        ["README.md", "Makefile"].map(|name| std::fs::read_to_string(root().join(name)).unwrap());
    let figures =
        readme.split("](reports/").skip(1).filter_map(|link| link.split_once("/figures/"));
    let shown: Vec<&str> = figures.map(|(experiment, _)| experiment).collect();
    let first = makefile.lines().find_map(|line| line.strip_prefix("FIRST = ")).unwrap();
    // Before it comes one that takes no time, so that there is a page to open at once.
    assert_eq!(first.split(' ').skip(1).collect::<Vec<_>>(), shown);
}
