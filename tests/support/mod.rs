//! Drives the binary as a user does, in a folder of its own.

#![allow(dead_code)]

pub mod looks;
pub mod markup;
#[path = "../../src/test_support/process.rs"]
pub mod process;

use process::Program;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A small problem, to which tests add an algorithm and whatever they are about.
pub const QUADRATIC: &str = r#"title = "t"
seed = 1
replicates = 2
problem.quadratic = { dimension = 2, clients = 2, spectrum = { from = 0.5, to = 1.0 }, noise = 0.1 }
start.offset = 1.0
budget.rounds = 20
"#;

/// A manifest that is done in no time.
pub const TINY: &str = r#"title = "t"
seed = 1
replicates = 1
problem.lms = { dimension = 1, clients = 1, spectrum = { from = 1.0, to = 1.0 }, noise = 0.1 }
start.zero = true
budget.rounds = 2
[[algorithm.fedavg]]
step-size = 0.1
local-steps = 1
"#;

/// Two cells, and a claim whose margin one flipped bit makes 4.9.
pub const SMALL: &str = "title = \"Small\"
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

/// A text with changes, each of which has to find its place.
#[track_caller]
pub fn edited(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "there is no {from:?} in\n{text}");
        text.replace(from, to)
    })
}

/// An array of TOML with these values.
pub fn array(values: impl IntoIterator<Item = impl ToString>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("[{}]", values.join(", "))
}

pub const GARNET: &str = "experiments/smoke/garnet.toml";
pub const LOGISTIC: &str = "experiments/smoke/logistic.toml";
pub const DIVERGING: &str = "experiments/smoke/diverging.toml";

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn smoke(name: &str) -> PathBuf {
    root().join("experiments/smoke").join(name)
}

/// All files below a folder, sorted. Links are files and not followed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}")) {
            let entry = entry.unwrap();
            let is_folder = entry.file_type().unwrap().is_dir();
            if is_folder { &mut open } else { &mut files }.push(entry.path());
        }
    }
    files.sort();
    files
}

/// The files below a folder with this extension, sorted.
pub fn files_with(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = files_below(folder);
    files.retain(|file| file.extension().is_some_and(|own| own == extension));
    files
}

/// A text with its checksum at its end.
pub fn sealed(text: &str) -> String {
    format!("{text}# sha256 {}\n", hash(text.as_bytes()))
}

pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

