//! The texts of a manifest on its results (`analysis` and `finding`), in which calls stand for
//! numbers from the results, so that no sentence becomes outdated. The reference of manifests lists
//! the functions at the key `analysis`.
//!
//! *Invariant*: a text that [`check`] accepts can be filled from any results of its plan, in time
//! and memory that grow with the text alone, because it contains nothing but calls.

mod bias_share;
mod calls;
mod facts;
mod frontier_facts;
mod functions;

use crate::evidence::Experiment;
use exactfed_runner::plan::Plan;
use facts::TextFacts;
use minijinja::value::{Rest, Value, ValueOrKwargs};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The template engine with the functions of texts. It has nothing else: no filters, ranges or
/// loops.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = empty_environment();
    functions::register(&mut environment);
    environment
});

/// The template engine for experiments with missing results, in which every function says that there is no result.
static WITHOUT_RESULTS: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = empty_environment();
    for name in functions::NAMES.split(", ") {
        environment.add_function(name, |_: Rest<ValueOrKwargs>| "(no result)");
    }
    environment
});

/// A template engine without functions, for which a name without a value is an error.
fn empty_environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// Why a text of a manifest cannot be filled from any results of its plan.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// The template engine cannot split the text into tokens or parse it, or a function was called with arguments that
    /// it refuses.
    #[error("{0}")]
    Template(String),
    /// A call names a function that texts do not have.
    #[error("{message} (allowed: {})", functions::NAMES)]
    UnknownFunction {
        /// What the template engine says of the name.
        message: String,
    },
    /// The text has a statement of the template engine, such as a loop.
    #[error("statements {{% … %}} are not offered, only {{{{ … }}}}")]
    Statement,
    /// An expression has a token that belongs to no call.
    #[error(
        "{token} is not offered in {{{{ … }}}}, only calls of {} with texts and numbers",
        functions::NAMES
    )]
    OtherToken {
        /// The token, as the template engine writes it.
        token: String,
    },
    /// An expression is longer than any call needs.
    #[error(
        "an expression has {length} characters; at most {} are allowed: {{{{ {begin}…",
        calls::MOST_CHARACTERS
    )]
    TooLong {
        /// The number of its characters.
        length: usize,
        /// Its first characters.
        begin: String,
    },
    /// An expression has more brackets inside one another than any call needs.
    #[error("an expression has more than {} open brackets: {{{{ {begin}…", calls::MOST_OPEN)]
    TooDeep {
        /// Its first characters.
        begin: String,
    },
}

impl From<minijinja::Error> for TextError {
    /// The error of the template engine, in its words; for a function that texts do not have, those that they have are
    /// added.
    fn from(e: minijinja::Error) -> Self {
        // The detail says what is wrong, without the kind of the error and its line in the template.
        let message = e.detail().map_or(e.to_string(), str::to_owned);
        match e.kind() {
            ErrorKind::UnknownFunction => Self::UnknownFunction { message },
            _ => Self::Template(message),
        }
    }
}

/// Fills the texts of one manifest.
pub struct TextFiller {
    environment: &'static Environment<'static>,
    facts: Arc<TextFacts>,
}

impl TextFiller {
    /// Fills texts from the results of an experiment. While results are missing, no call has a value and no guard
    /// fails.
    pub fn of_results(experiment: &Experiment<'_>) -> Self {
        if !experiment.missing.is_empty() {
            return Self { environment: &WITHOUT_RESULTS, facts: Arc::default() };
        }
        Self { environment: &ENVIRONMENT, facts: Arc::new(TextFacts::of_results(experiment)) }
    }

    /// The text with the values of its calls in their places; `None` if a claim has another verdict than a guard of the
    /// text says (`holds`, `refuted`, `undecided`), so that the text must not be shown.
    ///
    /// # Errors
    /// If it is no template, or names no cell or more than one.
    pub fn fill(&self, text: &str) -> Result<Option<String>, TextError> {
        calls::check(text)?;
        let guards = functions::Guards::new(&self.facts);
        let context = BTreeMap::from([(functions::GUARDS, Value::from_dyn_object(guards.clone()))]);
        let filled = self.environment.render_str(text, context)?;
        Ok(guards.hold().then_some(filled))
    }
}

/// Checks that a text can be filled from any results of this plan.
///
/// # Errors
/// Why it cannot be filled.
pub fn check(text: &str, plan: &Plan) -> Result<(), TextError> {
    // Most texts have no calls, and the facts of a large plan take time.
    if !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
        return Ok(());
    }
    let facts = Arc::new(TextFacts::of_plan(plan));
    TextFiller { environment: &ENVIRONMENT, facts }.fill(text).map(|_| ())
}

#[cfg(test)]
mod tests;
