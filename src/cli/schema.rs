//! `schema`: what a manifest may say, for editors and for readers.

use super::{Code, Failure, print};
use driftbench_runner::manifest::schema;

#[derive(clap::Args)]
#[command(after_help = "Example: driftbench schema > manifest.schema.json")]
pub struct Args {
    /// The reference page instead of the JSON Schema
    #[arg(long)]
    markdown: bool,
}

pub fn run(args: &Args) -> Result<Code, Failure> {
    if args.markdown {
        print(&schema::markdown())?;
    } else {
        let text = serde_json::to_string_pretty(&schema::json());
        print(&(text.map_err(|e| Failure::input(format!("error: {e}")))? + "\n"))?;
    }
    Ok(Code::Done)
}
