//! `data`: describes a data file, and prints a manifest to start from.

use super::outcome::{Code, Failure, print};
use crate::store::read_table;
use exactfed_runner::data::describe::{ClientWish, Description, Wishes, describe_file};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
The description stands in comments above the manifest, so that the output is a manifest. The path \
of the file is written as it is given: write the manifest into the folder where you are. If no \
problem takes the records, as when values are missing, the description is printed on standard \
error with the reason, and the exit code is 2.

Example: exactfed data records.csv --label outcome > records.toml && exactfed run records.toml")]
pub struct Args {
    /// CSV, Parquet, LIBSVM or .npz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The column of the labels (CSV, Parquet); by default one with a usual name, or the last
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// The column of the clients (CSV, Parquet; .npz: the array), or the number of clients to which shuffled
    /// records are given; by default a column whose name says so, such as site or hospital, or up to 10
    #[arg(long, value_name = "COLUMN|N")]
    pub clients: Option<String>,
    /// The first line of a CSV file is a record; the columns are called c1, c2, …
    #[arg(long)]
    pub no_header: bool,
    /// Print a manifest that compares five algorithms, each with the settings that are best for it
    #[arg(long)]
    pub tune: bool,
}

impl Args {
    /// The arguments for this file, with all options left out.
    pub fn of_file(file: PathBuf) -> Self {
        Self { file, label: None, clients: None, no_header: false, tune: false }
    }
}

/// The command `data`: prints the description of a data file and a manifest for it.
pub fn run(args: &Args) -> Result<Code, Failure> {
    print(&manifest(args)?.1)?;
    Ok(Code::Done)
}

/// The description of a data file, line by line, and the text of a manifest for it, which begins with the
/// description in comments.
///
/// # Errors
/// If the file cannot be read, or no problem takes its records; the message then has the description.
pub fn manifest(args: &Args) -> Result<(Vec<String>, String), Failure> {
    let path = args.file.to_str().ok_or_else(|| {
        Failure::input(format!("error: {} is not UTF-8 text", args.file.display()))
    })?;
    let clients = args.clients.as_deref().map(client_wish).transpose()?;
    let wishes = Wishes {
        label: args.label.as_deref(),
        clients,
        tune: args.tune,
        is_without_header: args.no_header,
    };
    let Description { lines, manifest } = describe_file(path, &wishes, Some(read_table))
        .map_err(|e| Failure::input(format!("error: {e}")))?;
    let described =
        |mark: &str| lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>();
    match manifest {
        Ok(manifest) => {
            // A line break in a name would end the comment, and what follows be read as a key.
            let name = path.replace(char::is_control, "\u{fffd}");
            let text = format!("# {name}\n{}\n{manifest}", described("# "));
            Ok((lines, text))
        }
        Err(reason) => Err(Failure::input(format!("{}error: {path}: {reason}", described("")))),
    }
}

/// What the value of `--clients` says: a whole number is the number of clients, any other text names a column.
fn client_wish(text: &str) -> Result<ClientWish<'_>, Failure> {
    match text.parse() {
        Ok(0) => Err(Failure::input("error: --clients 0: there is at least one client")),
        Ok(number) => Ok(ClientWish::Number(number)),
        Err(_) => Ok(ClientWish::Column(text)),
    }
}
