//! How commands end, and what they print.

use exactfed_runner::files;
use exactfed_runner::manifest::axis::Choice;
use exactfed_runner::manifest::document::{Diagnostic, Rejected, parse};
use exactfed_runner::plan::{Plan, place_of};
use std::fmt::Display;
use std::io::Write;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Done.
    Done = 0,
    /// A claim is refuted, or a diff found a regression.
    Refuted = 1,
    /// Bad input; nothing was written.
    BadInput = 2,
    /// Nothing to compare.
    NotComparable = 3,
    /// Some cells failed; the others are stored.
    SomeFailed = 4,
    /// Interrupted; finished cells are stored.
    Interrupted = 130,
}

impl Code {
    /// The code of a command of two parts, `self` and then `other`: the code of the second part, or that of
    /// the first if the second is [`Self::Done`]. Callers put the part whose code takes precedence second.
    pub fn and(self, other: Self) -> Self {
        if other == Self::Done { self } else { other }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The message, ready to be printed.
    pub message: String,
    /// The exit code.
    pub code: Code,
    /// What is wrong with the manifest, if that is why: the message says it too; exceptions in Python have its entries.
    pub rejected: Option<Box<Rejected>>,
}

impl Failure {
    /// A failure because of bad input, with [`Code::BadInput`].
    pub fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), code: Code::BadInput, rejected: None }
    }

    /// All results, once each was tried; or, if any failed, one failure with the messages of all that did, so that a
    /// user sees them at once. Its code is [`Code::BadInput`], whatever codes they had.
    pub fn join<T>(all: impl Iterator<Item = Result<T, Self>>) -> Result<Vec<T>, Self> {
        let mut good = Vec::new();
        let mut wrong = Vec::new();
        for one in all {
            match one {
                Ok(one) => good.push(one),
                Err(failure) => wrong.push(failure.message),
            }
        }
        if wrong.is_empty() { Ok(good) } else { Err(Self::input(wrong.join("\n"))) }
    }

    /// The failure for errors in a plan's manifest, each the path of a key and a message, which are shown at
    /// their lines in the manifest, with [`Code::BadInput`]; at the whole array if the key is an axis, and without a
    /// line if the manifest does not have the key.
    pub fn of_plan(plan: &Plan, found: impl Iterator<Item = (String, String)>) -> Self {
        let root = parse(&plan.source).ok();
        let diagnostics = found.map(|(path, message)| {
            let place = root.as_ref().and_then(|root| place_of(root, &path, &Choice::new()));
            Diagnostic::new(place, &path, message)
        });
        Rejected::new(&plan.source, diagnostics.collect()).into()
    }
}

impl From<Rejected> for Failure {
    /// The failure because of a manifest that is wrong, with its entries for exceptions in Python.
    fn from(rejected: Rejected) -> Self {
        let failure = Self::input(&rejected);
        Self { rejected: Some(Box::new(rejected)), ..failure }
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Self {
        Self::input(format!("error: {error}"))
    }
}

/// Writes to standard output, as it is: the text ends its last line itself. A reader that has closed the pipe is not an
/// error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("error: standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// The message that another run holds the lock of an experiment.
pub fn waiting(experiment: &str) -> String {
    format!("{experiment}: another run is at work on it: waiting until it ends")
}
