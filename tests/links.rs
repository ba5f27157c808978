//! Symbolic links in results: nothing outside is read as if it were a result,
//! and above all nothing outside is written or removed.
#![cfg(unix)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use support::Bench;

/// Every file below a folder with its bytes, links told apart and not followed.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                all.insert(path.clone(), b"folder".to_vec());
                folders.push(path);
            } else if kind.is_symlink() {
                all.insert(path.clone(), b"link".to_vec());
            } else {
                all.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Results of one experiment of two cells, the folder of the experiment and of one
/// of its cells, and a folder outside.
struct Scene {
    bench: Bench,
    manifest: String,
    experiment: PathBuf,
    cell: PathBuf,
    outside: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let bench = Bench::new();
        let manifest = bench.bring("diverging.toml");
        bench.run(&["run", &manifest, "--quiet"]).expect(0);
        let experiment = bench.path("results/smoke/diverging");
        let mut cells: Vec<PathBuf> =
            fs::read_dir(&experiment).unwrap().map(|e| e.unwrap().path()).collect();
        cells.retain(|path| path.is_dir());
        cells.sort();
        let outside = bench.path("outside");
        fs::create_dir(&outside).unwrap();
        Self { cell: cells[0].clone(), manifest, experiment, outside, bench }
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
        let manifest = self.manifest.as_str();
        for arguments in [
            vec!["plan", manifest],
            vec!["digest"],
            vec!["report", "--quiet"],
            vec!["diff", "results", "results"],
            vec!["export", "results", "--out", "all.csv"],
            vec!["run", manifest, "--quiet"],
            vec!["run", manifest, "--quiet", "--force"],
            vec!["report", "--quiet"],
        ] {
            let said = self.bench.run(&arguments);
            assert!((0..=4).contains(&said.code), "{arguments:?}: {} {}", said.code, said.err);
            assert!(!said.err.contains("panicked"), "{arguments:?}: {}", said.err);
            assert_eq!(tree(&self.outside), before, "{arguments:?} changed what is outside");
        }
    }
}

#[test]
fn a_cell_that_is_a_link_is_not_followed() {
    let scene = Scene::new();
    scene.swap(&scene.cell);
    scene.outside_stays();
}

#[test]
fn traces_that_are_a_link_are_not_followed() {
    let scene = Scene::new();
    let traces = scene.cell.join("traces.parquet");
    scene.swap(&traces);
    let said = scene.bench.run(&["report", "--quiet"]).expect(2);
    assert!(said.err.contains("is a symbolic link"), "{}", said.err);
    scene.outside_stays();
}

#[test]
fn a_record_that_is_a_link_is_not_followed() {
    let scene = Scene::new();
    scene.swap(&scene.cell.join("cell.toml"));
    scene.outside_stays();
}

#[test]
fn an_experiment_that_is_a_link_is_refused() {
    let scene = Scene::new();
    scene.swap(&scene.experiment);
    let said = scene.bench.run(&["run", &scene.manifest, "--quiet"]).expect(2);
    assert!(said.err.contains("is a symbolic link"), "{}", said.err);
    scene.outside_stays();
}

#[test]
fn a_folder_of_experiments_that_is_a_link_is_refused() {
    let scene = Scene::new();
    scene.swap(scene.experiment.parent().unwrap());
    let said = scene.bench.run(&["run", &scene.manifest, "--quiet"]).expect(2);
    assert!(said.err.contains("is a symbolic link"), "{}", said.err);
    scene.outside_stays();
}

#[test]
fn the_files_of_an_experiment_and_of_the_folder_are_no_links() {
    for file in ["results/smoke/diverging/experiment.toml", "results/driftbench.toml"] {
        let scene = Scene::new();
        scene.swap(&scene.bench.path(file));
        scene.outside_stays();
    }
    // A link that leads nowhere makes nothing where it points.
    let scene = Scene::new();
    for file in ["results/smoke/diverging/experiment.toml", "results/driftbench.toml"] {
        let place = scene.bench.path(file);
        fs::remove_file(&place).unwrap();
        symlink(scene.outside.join("new"), &place).unwrap();
    }
    scene.outside_stays();
}

/// The folder itself may be a link: that is its user's wish.
#[test]
fn results_and_reports_may_be_elsewhere() {
    let scene = Scene::new();
    scene.bench.run(&["report", "--quiet"]).expect(0);
    let digests = scene.bench.run(&["digest"]).expect(0).out;
    for folder in ["results", "reports"] {
        scene.swap(&scene.bench.path(folder));
    }
    assert_eq!(scene.bench.run(&["digest"]).expect(0).out, digests);
    scene.bench.run(&["run", &scene.manifest, "--quiet", "--force"]).expect(0);
    scene.bench.run(&["report", "--quiet"]).expect(0);
    assert_eq!(scene.bench.run(&["digest"]).expect(0).out, digests);
}

/// Within reports nothing is removed or written through a link either.
#[test]
fn reports_do_not_leave_their_folder() {
    for below in ["smoke", "smoke/diverging", "smoke/diverging/figures"] {
        let scene = Scene::new();
        scene.bench.run(&["report", "--quiet"]).expect(0);
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
        let said = scene.bench.run(&["report", "--quiet"]).expect(2);
        assert!(said.err.contains("is a symbolic link"), "{}", said.err);
        assert_eq!(tree(&scene.outside), before, "{below}");
    }
    // A page that is a link is replaced, and not what it points at.
    let scene = Scene::new();
    scene.bench.run(&["report", "--quiet"]).expect(0);
    let page = scene.bench.path("reports/smoke/diverging/report.md");
    let was = fs::read(&page).unwrap();
    scene.swap(&page);
    fs::write(scene.outside.join("report.md"), "mine").unwrap();
    scene.bench.run(&["report", "--quiet"]).expect(0);
    assert_eq!(fs::read(&page).unwrap(), was);
    assert_eq!(fs::read(scene.outside.join("report.md")).unwrap(), b"mine");
}
