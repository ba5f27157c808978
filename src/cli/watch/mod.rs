//! `watch`: runs the missing cells, and meanwhile serves the reports over HTTP.
//!
//! *Invariant*: results and pages on the disk are those of `run` and `report`, also after an
//! interruption. What a browser shows in addition is inserted when a page is served.

mod address;
mod connection;
mod server;
mod site;

use super::manifests::Manifests;
use super::outcome::{Code, Failure, print};
use super::pages::{LivePages, POLL_INTERVAL};
use super::run::{self, Phase, PreparedRun, RunStatus};
use address::Address;
use site::Site;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "\
The reports are served on this machine alone, at the printed address, unless --host names another \
address. Pages reload when cells were stored. After the last cell the reports are served until \
Ctrl-C. Results and reports on the disk are those of `exactfed run` and `exactfed report`, also \
after an interruption.

Example: exactfed watch experiments/scafflsa/fig1-high.toml")]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
    #[command(flatten)]
    options: run::RunOptions,
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
    /// Port to listen on, 0 for any free one; by default 8642, or any free one if it is taken
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Address or name to listen on; any but the default opens the reports to other machines
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// End after the last cell instead of serving the reports until Ctrl-C
    #[arg(long)]
    exit: bool,
}

/// Time that an open page has to fetch the final state before the process ends.
const LINGER: Duration = Duration::from_millis(1500);

pub fn run(args: &Args) -> Result<Code, Failure> {
    let plans = args.manifests.plans()?;
    let (listener, address) = Address::listen(&args.host, args.port)?;
    let mut run = PreparedRun::new(&plans, &args.options, None)?;
    let stop = run.interrupt().stop.clone();
    let pages = LivePages::new(None, &args.options.out, &args.reports, args.options.quiet)?;
    let pages = Arc::new(pages);
    let leave = {
        let pages = pages.clone();
        move |status: &RunStatus| {
            conclude(Code::Interrupted, &pages, status);
            linger(status);
        }
    };
    let status = Arc::new(RunStatus::new(run.workloads(), leave));
    print_address(&address)?;
    let site = Site { pages: pages.clone(), status: status.clone(), address };
    server::serve(listener, site)?;
    let ran = pages.during(&*status, &stop, || run.execute(&*status));
    let code = ran.unwrap_or_else(|failure| failed(failure, &status));
    let code = conclude(code, &pages, &status);
    let is_stopped = || stop.load(Ordering::Relaxed);
    if !args.exit && !args.options.quiet && !is_stopped() {
        eprintln!("finished: the reports are served until Ctrl-C");
    }
    while !args.exit && !is_stopped() {
        sleep(POLL_INTERVAL);
    }
    linger(&status);
    Ok(code)
}

/// Lets open pages fetch the final state.
fn linger(status: &RunStatus) {
    if status.is_watched() {
        sleep(LINGER);
    }
}

/// Prints where the reports are, and a warning if other machines can read them.
fn print_address(address: &Address) -> Result<(), Failure> {
    let url = address.url();
    if !address.bound.ip().is_loopback() {
        eprintln!(
            "warning: every machine that can connect to {} can read the reports and the progress of this run, without a password and without encryption",
            address.bound
        );
    }
    print(&format!("reports: {url}\n"))
}

/// Reports a failure of the whole run, which has the code of the result.
fn failed(failure: Failure, status: &RunStatus) -> Code {
    eprintln!("{}", failure.message.trim_end());
    status.add_error(failure.message);
    failure.code
}

/// Writes the final pages of a run that ended with this code.
fn conclude(code: Code, pages: &LivePages<'_>, status: &RunStatus) -> Code {
    status.enter(Phase::Reporting);
    let judged = pages.write_final().unwrap_or_else(|failure| failed(failure, status));
    status.end(code);
    // Failed cells are the more serious outcome: their code takes precedence.
    judged.and(code)
}
