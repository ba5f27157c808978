//! `completions`: what a shell completes of the command line.

use super::outcome::{Code, Failure, print};
use clap::Command;
use clap_complete::Shell;

#[derive(clap::Args)]
#[command(after_help = "\
The shell reads them at its start: bash from ~/.local/share/bash-completion/completions/exactfed, \
zsh from a file _exactfed in a folder of $fpath, fish from \
~/.config/fish/completions/exactfed.fish, PowerShell and elvish from their profile.

Example: exactfed completions fish > ~/.config/fish/completions/exactfed.fish")]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script by which a shell completes the commands and options of `command`, which is the whole
/// command line.
pub fn run(args: &Args, command: &mut Command) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "exactfed", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Done)
}
