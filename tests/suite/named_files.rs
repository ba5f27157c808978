//! Files that a user names. What `--out` leads to is written and never replaced by something of
//! another kind; what is read has a limit; and the umask is obeyed.
#![cfg(unix)]

use super::diff::git;
use crate::support::process::Program;
use crate::support::{Bench, Finished, SMALL, exactfed, files_below};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

/// What a command may take that only writes a small file.
const DEADLINE: Duration = Duration::from_secs(60);

/// The commands that write one file, which a user names, and the ending of its name.
const WRITERS: [(&[&str], &str); 5] = [
    (&["export", "--quiet"], "csv"),
    (&["export", "--quiet"], "parquet"),
    (&["diff", "results", "results"], "html"),
    (&["history", "--format", "md"], "md"),
    (&["init", "--force"], "toml"),
];

/// Results, and reports under version control.
fn scene() -> Bench {
    let bench = Bench::ran(SMALL);
    bench.report();
    git(&bench, &["init", "-q"]).expect(0);
    git(&bench, &["add", "reports"]).expect(0);
    git(&bench, &["commit", "-qm", "reports"]).expect(0);
    bench
}

fn write_to(bench: &Bench, command: &[&str], out: &str) -> Finished {
    let arguments = [command, &["--out", out]].concat();
    exactfed().args(arguments).folder(&bench.folder).deadline(DEADLINE).run().into()
}

fn make(bench: &Bench, program: &str, arguments: &[&str]) -> Finished {
    Program::new(program).args(arguments).folder(&bench.folder).deadline(DEADLINE).run().into()
}

/// The permissions of a file, without its kind.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_link_stays_and_the_file_that_it_leads_to_is_written() {
    let bench = scene();
    fs::create_dir(bench.path("elsewhere")).unwrap();
    for (command, ending) in WRITERS {
        let plain = format!("plain.{ending}");
        write_to(&bench, command, &plain).expect(0);
        let target = format!("elsewhere/target.{ending}");
        bench.write(&target, "keep");
        fs::set_permissions(bench.path(&target), fs::Permissions::from_mode(0o600)).unwrap();
        let link = format!("link.{ending}");
        symlink(bench.path(&target), bench.path(&link)).unwrap();
        write_to(&bench, command, &link).expect(0);
        assert!(bench.path(&link).is_symlink(), "{command:?} replaced a link");
        assert!(bench.read_bytes(&target) == bench.read_bytes(&plain), "{command:?}");
        assert_eq!(mode(&bench.path(&target)), 0o600, "an existing file keeps its permissions");

        let dangling = format!("dangling.{ending}");
        symlink("nowhere", bench.path(&dangling)).unwrap();
        let refused = write_to(&bench, command, &dangling).expect(2);
        refused.warns(&format!("{dangling}: it is a symbolic link that leads to no file"));
        assert!(!bench.path("nowhere").exists() && bench.path(&dangling).is_symlink());
    }
    let left = bench.files();
    assert!(left.iter().all(|name| !name.starts_with(".writing-")), "{left:?}");
}

#[test]
fn a_pipe_is_written_into() {
    let bench = scene();
    for (command, ending) in WRITERS {
        let [plain, pipe] = ["plain", "pipe"].map(|name| format!("{name}.{ending}"));
        write_to(&bench, command, &plain).expect(0);
        make(&bench, "mkfifo", &[&pipe]).expect(0);
        let reader = Program::new("cat").args([&pipe]).folder(&bench.folder).deadline(DEADLINE);
        let reader = reader.start();
        write_to(&bench, command, &pipe).expect(0);
        assert!(reader.finish().stdout == bench.read_bytes(&plain), "{command:?}");
        let kind = fs::symlink_metadata(bench.path(&pipe)).unwrap().file_type();
        assert!(kind.is_fifo(), "{command:?} replaced a pipe");
    }
}

/// On copies of /dev/null and /dev/full, which only root can make.
#[test]
fn a_device_is_written_into() {
    let bench = scene();
    for (command, ending) in WRITERS {
        for (device, minor, code) in [("null", "3", 0), ("full", "7", 2)] {
            let path = format!("{device}.{ending}");
            let made = make(&bench, "mknod", &["-m", "666", &path, "c", "1", minor]);
            let opened = fs::OpenOptions::new().write(true).open(bench.path(&path));
            if made.code != 0 || opened.is_err() {
                eprintln!("skipped: {path} cannot be made here: {}", made.err.trim());
                continue;
            }
            let output = write_to(&bench, command, &path).expect(code);
            assert!(code == 0 || output.err.contains(&path), "{}", output.err);
            let kind = fs::symlink_metadata(bench.path(&path)).unwrap().file_type();
            assert!(kind.is_char_device(), "{command:?} replaced a device");
        }
    }
}

