//! `check`: validates manifests and reports all errors.

use super::manifests::Manifests;
use super::memory;
use super::outcome::{Code, Failure, print};
use super::plan::multiples;
use super::prepare::{prepared_to_check, warn_of};
use exactfed_core::words::count;
use exactfed_runner::plan::{Cell, Plan};

#[derive(clap::Args)]
#[command(after_help = "Example: exactfed check experiments/*/*.toml")]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
}

/// The command `check`: validates manifests one after another, and prints a line for each that is right.
///
/// # Errors
/// The mistakes of all manifests together.
pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    let checked = plans.iter().map(|plan| {
        let multiples = check_with_multiples(plan)?;
        let cells = count(plan.cells.len(), "cell");
        let frontiers = match plan.manifest.frontier.len() {
            0 => String::new(),
            some => format!(" and {}", count(some, "frontier")),
        };
        print(&format!("{}: ok, {cells}{frontiers}\n{multiples}", plan.source.name))
    });
    Failure::join(checked).map(|_| Code::Done)
}

/// [`check`], which returns the lines with what numbers in units of the problem's constants come to.
///
/// # Errors
/// As [`check`].
fn check_with_multiples(plan: &Plan) -> Result<String, Failure> {
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    memory::fits_instances(plan, &cells)?;
    let prepared = prepared_to_check(plan, &cells)?;
    warn_of(plan, &prepared);
    Ok(multiples(plan, &prepared))
}

/// Checks what making a plan does not: that the instances of its cells and frontiers can be built, and fit in
/// memory; the instances are dropped again. Where θ* is searched for in many unknowns, it is found on the first instance
/// of a cell alone. Prints warnings on standard error about what is allowed but may not be
/// meant.
///
/// # Errors
/// All that is wrong with the cells and the frontiers.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    check_with_multiples(plan).map(drop)
}
