//! What an experiment is about: the topics by which the index is filtered, each with the words by
//! which readers of other papers search for it.

use exactfed_runner::plan::Plan;

/// A topic: its name, its synonyms, which only the search knows, and the function that says whether a plan is about it.
type Topic = (&'static str, &'static str, fn(&Plan) -> bool);

/// All topics, in the order in which the index offers them.
const TOPICS: [Topic; 7] = [
    ("least cost", "frontier communications budget complexity", |plan| {
        !plan.manifest.frontier.is_empty()
    }),
    ("tuned", "tuning best step size search", |plan| plan.tuning.is_some()),
    ("real data", "records dataset data set", has_records),
    ("Dirichlet split", "heterogeneous heterogeneity non-iid label skew", |plan| {
        has(plan, &["split", "dirichlet"])
    }),
    ("partial participation", "client sampling subset of clients cohort", |plan| {
        has(plan, &["cohort"]) || has(plan, &["participation"])
    }),
    (
        "TD learning",
        "temporal difference reinforcement learning policy evaluation Markov",
        |plan| kinds(plan).any(|kind| ["garnet", "mdp"].contains(&kind)),
    ),
    ("published theory", "theorem lemma bound formula", |plan| {
        plan.claim_tables.iter().any(|claim| !claim.common().statements.is_empty())
    }),
];

/// The kinds of the problems of a plan's cells and of its frontiers.
fn kinds(plan: &Plan) -> impl Iterator<Item = &str> {
    let frontier = plan.frontier_problem.iter().map(|problem| problem.kind());
    plan.all_cells().map(|cell| cell.identity.problem.kind()).chain(frontier)
}

/// Whether a cell or a frontier of a plan has records of a data file, which instances divide at random.
pub fn has_records(plan: &Plan) -> bool {
    kinds(plan).any(|kind| kind.ends_with("-dataset"))
}

/// Whether a cell has a setting whose path ends with these keys. A table is a setting, and so is each
/// value in it.
fn has(plan: &Plan, keys: &[&str]) -> bool {
    let ends_so = |path: &str| path.rsplit('.').take(keys.len()).eq(keys.iter().rev().copied());
    plan.all_cells().any(|cell| cell.settings.iter().any(|(path, _)| ends_so(path)))
}

/// What an experiment is about.
pub struct PlanTopics {
    /// The names of its topics.
    pub names: Vec<&'static str>,
    /// The synonyms of its topics, by which the search of the index finds it.
    pub words: String,
}

/// The topics that the experiment of a plan is about, in the order of [`TOPICS`], whether or not it has results.
pub fn topics(plan: &Plan) -> PlanTopics {
    let own: Vec<Topic> = TOPICS.into_iter().filter(|(.., holds)| holds(plan)).collect();
    let words: Vec<&str> = own.iter().map(|(_, words, _)| *words).collect();
    PlanTopics { names: own.iter().map(|(name, ..)| *name).collect(), words: words.join(" ") }
}
