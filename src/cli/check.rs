//! `check`: validates manifests and reports all errors.

use super::{Code, Failure, Manifests, memory, prepared, print};
use driftbench_core::words::count;
use driftbench_runner::plan::Cell;

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench check experiments/*/*.toml")]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    let mut errors = Vec::new();
    for plan in &plans {
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        match memory::fits_instances(plan, &cells).and_then(|()| prepared(plan, &cells)) {
            Ok(_) => {
                print(&format!("{}: ok, {}\n", plan.source.name, count(plan.cells.len(), "cell")))?
            }
            Err(failure) => errors.push(failure.message),
        }
    }
    if errors.is_empty() { Ok(Code::Done) } else { Err(Failure::input(errors.join("\n"))) }
}
