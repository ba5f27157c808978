//! Runs a program to its end and measures its time and peak memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The result of running a program.
pub struct Ran {
    /// Elapsed time.
    pub seconds: f64,
    /// Peak of resident memory in megabytes; `None` without /proc.
    pub peak: Option<f64>,
    /// Its standard output.
    pub out: String,
}

/// Runs a program.
///
/// # Errors
/// If it cannot be started; if its exit code is none of `accepted`, with the last line
/// that it printed.
pub fn run(command: &mut Command, accepted: &[i32]) -> Result<Ran, String> {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |e: std::io::Error| format!("{name}: {e}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begin = Instant::now();
    let child = command.spawn().map_err(failed)?;
    let (id, ended) = (child.id(), AtomicBool::new(false));
    let (output, seconds, peak) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(id, &ended));
        let output = child.wait_with_output();
        let seconds = begin.elapsed().as_secs_f64();
        ended.store(true, Ordering::Relaxed);
        (output, seconds, watcher.join().unwrap_or(None))
    });
    let output = output.map_err(failed)?;
    let [out, err] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if !output.status.code().is_some_and(|code| accepted.contains(&code)) {
        let last = err.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
        return Err(format!("{name} ended with {}: {last}", output.status));
    }
    Ok(Ran { seconds, peak, out })
}

/// The peak until the process ends, read every millisecond at first, so that short
/// processes are measured too, then every 20 milliseconds.
fn watch(id: u32, ended: &AtomicBool) -> Option<f64> {
    let (begin, mut peak) = (Instant::now(), None::<f64>);
    while !ended.load(Ordering::Relaxed) {
        if let Some(now) = high_water(id) {
            peak = Some(peak.map_or(now, |before| before.max(now)));
        }
        let young = begin.elapsed() < Duration::from_secs(1);
        thread::sleep(Duration::from_millis(if young { 1 } else { 20 }));
    }
    peak
}

/// VmHWM of a process in megabytes.
fn high_water(id: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}
