//! An algorithm of a frontier with all the settings that are tried.

use super::names::{SERVER_STEP, SGD, variant};
use exactfed_core::algorithm::minibatch_sgd::MinibatchSgd;
use exactfed_core::algorithm::{Settings, Spec};
use exactfed_core::round_program::RoundSettings;

/// A setting of which several values are tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedSetting {
    /// Its key in manifests.
    pub key: String,
    /// The values, in the order in which they are tried.
    pub values: Vec<f64>,
}

/// An algorithm of a frontier. A frontier has each name once.
#[derive(Clone, Debug)]
pub struct SearchedAlgorithm {
    /// Its name in manifests and tables.
    pub name: String,
    /// Its name on pages.
    pub label: String,
    /// The settings beyond γ and H of which several values are tried.
    pub tried: Vec<TriedSetting>,
    /// The settings of each choice among these values. Their γ and H are not those of the search.
    pub choices: Vec<Spec>,
    /// Whether the number of local steps is a setting.
    pub has_local_steps: bool,
}

impl PartialEq for SearchedAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The values of a choice: the first setting changes from one choice to the next.
pub(super) fn settings_of(tried: &[TriedSetting], choice: usize) -> Vec<(&str, f64)> {
    let mut rest = choice;
    let mut settings = Vec::new();
    for TriedSetting { key, values } in tried {
        settings.push((key.as_str(), values[rest % values.len()]));
        rest /= values.len();
    }
    settings
}

impl SearchedAlgorithm {
    /// SGD, which every frontier has for its budgets, also where the manifest does not name it.
    pub fn sgd() -> Self {
        let variant = variant(SGD).expect("SGD is a variant");
        let own = MinibatchSgd { batch: 1, cohort: None };
        Self {
            name: variant.name.to_owned(),
            label: variant.label.to_owned(),
            tried: Vec::new(),
            choices: vec![Spec::MinibatchSgd(Settings::plain(1.0, own))],
            has_local_steps: variant.has_local_steps,
        }
    }

    /// The further settings of a choice, by key.
    pub fn settings(&self, choice: usize) -> Vec<(&str, f64)> {
        settings_of(&self.tried, choice)
    }

    /// The algorithm with these settings.
    pub fn spec(&self, settings: &RoundSettings) -> Spec {
        self.choices[settings.choice].with_scale(settings.step_size, settings.local_steps)
    }

    /// The server step of a choice, if that is what is tried, and 1 otherwise.
    pub fn server_step(&self, choice: usize) -> f64 {
        let settings = self.settings(choice);
        settings.iter().find(|(key, _)| *key == SERVER_STEP).map_or(1.0, |(_, value)| *value)
    }

    /// What tables call a key of a further setting.
    pub fn setting_words(&self, key: &str) -> String {
        if self.is_custom() { key.to_owned() } else { key.replace('-', " ") }
    }

    /// Whether a choice has the largest of several server steps.
    pub fn has_largest_server_step(&self, choice: usize) -> bool {
        let steps = self.tried.iter().find(|setting| setting.key == SERVER_STEP);
        steps.is_some_and(|steps| {
            let most = steps.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            steps.values.len() > 1 && self.server_step(choice) == most
        })
    }

    /// Whether what is called local steps are the gradients of one batch.
    pub fn counts_batches(&self) -> bool {
        let info = self.choices.first().and_then(Spec::info);
        self.has_local_steps && info.is_some_and(|info| (info.local_steps_key)() == "batch")
    }

    /// Whether it has several runs on common draws.
    pub fn shares_draws(&self) -> bool {
        self.choices.iter().any(Spec::shares_draws)
    }

    /// The largest number of runs of which a choice's estimate is a combination.
    pub fn most_runs(&self) -> usize {
        self.choices.iter().map(|spec| spec.components().len()).max().unwrap_or(1)
    }

    /// Whether it is not built in.
    pub fn is_custom(&self) -> bool {
        self.choices.iter().any(Spec::is_custom)
    }

    /// Whether its rounds are known for every number of clients, with each choice of settings.
    pub fn treats_clients_alike(&self) -> bool {
        self.choices.iter().all(Spec::treats_clients_alike)
    }

    /// Its kind, if there is no code for it.
    pub fn kind_without_code(&self) -> Option<&str> {
        self.choices.first()?.kind_without_code()
    }
}
