//! What memory cannot hold is refused before anything is built or written.

use super::{Failure, rejected};
use driftbench_core::problem::Share;
use driftbench_runner::plan::{Cell, Plan};
use driftbench_runner::runner::memory::Need;
use std::fs::read_to_string;
use std::path::Path;

/// Some of a plan's cells.
pub type Cells<'a> = (&'a Plan, Vec<&'a Cell>);

/// Refuses instances that memory cannot hold.
pub fn fits_instances(plan: &Plan, cells: &[&Cell]) -> Result<(), Failure> {
    let need = Need::of_instances(cells);
    judge(&[(plan, need)], available())
}

/// Refuses runs that memory cannot hold: the instances of all plans, and the runs
/// of the largest. `most` stands for the memory that there is.
pub fn fits(all: &[Cells<'_>], threads: usize, most: Option<f64>) -> Result<(), Failure> {
    let mut needs: Vec<(&Plan, Need)> = Vec::new();
    for (plan, cells) in all {
        let mut need = Need::of_instances(cells);
        need.0.extend(Need::of_runs(cells, threads).0);
        needs.push((plan, need));
    }
    judge(&needs, most.or_else(available))
}

fn judge(needs: &[(&Plan, Need)], most: Option<f64>) -> Result<(), Failure> {
    // Plans are run one after the other, but their instances are built first.
    let kept = |share: &&Share| share.key.starts_with("problem.");
    let instances = needs.iter().flat_map(|(_, need)| need.0.iter().filter(kept));
    let runs = |need: &Need| need.0.iter().filter(|s| !kept(s)).map(|s| s.bytes).sum::<f64>();
    let total = instances.map(|share| share.bytes).sum::<f64>()
        + needs.iter().map(|(_, need)| runs(need)).fold(0.0, f64::max);
    let Some(most) = most.filter(|most| total > *most) else { return Ok(()) };
    let all = needs.iter().flat_map(|(plan, need)| need.0.iter().map(move |s| (plan, s)));
    let Some((plan, share)) = all.max_by(|a, b| a.1.bytes.total_cmp(&b.1.bytes)) else {
        return Ok(());
    };
    let key = share.key.rsplit('.').next().unwrap_or_default();
    let message = format!(
        "`{key}`: this needs about {} of memory, and there are {}: {} take {}",
        told(total),
        told(most),
        share.what,
        told(share.bytes)
    );
    Err(Failure::input(rejected(plan, std::iter::once((share.key.clone(), message)))))
}

/// Bytes in words.
fn told(bytes: f64) -> String {
    let units = [(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1e3, "kB"));
    let number = bytes / unit;
    if number < 1e6 { format!("{number:.1} {name}") } else { format!("{number:.1e} {name}") }
}

/// `64G`, `500M` or a number of bytes.
pub fn size(text: &str) -> Result<f64, String> {
    let plain = text.trim_end_matches(['B', 'b']);
    let unit = match plain.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        Some('T') => 1e12,
        _ => 1.0,
    };
    let digits = if unit > 1.0 { &plain[..plain.len() - 1] } else { plain };
    match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number * unit),
        _ => Err("a size is a number of bytes, such as 500M or 64G".into()),
    }
}

/// The memory that this process may still take, where the system tells: what is
/// available, or less where a limit is set on its group or on itself.
fn available() -> Option<f64> {
    let memory = read_to_string("/proc/meminfo").ok();
    let free =
        memory.as_deref().and_then(|text| field(text, "MemAvailable:")).map(|kb| kb * 1024.0);
    let limit = read_to_string("/proc/self/limits").ok();
    let limit = limit.as_deref().and_then(|text| field(text, "Max address space"));
    [free, limit, group(Path::new("/sys/fs/cgroup"))].into_iter().flatten().reduce(f64::min)
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the limits of the control groups above this process leave.
fn group(root: &Path) -> Option<f64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let mut least: Option<f64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(kind), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (folder, limit, used) = match kind {
            "" => (root.to_owned(), "memory.max", "memory.current"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
            _ => continue,
        };
        let own = folder.join(path.trim_start_matches('/'));
        for folder in own.ancestors().take_while(|above| above.starts_with(&folder)) {
            let number = |name: &str| -> Option<f64> {
                read_to_string(folder.join(name)).ok()?.trim().parse().ok()
            };
            let (Some(limit), Some(used)) = (number(limit), number(used)) else { continue };
            // What the files of a group take is given back when it is wanted.
            let files = read_to_string(folder.join("memory.stat")).ok();
            let files = files.as_deref().and_then(|text| {
                field(text, "inactive_file ").or_else(|| field(text, "total_inactive_file "))
            });
            let left = (limit - used + files.unwrap_or(0.0)).max(0.0);
            least = Some(least.map_or(left, |least| least.min(left)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_told() {
        assert_eq!(size("500M"), Ok(5e8));
        assert_eq!(size("64GB"), Ok(6.4e10));
        assert_eq!(size("1.5t"), Ok(1.5e12));
        assert_eq!(size("4096"), Ok(4096.0));
        for wrong in ["", "G", "-1G", "lots", "nan", "1e400"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        let all = [(512.0, "0.5 kB"), (6.4e10, "64.0 GB"), (3e25, "3.0e7 EB")];
        all.iter().for_each(|(bytes, text)| assert_eq!(told(*bytes), *text));
    }

    #[test]
    fn fields_of_proc_are_found() {
        let text = "MemTotal:       100 kB\nMemAvailable:   42 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(42.0));
        let limits = "Limit  Soft Limit\nMax address space         unlimited  unlimited  bytes\n";
        assert_eq!(field(limits, "Max address space"), None);
    }
}
