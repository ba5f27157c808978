//! Refuses runs that would not fit in memory, before anything is built or written.

use super::outcome::Failure;
use super::shard::Cells;
use exactfed_runner::plan::{Cell, Plan};
use exactfed_runner::runner::memory::{PlanMemory, bytes_of_plans, of_instances};
use std::fs::read_to_string;
use std::path::Path;

/// Refuses cells of a plan whose instances do not fit in the available memory together; for commands
/// that build instances and run nothing. Nothing is refused where the system does not report the available memory.
pub fn fits_instances(plan: &Plan, cells: &[&Cell]) -> Result<(), Failure> {
    let need = PlanMemory { instances: of_instances(cells), ..PlanMemory::default() };
    check_fit(&[plan], &[need], available())
}

/// Refuses to run these cells, of several plans, on so many threads if they do not fit in memory: the
/// instances of all plans, and the runs of the plan whose runs need most. `most` is the number of bytes
/// that they may take; by default what is available, if the system reports it. The failure is about the manifest of the
/// plan with the largest part.
pub fn fits(all: &[Cells<'_>], threads: usize, most: Option<f64>) -> Result<(), Failure> {
    let plans: Vec<&Plan> = all.iter().map(|(plan, _)| *plan).collect();
    let needs: Vec<PlanMemory> =
        all.iter().map(|(_, cells)| PlanMemory::of_cells(cells, threads)).collect();
    check_fit(&plans, &needs, most.or_else(available))
}

/// Refuses plans, which run one after the other, if they need more than `most` bytes; `needs` has the memory of each.
/// The message is about the largest part, at the setting that makes it large. `None` refuses nothing, since the
/// available memory is not known.
fn check_fit(plans: &[&Plan], needs: &[PlanMemory], most: Option<f64>) -> Result<(), Failure> {
    let total = bytes_of_plans(needs);
    let Some(most) = most.filter(|most| total > *most) else { return Ok(()) };
    let all = plans
        .iter()
        .zip(needs)
        .flat_map(|(plan, need)| need.parts().map(move |part| (*plan, part)));
    let Some((plan, part)) = all.max_by(|a, b| a.1.bytes.total_cmp(&b.1.bytes)) else {
        return Ok(());
    };
    let key = part.key.rsplit('.').next().unwrap_or_default();
    let message = format!(
        "`{key}`: this needs about {} of memory, and {} are available: {} take {}",
        format_bytes(total),
        format_bytes(most),
        part.what,
        format_bytes(part.bytes)
    );
    Err(Failure::of_plan(plan, std::iter::once((part.key.clone(), message))))
}

/// A number of bytes in words with the unit that suits it, a power of 1000: `64.0 GB`.
fn format_bytes(bytes: f64) -> String {
    let units = [(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1e3, "kB"));
    let number = bytes / unit;
    if number < 1e6 { format!("{number:.1} {name}") } else { format!("{number:.1e} {name}") }
}

/// A text is no size of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size is a number of bytes, such as 500M or 64G")]
pub struct SizeError;

/// The number of bytes that the option `--memory` names, such as `64G`, `500M` or `4096`. A unit is a
/// power of 1000; a B after it has no effect.
pub fn parse_size(text: &str) -> Result<f64, SizeError> {
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
        _ => Err(SizeError),
    }
}

/// The bytes of memory that this process may still use: the available memory of the machine, or less if a limit applies
/// to its control group or to itself. `None` if the system reports none of these, as outside of Linux.
fn available() -> Option<f64> {
    let memory = read_to_string("/proc/meminfo").ok();
    let free =
        memory.as_deref().and_then(|text| field(text, "MemAvailable:")).map(|kb| kb * 1024.0);
    let addresses = read_to_string("/proc/self/limits").ok().and_then(|limits| {
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        address_space_left(&limits, &status)
    });
    [free, addresses, control_group(Path::new("/sys/fs/cgroup"))]
        .into_iter()
        .flatten()
        .reduce(f64::min)
}

/// The bytes that a process may still map before its address space reaches its limit (`ulimit -v`), from the texts
/// of its `limits` and `status` in /proc; `None` if it has no limit. All mapped addresses count, also where no memory
/// is behind them.
fn address_space_left(limits: &str, status: &str) -> Option<f64> {
    let limit = field(limits, "Max address space")?;
    let mapped = field(status, "VmSize:").map_or(0.0, |kb| kb * 1024.0);
    Some((limit - mapped).max(0.0))
}

/// The most bytes of memory that this process has held so far; `None` where the system does not count
/// them.
pub fn peak() -> Option<f64> {
    field(&read_to_string("/proc/self/status").ok()?, "VmHWM:").map(|kb| kb * 1024.0)
}

/// The number that follows `name` in the first line of a text that begins with it, as in the files of
/// /proc; `None` if no line does, or no number follows.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The bytes that the control groups of this process may still use, by the group with the least room
/// (each limits also all groups below it); `root` is where the groups are mounted. `None` if no group has
/// a limit. The first version of control groups has other names for the files than the second, whose
/// kind is empty.
fn control_group(root: &Path) -> Option<f64> {
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
            let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let left = (limit - used + page_cache(&stat)).max(0.0);
            least = Some(least.map_or(left, |least| least.min(left)));
        }
    }
    least
}

/// The bytes that a control group and all groups below it use for page cache that the system frees on demand, from the
/// text of its `memory.stat`; 0 if the text does not say. The first version of control groups also has a line
/// `inactive_file`, which leaves out the groups below; in the second version that line is of all, and the only one.
fn page_cache(stat: &str) -> f64 {
    let of_all = field(stat, "total_inactive_file ");
    of_all.or_else(|| field(stat, "inactive_file ")).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_formatted() {
        assert_eq!(parse_size("500M"), Ok(5e8));
        assert_eq!(parse_size("64GB"), Ok(6.4e10));
        assert_eq!(parse_size("1.5t"), Ok(1.5e12));
        assert_eq!(parse_size("4096"), Ok(4096.0));
        for wrong in ["", "G", "-1G", "lots", "nan", "1e400"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        let all = [(512.0, "0.5 kB"), (6.4e10, "64.0 GB"), (3e25, "3.0e7 EB")];
        all.iter().for_each(|(bytes, text)| assert_eq!(format_bytes(*bytes), *text));
    }

    #[test]
    fn fields_of_proc_are_found() {
        let text = "MemTotal:       100 kB\nMemAvailable:   42 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(42.0));
        assert_eq!(field(text, "SwapFree:"), None);
    }

    #[test]
    fn what_is_mapped_is_no_longer_left_of_the_address_space() {
        let left = |limit: &str, status: &str| {
            let limits =
                format!("Limit  Soft Limit\nMax address space         {limit}  unlimited  bytes\n");
            address_space_left(&limits, status)
        };
        let status = "VmPeak:\t     900 kB\nVmSize:\t     100 kB\n";
        assert_eq!(left("1024000", status), Some(921_600.0));
        assert_eq!(left("1024", status), Some(0.0));
        assert_eq!(left("1024", ""), Some(1024.0));
        assert_eq!(left("unlimited", status), None);
    }

    #[test]
    fn page_cache_is_of_the_groups_below_too() {
        let first = "inactive_file 10\nactive_file 1\ntotal_inactive_file 300\n";
        assert_eq!(page_cache(first), 300.0);
        let second = "file 70\ninactive_file 20\nactive_file 1\n";
        assert_eq!(page_cache(second), 20.0);
        assert_eq!(page_cache(""), 0.0);
    }
}
