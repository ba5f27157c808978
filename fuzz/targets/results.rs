//! A results folder in which one file is another: the first byte says which, the
//! second whether what vouches for a text or for columns (hash, seal) is made to agree,
//! so that what stands behind it is reached too. A table is not vouched for: its hash is
//! what keeps bytes that the program did not write away from polars, and tables that
//! may be anybody's are `parquet`.

#![no_main]

use clap::Parser;
use exactfed::cli::{Cli, dispatch};
use exactfed::compare::results::ResultsFolder;
use exactfed::manifest::Quantity;
use exactfed::store::{Cached, Results, Store};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const MANIFEST: &str = include_str!("../seeds/results.toml");
const SEAL: &str = "# sha256 ";

/// The folder, and its files as they were written.
struct Home {
    folder: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn home() -> &'static Home {
    static HOME: OnceLock<Home> = OnceLock::new();
    HOME.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("there is room for a folder");
        let (manifest, results) = (folder.path().join("m.toml"), folder.path().join("results"));
        fs::write(&manifest, MANIFEST).expect("there is room for a file");
        let [manifest, results] = [manifest, results].map(|p| p.display().to_string());
        let words = ["exactfed", "run", &manifest, "--out", &results, "--quiet", "--threads", "1"];
        dispatch(Cli::parse_from(words)).expect("the manifest is right");
        let store = Store::open(Path::new(&results)).expect("results were written");
        for id in ids(&store) {
            let columns = [("a", vec![1.0, 2.0]), ("b", vec![3.0, 4.0])];
            let columns = columns.map(|(name, values)| (name.to_owned(), values)).into();
            store.cache(&Cached::Moments(id), &columns);
        }
        let mut files = Vec::new();
        gather(Path::new(&results), &mut files);
        files.sort();
        if let Some(seeds) = std::env::var_os("EXACTFED_SEEDS") {
            keep(Path::new(&seeds), &files).expect("seeds can be written");
        }
        Home { folder, files }
    })
}

fn ids(store: &Store) -> Vec<String> {
    let experiments = store.experiments().expect("results were written");
    let plan = |e: &exactfed::store::StoredExperiment| {
        exactfed::evidence::plan(e.name.clone(), e.source())
    };
    let plans = experiments.iter().map(|e| plan(e).expect("the manifest is right"));
    plans.flat_map(|plan| plan.cells.into_iter().map(|cell| cell.id.to_string())).collect()
}

fn gather(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("it was written") {
        let path = entry.expect("it was written").path();
        if path.is_dir() {
            gather(&path, files);
        } else {
            files.push((path.clone(), fs::read(&path).expect("it was written")));
        }
    }
}

/// The files as inputs of this target, and the tables among them as such.
fn keep(seeds: &Path, files: &[(PathBuf, Vec<u8>)]) -> std::io::Result<()> {
    let (results, tables) = (seeds.join("results"), seeds.join("parquet"));
    fs::create_dir_all(&results)?;
    fs::create_dir_all(&tables)?;
    for (i, (path, bytes)) in files.iter().enumerate() {
        for how in 0..2 {
            let input = [&[i as u8, how][..], bytes].concat();
            fs::write(results.join(format!("{i}-{how}")), input)?;
        }
        if path.extension().is_some_and(|e| e == "parquet") {
            fs::write(tables.join(format!("{i}.parquet")), bytes)?;
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The bytes with the seal that they should have, if such files are sealed.
fn sealed(bytes: &[u8], before: &[u8]) -> Vec<u8> {
    let seal = |all: &[u8]| all.windows(SEAL.len()).rposition(|part| part == SEAL.as_bytes());
    if seal(before).is_none() {
        return bytes.to_vec();
    }
    let body = &bytes[..seal(bytes).unwrap_or(bytes.len())];
    [body, SEAL.as_bytes(), hex(&Sha256::digest(body)).as_bytes(), b"\n"].concat()
}

/// Writes a file in place of another, vouched for if that is asked for: a pack has the name that is the
/// hash of its bytes, any other file a seal. Returns where it is.
fn place(path: &Path, was: &[u8], bytes: &[u8], vouched: bool) -> PathBuf {
    let is_pack = path.extension().is_some_and(|end| end == "parquet");
    let (to, now) = match vouched {
        true if is_pack => {
            fs::remove_file(path).expect("it was written");
            let hash = hex(&Sha256::digest(bytes));
            (path.with_file_name(format!("{}.parquet", &hash[..16])), bytes.to_vec())
        }
        true => (path.to_owned(), sealed(bytes, was)),
        false => (path.to_owned(), bytes.to_vec()),
    };
    fs::write(&to, now).expect("it can be written");
    to
}

fuzz_target!(|input: &[u8]| {
    let home = home();
    let [which, how, bytes @ ..] = input else { return };
    let (path, was) = &home.files[usize::from(*which) % home.files.len()];
    let placed = place(path, was, bytes, how % 2 == 1);
    read(&home.folder.path().join("results"));
    let _ = fs::remove_file(placed);
    for (path, bytes) in &home.files {
        fs::write(path, bytes).expect("it can be written");
    }
});

/// All that reads a results folder and runs nothing.
fn read(root: &Path) {
    let _ = Store::schema(root);
    let Ok(store) = Store::open_existing(root) else { return };
    let _ = store.listing();
    let Ok(experiments) = store.experiments() else { return };
    for experiment in experiments {
        let Ok(plan) = exactfed::evidence::plan(experiment.name.clone(), experiment.source())
        else {
            continue;
        };
        for cell in plan.cells.iter().take(4) {
            let _ = store.status(&plan.experiment, &cell.id);
            let _ = store.read(&plan.experiment, &cell.id);
            let _ = store.finals(&plan.experiment, &cell.id, Quantity::SqError);
            let _ = store.cached(&Cached::Moments(cell.id.to_string()));
        }
    }
    if let Ok(folder) = ResultsFolder::open(root) {
        let _ = folder.side("a".into());
    }
}
