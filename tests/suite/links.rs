//! Symbolic links, pipes and endless files in results and reports: nothing outside is read as if it
//! were a result, no command waits for a pipe or reads without end, and above all nothing outside is
//! written or removed.
#![cfg(unix)]

use crate::support::process::{Program, Running};
use crate::support::{Bench, DIVERGING, Finished, TINY, array, edited};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// Results of one experiment of two cells, the folder of the experiment, the pack of one
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
    let places: [Place; 3] = [
        |scene| scene.cell.clone(),
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
    for place in &places[1..] {
        let place = place(&scene);
        fs::remove_file(&place).unwrap();
        symlink(scene.outside.join("new"), &place).unwrap();
    }
    scene.outside_stays();
}

#[test]
fn traces_and_experiments_that_are_links_are_refused() {
    let places: [(Place, &[&str]); 3] = [
        (|scene| scene.cell.clone(), &["report", "--quiet"]),
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

/// Linear regression and a frontier: everything that is cached of theory.
const THEORY: &str = include_str!("../manifests/theory.toml");

/// Records of a file that results copy, in more unknowns than are solved without a search.
const RECORDS: &str = r#"title = "t"
seed = 1
replicates = 1
start.zero = true
budget.rounds = 2
[problem.logistic-dataset]
dataset = { file = "records.csv", clients = 2 }
l2 = 0.1
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 1
[[claim.less]]
id = "small"
statement = "It is small"
left = { label = "FedAvg" }
value = 1e9
"#;

/// A cell whose gradient is so large that its square is infinite.
const FAILING: &str = r#"title = "t"
seed = 1
replicates = 1
start.offset = 1.0
budget.rounds = 2
record.metrics = ["sq-gradient"]
problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 5e199, to = 1e200 }, noise = 0.1 }
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 1
"#;

/// What the file `records.csv` has: 34 features of 8 records.
fn records() -> String {
    let row = |r: usize| {
        let features = (0..34).map(|i| ((r * 7 + i * 3) % 11) as f64 / 11.0 - 0.4);
        format!("{},{}", features.map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(","), r % 2)
    };
    let names: Vec<String> = (0..34).map(|i| format!("x{i}")).collect();
    let rows: Vec<String> = (0..8).map(row).collect();
    format!("{},label\n{}\n", names.join(","), rows.join("\n"))
}

/// Results with every kind of file that runs and reports write, and where each is.
fn results_of_every_kind() -> (Bench, Vec<PathBuf>) {
    let bench = Bench::new();
    bench.write("records.csv", records());
    for (name, text) in [("theory", THEORY), ("records", RECORDS), ("failing", FAILING)] {
        bench.write(&format!("{name}.toml"), text);
    }
    bench.compute(&["theory.toml", "--until-decided", "--max-replicates", "80"]);
    bench.run(&["run", "--quiet", "records.toml", "failing.toml"]).expect(4);
    bench.report();
    let places = places(&bench.path("results"));
    for name in [
        ".data/",
        ".frontiers/",
        ".optima/",
        "/.lock",
        "/experiment.toml",
        "/looks.toml",
        "/shown.toml",
        ".moments/",
        ".failed.toml",
        ".parquet",
    ] {
        let is_there = places.iter().any(|place| place.to_str().unwrap().contains(name));
        assert!(is_there, "the results have no {name}");
    }
    (bench, places)
}

/// Every file and folder below a folder.
fn places(folder: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| path.strip_prefix(folder).unwrap().to_owned();
    tree(folder).keys().map(|path| below(path)).collect()
}

/// What takes the place of a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Planted {
    /// A pipe to which nobody writes and from which nobody reads.
    Pipe,
    /// A link to a file that does not end.
    Endless,
    /// A link to a folder outside.
    Outside,
    /// A file of 2⁴⁰ bytes, none of which is on the disk.
    Huge,
}

impl Planted {
    const ALL: [Self; 4] = [Self::Pipe, Self::Endless, Self::Outside, Self::Huge];

