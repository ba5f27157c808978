//! An algorithm of a frontier with all the settings that are tried.

use super::names::{SERVER_STEP, SGD, variant};
use exactfed_core::algorithm::minibatch_sgd::MinibatchSgd;
use exactfed_core::algorithm::{Participation, Settings, Spec};
use exactfed_core::problem::Fault;
use exactfed_core::round_program::RoundSettings;
use std::borrow::Cow;

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
    /// The algorithm at each choice of one value for every tried setting, one or more. The number of a choice is its
    /// place here ([`settings_of`]). The search replaces the γ and H that it has here ([`Self::spec`]). A `cohort` may be
    /// a fraction of the clients here ([`Self::choices_among`]).
    pub choices: Vec<Spec>,
    /// Whether the algorithm has a number of local steps, over which the frontier searches.
    pub has_local_steps: bool,
}

impl PartialEq for SearchedAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The keys and values of the tried settings at the choice of this number, from 0 to below the product of the numbers
/// of values. The first setting changes from one choice to the next, and the last changes most slowly.
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
        Self {
            name: variant.name.to_owned(),
            label: variant.label.to_owned(),
            tried: Vec::new(),
            choices: vec![Spec::MinibatchSgd(Settings::plain(1.0, MinibatchSgd::new(1)))],
            has_local_steps: variant.has_local_steps,
        }
    }

    /// The keys of the tried settings with their values at the choice of this number.
    pub fn settings(&self, choice: usize) -> Vec<(&str, f64)> {
        settings_of(&self.tried, choice)
    }

    /// The algorithm at each choice on a problem with this number of clients: a fraction of the clients as `cohort`
    /// becomes a number of them.
    pub fn choices_among(&self, clients: usize) -> Cow<'_, [Spec]> {
        let is_fraction = |spec: &Spec| matches!(spec.cohort(), Some(Participation::Fraction(_)));
        if self.choices.iter().any(is_fraction) {
            self.choices.iter().map(|spec| spec.clone().among(clients)).collect()
        } else {
            Cow::Borrowed(&self.choices)
        }
    }

    /// The algorithm with the step size, the number of local steps and the choice that the search tries, on a problem with
    /// the search's number of clients.
    pub fn spec(&self, settings: &RoundSettings) -> Spec {
        let spec =
            self.choices[settings.choice].with_scale(settings.step_size, settings.local_steps);
        spec.among(settings.clients as usize)
    }

    /// What is wrong with a choice on a problem with this number of clients, such as a cohort of more clients than there
    /// are; `None` if nothing is.
    pub fn check_for(&self, clients: usize) -> Option<Fault> {
        self.choices_among(clients).iter().find_map(|spec| spec.check_for(clients))
    }

    /// The server step at the choice of this number; 1 if the server step is not among what is tried.
    pub fn server_step(&self, choice: usize) -> f64 {
        let settings = self.settings(choice);
        settings.iter().find(|(key, _)| *key == SERVER_STEP).map_or(1.0, |(_, value)| *value)
    }

    /// What pages call a tried setting: its key with spaces for hyphens, or for a custom algorithm the key as its
    /// author wrote it.
    pub fn setting_words(&self, key: &str) -> String {
        if self.is_custom() { key.to_owned() } else { key.replace('-', " ") }
    }

    /// Whether the choice of this number has the largest of several server steps, so that a larger one, which is not
    /// tried, may be better.
    pub fn has_largest_server_step(&self, choice: usize) -> bool {
        let steps = self.tried.iter().find(|setting| setting.key == SERVER_STEP);
        steps.is_some_and(|steps| {
            let most = steps.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            steps.values.len() > 1 && self.server_step(choice) == most
        })
    }

    /// Whether the number that the search calls local steps is the size of a batch, as for mini-batch SGD. Pages then
    /// write "batch" in place of H.
    pub fn counts_batches(&self) -> bool {
        let info = self.choices.first().and_then(Spec::info);
        self.has_local_steps && info.is_some_and(|info| (info.local_steps_key)() == "batch")
    }

    /// Whether its estimate combines several runs on common draws. Such runs use each draw once, so that it needs
    /// fewer draws than gradients.
    pub fn shares_draws(&self) -> bool {
        self.choices.iter().any(Spec::shares_draws)
    }

    /// The largest number of runs, over all choices, that an estimate combines.
    pub fn most_runs(&self) -> usize {
        self.choices.iter().map(|spec| spec.components().len()).max().unwrap_or(1)
    }

    /// Whether it is not built in.
    pub fn is_custom(&self) -> bool {
        self.choices.iter().any(Spec::is_custom)
    }

    /// Whether its rounds are known for every number of clients, with each choice of settings: all clients take part
    /// and take the same local steps. It is false for a custom algorithm, whose rounds are traced with one number of
    /// clients. A frontier or a map with other numbers of clients than the problem's cannot have such an algorithm.
    pub fn treats_clients_alike(&self) -> bool {
        self.choices.iter().all(Spec::treats_clients_alike)
    }

    /// Its kind, if results define it and its code is not loaded, so that it cannot be run; otherwise `None`.
    pub fn kind_without_code(&self) -> Option<&str> {
        self.choices.first()?.kind_without_code()
    }
}
