//! `schema`: the JSON Schema of manifests, and the reference page.

use super::outcome::{Code, Failure, print};
use crate::evidence::KINDS;

#[derive(clap::Args)]
#[command(after_help = "Example: exactfed schema > manifest.schema.json")]
pub struct Args {
    /// Print the reference page in Markdown instead
    #[arg(long)]
    markdown: bool,
}

/// The command `schema`: prints the JSON Schema of manifests, with which editors complete them, or the reference
/// page, which is docs/MANIFEST.md.
pub fn run(args: &Args) -> Result<Code, Failure> {
    if args.markdown {
        print(&KINDS.reference())?;
    } else {
        let text = serde_json::to_string_pretty(&KINDS.json_schema());
        print(&(text.map_err(|e| Failure::input(format!("error: {e}")))? + "\n"))?;
    }
    Ok(Code::Done)
}