    /// Takes the place of a file or a folder of a scene.
    fn take_place(self, bench: &Bench, place: &Path) {
        let is_folder = fs::symlink_metadata(place).is_ok_and(|about| about.is_dir());
        match is_folder {
            true => fs::remove_dir_all(place).unwrap(),
            false => fs::remove_file(place).unwrap(),
        }
        match self {
            Self::Pipe => {
                assert!(Program::new("mkfifo").args([place]).run().status.success());
            }
            Self::Endless => symlink("/dev/zero", place).unwrap(),
            Self::Outside => symlink(bench.path("outside"), place).unwrap(),
            Self::Huge => fs::File::create(place).unwrap().set_len(1 << 40).unwrap(),
        }
    }
}

/// What any command may take on a machine that is busy with other things, if it does not wait for
/// a pipe and does not read without end.
const LIMIT: Duration = Duration::from_secs(60);

fn start(bench: &Bench, command: &str) -> Running {
    let program = crate::support::exactfed().args(command.split(' ')).folder(&bench.folder);
    program.deadline(LIMIT).start()
}

/// Runs commands at once. Each ends in time, with a code that it has by design, and leaves what is
/// outside as it is. Returns what they printed as errors.
#[track_caller]
fn end_and_leave_outside(bench: &Bench, commands: &[&str], about: &str) -> Vec<Finished> {
    let mine = bench.path("outside/mine");
    if !mine.exists() {
        bench.write("outside/mine", "mine");
    }
    let before = tree(&bench.path("outside"));
    let running: Vec<Running> = commands.iter().map(|command| start(bench, command)).collect();
    let ended: Vec<Finished> = running.into_iter().map(|run| run.finish().into()).collect();
    for (command, Finished { code, err, .. }) in commands.iter().zip(&ended) {
        let is_orderly = (0..=4).contains(code) && !err.contains("panicked");
        assert!(is_orderly, "{about}: {command}: {code}: {err}");
    }
    assert_eq!(tree(&bench.path("outside")), before, "{about}: {commands:?}");
    ended
}

/// A folder as another, in which all are files and folders. What is so already stays.
fn restore(folder: &Path, from: &Path) {
    let kind = |path: &Path| fs::symlink_metadata(path).ok();
    if !kind(folder).is_some_and(|about| about.is_dir()) {
        let _ = fs::remove_file(folder);
        fs::create_dir(folder).unwrap();
    }
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match (kind(&from.join(entry.file_name())), entry.file_type().unwrap().is_dir()) {
            (Some(sound), is_folder) if sound.is_dir() == is_folder => {}
            (_, true) => fs::remove_dir_all(entry.path()).unwrap(),
            (_, false) => fs::remove_file(entry.path()).unwrap(),
        }
    }
    for entry in fs::read_dir(from).unwrap() {
        let (sound, path) = {
            let entry = entry.unwrap();
            (entry.path(), folder.join(entry.file_name()))
        };
        if sound.is_dir() {
            restore(&path, &sound);
            continue;
        }
        let bytes = fs::read(&sound).unwrap();
        let about = kind(&path);
        let may_be = about.as_ref().is_some_and(|a| a.is_file() && a.len() == bytes.len() as u64);
        if !may_be || fs::read(&path).unwrap() != bytes {
            if about.is_some() {
                fs::remove_file(&path).unwrap();
            }
            fs::write(&path, bytes).unwrap();
        }
    }
}

/// Every file and every folder of results in turn.
#[test]
fn no_command_waits_for_or_leaves_by_what_takes_a_place_in_results() {
    let (bench, places) = results_of_every_kind();
    fs::rename(bench.path("results"), bench.path("sound")).unwrap();
    // Each command that writes has a copy of its own.
    let commands = [
        ("read", "report read --quiet --out pages"),
        ("read", "verify read --all --quiet"),
        ("read", "diff read sound"),
        ("read", "export read --out all.csv"),
        ("read", "merge read --out merged"),
        ("merged-into", "merge sound --out merged-into"),
        ("again", "run theory.toml records.toml failing.toml --quiet --force --out again"),
        ("looks", "run theory.toml --quiet --until-decided --max-replicates 80 --out looks"),
    ];
    for (place, planted) in each(&bench.path("sound"), &places) {
        let about = format!("{planted:?} for {}", place.display());
        for copy in ["read", "merged-into", "again", "looks"] {
            restore(&bench.path(copy), &bench.path("sound"));
            planted.take_place(&bench, &bench.path(copy).join(place));
        }
        let report = end_and_leave_outside(&bench, &commands.map(|c| c.1), &about).remove(0);
        let names = place.display().to_string();
        assert!(report.code != 2 || report.err.contains(&names), "{about}: {}", report.err);
        fs::remove_dir_all(bench.path("merged")).unwrap_or_default();
    }
}

