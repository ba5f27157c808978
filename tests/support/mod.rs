//! Drives the binary as a user does, in a folder of its own.

#![allow(dead_code)]

pub mod process;

use process::Program;
use std::path::{Path, PathBuf};
use std::process::Output;

pub struct Bench {
    pub folder: tempfile::TempDir,
}

pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The program that is tested.
pub fn driftbench() -> Program {
    Program::new(env!("CARGO_BIN_EXE_driftbench"))
}

pub fn smoke(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/smoke").join(name)
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Said {
        driftbench().args(arguments).folder(&self.folder).run().into()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// All files below a folder.
    pub fn files_below(&self, folder: &str) -> Vec<PathBuf> {
        let (mut open, mut files) = (vec![self.path(folder)], Vec::new());
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { open.push(path) } else { files.push(path) }
            }
        }
        files
    }

    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Copies a smoke manifest to `experiments/smoke/`.
    pub fn bring(&self, name: &str) -> String {
        let file = format!("experiments/smoke/{name}");
        self.write(&file, &std::fs::read_to_string(smoke(name)).unwrap());
        file
    }

    /// Copies a folder of data files below `experiments/smoke/`.
    pub fn bring_folder(&self, name: &str) {
        let to = self.path(&format!("experiments/smoke/{name}"));
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(smoke(name)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// Names of everything in the folder.
    pub fn files(&self) -> Vec<String> {
        let mut all: Vec<String> = std::fs::read_dir(&self.folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    }
}
