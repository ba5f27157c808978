//! `check`: all that is wrong with some manifests.

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
    let mut wrong = Vec::new();
    for plan in &plans {
        let cells: Vec<&Cell> = plan.cells.iter().collect();
        match memory::fits_instances(plan, &cells).and_then(|()| prepared(plan, &cells)) {
            Ok(_) => {
                print(&format!("{}: ok, {}\n", plan.source.name, count(plan.cells.len(), "cell")))?
            }
            Err(failure) => wrong.push(failure.message),
        }
    }
    if wrong.is_empty() { Ok(Code::Done) } else { Err(Failure::input(wrong.join("\n"))) }
}