/// Everything that takes each of these places below a folder.
fn each<'p>(folder: &Path, places: &'p [PathBuf]) -> Vec<(&'p Path, Planted)> {
    let planted = |place: &'p PathBuf| {
        let is_file = folder.join(place).is_file();
        let suits = move |planted: &Planted| is_file || *planted != Planted::Huge;
        Planted::ALL.into_iter().filter(suits).map(move |planted| (place.as_path(), planted))
    };
    places.iter().flat_map(planted).collect()
}

/// The same of a pack of many cells, which larger experiments have.
#[test]
fn no_command_waits_for_or_leaves_by_what_takes_a_place_in_a_pack() {
    let steps = array((1..=1001).map(|i| f64::from(i) * 1e-4));
    let bench = Bench::ran(&edited(TINY, &[("step-size = 0.1", &format!("step-size = {steps}"))]));
    bench.copy_folder("results", "sound");
    let pack = bench.largest_pack("sound/m");
    let places = [Path::new(&pack).strip_prefix("sound").unwrap().to_owned()];
    let digests = bench.digests("sound");
    for (place, planted) in each(&bench.path("sound"), &places) {
        let about = format!("{planted:?} for {}", place.display());
        restore(&bench.path("results"), &bench.path("sound"));
        planted.take_place(&bench, &bench.path("results").join(place));
        let readers = ["verify --sample 1 --quiet", "digest", "export --out all.csv"];
        end_and_leave_outside(&bench, &readers, &about);
        end_and_leave_outside(&bench, &["run m.toml --quiet"], &about);
        assert_eq!(bench.digests("results"), digests, "{about}");
    }
}

/// Every file and every folder of reports in turn: with the list of what reports wrote, and
/// without it, where `report` looks into the files that are there.
#[test]
fn no_command_waits_for_or_leaves_by_what_takes_a_place_in_reports() {
    let bench = Bench::ran(THEORY);
    bench.report();
    fs::rename(bench.path("reports"), bench.path("sound")).unwrap();
    let places = places(&bench.path("sound"));
    for (place, planted) in each(&bench.path("sound"), &places) {
        let about = format!("{planted:?} for {}", place.display());
        for copy in ["compared", "listed", "unlisted"] {
            restore(&bench.path(copy), &bench.path("sound"));
            planted.take_place(&bench, &bench.path(copy).join(place));
        }
        let _ = fs::remove_file(bench.path("unlisted/.exactfed-reports"));
        let commands =
            ["diff compared sound", "report --quiet --out listed", "report --quiet --out unlisted"];
        end_and_leave_outside(&bench, &commands, &about);
    }
}

/// What takes the place of a page, or of the status, that a run rewrites.
#[test]
fn a_live_run_waits_for_no_pipe() {
    let bench = Bench::ran(THEORY);
    bench.report();
    fs::rename(bench.path("reports"), bench.path("sound")).unwrap();
    bench.write("sound/status.js", "");
    let list = bench.read("sound/.exactfed-reports");
    bench.write("sound/.exactfed-reports", format!("{list}status.js\n"));
    for place in ["status.js", "index.html", "m/report.html"] {
        for planted in Planted::ALL {
            let about = format!("{planted:?} for {place}");
            restore(&bench.path("reports"), &bench.path("sound"));
            planted.take_place(&bench, &bench.path("reports").join(place));
            end_and_leave_outside(&bench, &["run m.toml --live --quiet"], &about);
        }
    }
}