#[test]
fn a_folder_is_refused() {
    let bench = scene();
    for (command, ending) in WRITERS {
        let folder = format!("folder.{ending}");
        fs::create_dir(bench.path(&folder)).unwrap();
        let refused = write_to(&bench, command, &folder).expect(2);
        refused.warns(&format!("{folder}: it is a folder; a file is expected"));
        assert_eq!(fs::read_dir(bench.path(&folder)).unwrap().count(), 0);
    }
}

/// `/dev/stdout` leads to a pipe, or to a file to which a shell appends. Here it is a copy, which a
/// program that replaces links may harm.
#[test]
fn standard_output_may_be_named() {
    let bench = scene();
    symlink("/dev/fd/1", bench.path("stdout")).unwrap();
    let command = ["diff", "results", "results"];
    let text = bench.run(&command).expect(0).out;
    assert_eq!(write_to(&bench, &command, "stdout").expect(0).out, text);
    bench.write("log", "before\n");
    let program = env!("CARGO_BIN_EXE_exactfed");
    let script = format!("'{program}' diff results results --out stdout >> log");
    make(&bench, "sh", &["-c", &script]).expect(0);
    assert_eq!(bench.read("log"), format!("before\n{text}"));
    assert!(bench.path("stdout").is_symlink());
}

/// A list of cells may come from a pipe, such as that of a shell's `<(…)`, and never takes more
/// than a limited amount of memory.
#[test]
fn a_list_of_cells_has_a_limit_and_may_be_a_pipe() {
    let bench = Bench::ran(SMALL);
    let read = |only: &str| -> Finished {
        let arguments = ["run", "m.toml", "--only", only];
        exactfed().args(arguments).folder(&bench.folder).deadline(DEADLINE).run().into()
    };
    let endless = read("/dev/zero").expect(2);
    endless.warns("/dev/zero cannot be read: it has more than 67108864 bytes, which are allowed");
    read(".").expect(2).warns("it is a folder; a file is expected");
    read("/dev/null").expect(0);
    let merge = ["merge", "results", "--out", "merged", "--expect", "/dev/zero"];
    let merged: Finished =
        exactfed().args(merge).folder(&bench.folder).deadline(DEADLINE).run().into();
    merged.expect(2).warns("it has more than 67108864 bytes");

    make(&bench, "mkfifo", &["list"]).expect(0);
    let id = bench.ids("results/m").remove(0);
    let writer = Program::new("sh").args(["-c", &format!("echo {id} > list")]);
    let writer = writer.folder(&bench.folder).deadline(DEADLINE).start();
    read("list").expect(0).warns("m: the one cell is done");
    writer.finish();
    let program = env!("CARGO_BIN_EXE_exactfed");
    let endless = format!("'{program}' run m.toml --only - < /dev/zero");
    make(&bench, "sh", &["-c", &endless]).expect(2).warns("- cannot be read: it has more than");
}

/// Files are as private as the umask says, whoever made the folders.
#[test]
fn the_umask_is_obeyed() {
    for (umask, expected) in [("077", 0o600), ("022", 0o644), ("002", 0o664)] {
        let bench = Bench::new();
        bench.write("m.toml", SMALL);
        for folder in ["results", "reports"] {
            fs::create_dir(bench.path(folder)).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_exactfed");
        let commands = [
            "run m.toml -q",
            "report -q --format html,md,latex,pdf,png,svg",
            "export -q --out all.csv",
        ];
        for command in commands {
            let script = format!("umask {umask}; exec '{program}' {command}");
            make(&bench, "sh", &["-c", &script]).expect(0);
        }
        let mut files = [bench.path("results"), bench.path("reports")].map(|f| files_below(&f));
        files[0].push(bench.path("all.csv"));
        assert!(files[0].len() > 4 && files[1].len() > 4, "{files:?}");
        for file in files.iter().flatten() {
            assert_eq!(mode(file), expected, "{} under umask {umask}", file.display());
        }
    }
}