pub struct Finished {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Finished {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Its standard output contains this.
    #[track_caller]
    pub fn prints(&self, part: &str) -> &Self {
        assert!(self.out.contains(part), "no {part:?} in\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Its standard error contains this.
    #[track_caller]
    pub fn warns(&self, part: &str) -> &Self {
        assert!(self.err.contains(part), "no {part:?} in\n{}\nstdout:\n{}", self.err, self.out);
        self
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The program that is tested.
pub fn exactfed() -> Program {
    Program::new(env!("CARGO_BIN_EXE_exactfed"))
}

pub struct Bench {
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A bench with the results of a manifest, `m.toml`.
    #[track_caller]
    pub fn ran(manifest: &str) -> Self {
        let bench = Self::new();
        bench.write("m.toml", manifest);
        bench.compute(&["m.toml"]);
        bench
    }

    /// A bench with these smoke manifests.
    pub fn with_smoke(names: &[&str]) -> Self {
        let bench = Self::new();
        names.iter().for_each(|name| drop(bench.bring(name)));
        bench
    }

    /// A bench with the results of these smoke manifests.
    #[track_caller]
    pub fn of_smoke(names: &[&str]) -> Self {
        let bench = Self::with_smoke(names);
        let files: Vec<String> =
            names.iter().map(|name| format!("experiments/smoke/{name}.toml")).collect();
        bench.compute(&files.iter().map(String::as_str).collect::<Vec<_>>());
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Finished {
        exactfed().args(arguments).folder(&self.folder).run().into()
    }

    /// `run` with these arguments, which succeeds.
    #[track_caller]
    pub fn compute(&self, arguments: &[&str]) {
        self.run(&[&["run", "--quiet"], arguments].concat()).expect(0);
    }

    /// `report`, which succeeds.
    #[track_caller]
    pub fn report(&self) {
        self.run(&["report", "--quiet"]).expect(0);
    }

    /// The pages in `reports/` are those that `report` writes of the same results into an empty
    /// folder.
    #[track_caller]
    pub fn has_pages_of_report(&self) {
        self.run(&["report", "--quiet", "--out", "fresh"]).expect(0);
        let [there, fresh] = ["reports", "fresh"].map(|folder| self.contents(folder));
        assert_eq!(there.keys().collect::<Vec<_>>(), fresh.keys().collect::<Vec<_>>());
        for (file, bytes) in &fresh {
            assert!(there[file] == *bytes, "{file} differs");
        }
        assert!(fresh.contains_key("index.html"));
    }

    /// The lines of `digest`.
    #[track_caller]
    pub fn digests(&self, folder: &str) -> Vec<String> {
        self.run(&["digest", folder]).expect(0).out.lines().map(str::to_owned).collect()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    #[track_caller]
    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The rows of a CSV file, by the names of its columns.
    #[track_caller]
    pub fn rows(&self, name: &str) -> Vec<HashMap<String, String>> {
        let mut reader = csv::Reader::from_path(self.path(name)).unwrap();
        reader.deserialize().map(Result::unwrap).collect()
    }

    /// Flips a bit in the middle of a file.
    pub fn damage(&self, name: &str) {
        let mut bytes = self.read_bytes(name);
        // Of a pack, this is among the rows.
        let place = bytes.len() / 16;
        bytes[place] ^= 1;
        self.write(name, bytes);
    }

    /// Edits a file that ends with its checksum, and corrects the checksum.
    #[track_caller]
    pub fn reseal(&self, name: &str, changes: &[(&str, &str)]) {
        let text = self.read(name);
        let (body, _) = text.rsplit_once("# sha256 ").unwrap();
        self.write(name, sealed(&edited(body, changes)));
    }

    /// Edits the index of a pack, and names the pack by its new hash. The texts have equal lengths.
    #[track_caller]
    pub fn reindex(&self, pack: &str, changes: &[(&str, &str)]) {
        let mut bytes = self.read_bytes(pack);
        let find = |bytes: &[u8], text: &[u8]| {
            bytes.windows(text.len()).rposition(|part| part == text).unwrap()
        };
        let start = find(&bytes, b"exactfed.cells\x18") + "exactfed.cells\x18".len();
        let from = start + bytes[start..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let to = find(&bytes, b"# sha256 ");
        let text = edited(std::str::from_utf8(&bytes[from..to]).unwrap(), changes);
        assert_eq!(text.len(), to - from, "another length");
        bytes.splice(from..to + 74, sealed(&text).into_bytes());
        let folder = pack.rsplit_once('/').unwrap().0;
        fs::remove_file(self.path(pack)).unwrap();
        self.write(&format!("{folder}/{}.parquet", &hash(&bytes)[..16]), bytes);
    }

    /// The pack of an experiment that holds a cell.
    #[track_caller]
    pub fn pack_of(&self, experiment: &str, id: &str) -> String {
        let holds = |pack: &String| {
            let bytes = self.read_bytes(pack);
            let line = format!("{{\"id\":\"{id}\"").into_bytes();
            bytes.windows(line.len()).any(|part| part == line)
        };
        self.cells(experiment).into_iter().find(holds).unwrap()
    }

    /// The ids of the stored cells of an experiment.
    pub fn ids(&self, experiment: &str) -> Vec<String> {
        let of_pack = |pack: String| {
            let text = String::from_utf8_lossy(&self.read_bytes(&pack)).into_owned();
            let lines = text.split("{\"id\":\"").skip(1);
            lines.map(|line| line.chars().take(16).collect::<String>()).collect::<Vec<_>>()
        };
        self.cells(experiment).into_iter().flat_map(of_pack).collect()
    }

    /// The pack of an experiment with the most bytes: which cells others have depends on the time.
    pub fn largest_pack(&self, experiment: &str) -> String {
        let packs = self.cells(experiment).into_iter();
        packs.max_by_key(|pack| self.read_bytes(pack).len()).unwrap()
    }

    /// The packs of an experiment, sorted; without quarantined ones.
    pub fn cells(&self, experiment: &str) -> Vec<String> {
        let files = files_with(&self.path(experiment), "parquet");
        let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
        files.iter().map(|file| format!("{experiment}/{}", name(file))).collect()
    }

    /// All files below a folder.
    pub fn files_below(&self, folder: &str) -> Vec<PathBuf> {
        files_below(&self.path(folder))
    }

    /// All files below a folder, by their paths below it, and what they hold.
    pub fn contents(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.path(folder);
        let name = |file: &Path| file.strip_prefix(&folder).unwrap().display().to_string();
        files_below(&folder).iter().map(|file| (name(file), fs::read(file).unwrap())).collect()
    }

    pub fn copy_folder(&self, from: &str, to: &str) {
        for (name, bytes) in self.contents(from) {
            self.write(&format!("{to}/{name}"), bytes);
        }
    }

    /// Copies a smoke manifest, and the data files of all, to `experiments/smoke/`.
    pub fn bring(&self, name: &str) -> String {
        let names = ["data/atoms.npz", "data/chains.npz", "data/records.csv"];
        let manifest = format!("{name}.toml");
        for name in names.into_iter().chain([manifest.as_str()]) {
            self.write(&format!("experiments/smoke/{name}"), fs::read(smoke(name)).unwrap());
        }
        format!("experiments/smoke/{manifest}")
    }

    /// Names of everything in the folder.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).unwrap();
        let mut all: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        all
    }
}
