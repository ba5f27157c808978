//! The machine and the revision of the measurements.

use std::fs;
use std::process::Command;

/// Pairs of name and value.
pub fn facts(cores: usize) -> Vec<(&'static str, String)> {
    vec![
        ("processor", processor()),
        ("cores", cores.to_string()),
        ("memory", memory()),
        ("load before", load()),
        ("compiler", output_of("rustc", &["--version"])),
        ("commit", commit()),
        ("date", output_of("date", &["-u", "+%F"])),
    ]
}

/// The first value of a key in a file of `key : value` lines.
fn value(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn processor() -> String {
    value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into())
}

fn memory() -> String {
    let total = value("/proc/meminfo", "MemTotal");
    let kilobytes = total.and_then(|t| t.strip_suffix("kB")?.trim().parse::<f64>().ok());
    kilobytes.map_or("unknown".into(), |k| format!("{:.1} GB", k * 1024.0 / 1e9))
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").ok();
    let first = text.and_then(|t| Some(t.split_whitespace().next()?.to_owned()));
    first.unwrap_or_else(|| "unknown".into())
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let text = output.filter(|o| o.status.success()).map(|o| o.stdout);
    text.map_or("unknown".into(), |t| String::from_utf8_lossy(&t).trim().to_owned())
}

fn commit() -> String {
    let changed = output_of("git", &["status", "--porcelain", "--untracked-files=no"]);
    let commit = output_of("git", &["rev-parse", "--short=12", "HEAD"]);
    let clean = changed.is_empty() || commit == "unknown";
    if clean { commit } else { format!("{commit}, with changes") }
}
