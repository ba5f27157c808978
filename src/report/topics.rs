//! What an experiment is about: the topics by which the index is filtered, each with the words by
//! which readers of other papers search for it.

use exactfed_runner::plan::{Plan, Setting};

/// A topic.
struct Topic {
    name: &'static str,
    /// Synonyms, which only the search knows.
    words: &'static str,
    holds: fn(&Plan) -> bool,
}

const TOPICS: [Topic; 7] = [
    Topic {
        name: "least cost",
        words: "frontier communications budget complexity",
        holds: |plan| !plan.manifest.frontier.is_empty(),
    },
    Topic {
        name: "tuned",
        words: "tuning best step size search",
        holds: |plan| plan.tuning.is_some(),
    },
    Topic {
        name: "real data",
        words: "records dataset data set",
        holds: |plan| kinds(plan).any(|kind| kind.ends_with("-dataset")),
    },
    Topic {
        name: "Dirichlet split",
        words: "heterogeneous heterogeneity non-iid label skew",
        holds: |plan| has(plan, "split", "dirichlet"),
    },
    Topic {
        name: "partial participation",
        words: "client sampling subset of clients cohort",
        holds: |plan| has(plan, "cohort", ""),
    },
    Topic {
        name: "TD learning",
        words: "temporal difference reinforcement learning policy evaluation Markov",
        holds: |plan| kinds(plan).any(|kind| ["garnet", "mdp"].contains(&kind)),
    },
    Topic {
        name: "published theory",
        words: "theorem lemma bound formula",
        holds: |plan| plan.claim_tables.iter().any(|claim| !claim.common().statements.is_empty()),
    },
];

/// The kinds of a plan's problems.
fn kinds(plan: &Plan) -> impl Iterator<Item = &str> {
    let frontier = plan.frontier_problem.iter().map(|problem| problem.kind());
    plan.all_cells().map(|cell| cell.identity.problem.kind()).chain(frontier)
}

/// Whether a cell has a setting of this name whose value begins so.
fn has(plan: &Plan, name: &str, begin: &str) -> bool {
    let is_it = |(path, value): (&str, &Setting)| {
        path.rsplit('.').next() == Some(name) && value.to_string().starts_with(begin)
    };
    plan.all_cells().any(|cell| cell.settings.iter().any(is_it))
}

/// The topics of an experiment, and the words by which it is found.
pub fn topics(plan: &Plan) -> (Vec<&'static str>, String) {
    let own = || TOPICS.iter().filter(|topic| (topic.holds)(plan));
    let words: Vec<&str> = own().map(|topic| topic.words).collect();
    (own().map(|topic| topic.name).collect(), words.join(" "))
}
