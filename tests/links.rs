//! Symbolic links in results: nothing outside is read as if it were a result,
//! and above all nothing outside is written or removed.
#![cfg(unix)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use support::{Bench, DIVERGING};

const MANIFEST: &str = DIVERGING;

/// Every file below a folder with its bytes, links marked as such and not followed.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let bytes = if kind.is_dir() {
                folders.push(path.clone());
                b"folder".to_vec()
            } else if kind.is_symlink() {
                b"link".to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            all.insert(path, bytes);
        }
    }
    all
}

/// Results of one experiment of two cells, the folder of the experiment and of one
/// of its cells, and a folder outside.
struct Scene {
    bench: Bench,
    experiment: PathBuf,
    cell: PathBuf,
    outside: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let bench = Bench::of_smoke(&["diverging"]);
        let experiment = "results/smoke/diverging";
        let cell = bench.path(&bench.cells(experiment)[0]);
        let experiment = bench.path(experiment);
        let outside = bench.path("outside");
        fs::create_dir(&outside).unwrap();
        Self { bench, experiment, cell, outside }
    }

    /// Moves a file or a folder outside and leaves a link to it.
    fn swap(&self, place: &Path) {
        let there = self.outside.join(place.file_name().unwrap());
        fs::rename(place, &there).unwrap();
        symlink(&there, place).unwrap();
    }

    /// All commands that read or write results leave what is outside as it is.
    fn outside_stays(&self) {
        let before = tree(&self.outside);
        for arguments in [
            vec!["plan", MANIFEST],
            vec!["digest"],
            vec!["report", "--quiet"],
            vec!["diff", "results", "results"],
            vec!["export", "results", "--out", "all.csv"],
            vec!["run", MANIFEST, "--quiet"],
            vec!["run", MANIFEST, "--quiet", "--force"],
            vec!["report", "--quiet"],
        ] {
            let output = self.bench.run(&arguments);
            assert!(
                (0..=4).contains(&output.code),
                "{arguments:?}: {} {}",
                output.code,
                output.err
            );
            assert!(!output.err.contains("panicked"), "{arguments:?}: {}", output.err);
            assert_eq!(tree(&self.outside), before, "{arguments:?} changed what is outside");
        }
    }
}

/// A place of a scene that becomes a link.
type Place = fn(&Scene) -> PathBuf;

#[test]
fn cells_and_files_that_are_links_are_not_followed() {
    let places: [Place; 4] = [
        |scene| scene.cell.clone(),
        |scene| scene.cell.join("cell.toml"),
        |scene| scene.experiment.join("experiment.toml"),
        |scene| scene.bench.path("results/exactfed.toml"),
    ];
    for place in places {
        let scene = Scene::new();
        scene.swap(&place(&scene));
        scene.outside_stays();
    }
    // A link that leads nowhere makes nothing where it points.
    let scene = Scene::new();
    for place in &places[2..] {
        let place = place(&scene);
        fs::remove_file(&place).unwrap();
        symlink(scene.outside.join("new"), &place).unwrap();
    }
    scene.outside_stays();
}

#[test]
fn traces_and_experiments_that_are_links_are_refused() {
    let places: [(Place, &[&str]); 3] = [
        (|scene| scene.cell.join("traces.parquet"), &["report", "--quiet"]),
        (|scene| scene.experiment.clone(), &["run", MANIFEST, "--quiet"]),
        (|scene| scene.bench.path("results/smoke"), &["run", MANIFEST, "--quiet"]),
    ];
    for (place, command) in places {
        let scene = Scene::new();
        scene.swap(&place(&scene));
        scene.bench.run(command).expect(2).warns("is a symbolic link");
        scene.outside_stays();
    }
}

/// The folder itself may be a link: that is its user's wish.
#[test]
fn results_and_reports_may_be_elsewhere() {
    let scene = Scene::new();
    scene.bench.report();
    let digests = scene.bench.digests("results");
    for folder in ["results", "reports"] {
        scene.swap(&scene.bench.path(folder));
    }
    assert_eq!(scene.bench.digests("results"), digests);
    scene.bench.compute(&[MANIFEST, "--force"]);
    scene.bench.report();
    assert_eq!(scene.bench.digests("results"), digests);
}

/// Within reports nothing is removed or written through a link either.
#[test]
fn reports_do_not_leave_their_folder() {
    for below in ["smoke", "smoke/diverging", "smoke/diverging/figures"] {
        let scene = Scene::new();
        scene.bench.report();
        scene.swap(&scene.bench.path("reports").join(below));
        let mine = scene.outside.join("mine.svg");
        fs::write(&mine, "mine").unwrap();
        // What a figure's file would be swept as, were the folder followed.
        fs::write(
            scene.outside.join(Path::new(below).file_name().unwrap()).join("mine.svg"),
            "mine",
        )
        .unwrap();
        let before = tree(&scene.outside);
        scene.bench.run(&["report", "--quiet"]).expect(2).warns("is a symbolic link");
        assert_eq!(tree(&scene.outside), before, "{below}");
    }
    // A page that is a link is replaced, and not what it points at.
    let scene = Scene::new();
    scene.bench.report();
    let page = scene.bench.path("reports/smoke/diverging/report.md");
    let was = fs::read(&page).unwrap();
    scene.swap(&page);
    fs::write(scene.outside.join("report.md"), "mine").unwrap();
    scene.bench.report();
    assert_eq!(fs::read(&page).unwrap(), was);
    assert_eq!(fs::read(scene.outside.join("report.md")).unwrap(), b"mine");
}
