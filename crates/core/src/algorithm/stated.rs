//! Which algorithm of the sources the settings describe.

use crate::federated::{Learning, Schedule, Terms, Variates};
use crate::sources::StatedAlgorithm;

/// The algorithm of the sources that a run of these terms is; `Other` if no source states anything about it. Cohorts,
/// batches, step sizes and the server step are not looked at: conditions of the statements are about them
/// ([`crate::sources::Condition`]). Mini-batch SGD, which has the terms of FedAvg, is recognised elsewhere
/// ([`crate::algorithm::AlgorithmKind::stated`]).
pub fn of_terms(terms: &Terms) -> StatedAlgorithm {
    match (terms.variates, terms.schedule) {
        _ if terms.proximal != 0.0 || terms.normalised_progress => StatedAlgorithm::Other,
        _ if terms.server_optimiser.is_some() => StatedAlgorithm::Other,
        (Variates::None, Schedule::Every) => StatedAlgorithm::FedAvg,
        (Variates::Kept(Learning::OptionTwo), Schedule::Every) => StatedAlgorithm::Scaffold,
        (Variates::Kept(Learning::OptionTwo), Schedule::Bernoulli { .. }) => {
            StatedAlgorithm::RandomScaffold
        }
        _ => StatedAlgorithm::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::fedprox::FedProx;
    use crate::algorithm::minibatch_sgd::MinibatchSgd;
    use crate::algorithm::richardson_romberg::{Base, Extrapolate, RichardsonRomberg};
    use crate::algorithm::scaffnew::Scaffnew;
    use crate::algorithm::{AlgorithmKind, Settings, Spec, WithWork, Work};

    #[test]
    fn every_kind_is_told_apart() {
        fn of<T: AlgorithmKind>(own: T, spec: fn(Settings<T>) -> Spec) -> StatedAlgorithm {
            spec(Settings::plain(0.1, own)).stated()
        }
        let pulled = WithWork { common: Work::equal(2), own: FedProx::new(1.0) };
        let mut not_pulled = pulled.clone();
        not_pulled.own.proximal = 0.0.into();
        assert_eq!(of(pulled, Spec::FedProx), StatedAlgorithm::Other);
        assert_eq!(of(not_pulled, Spec::FedProx), StatedAlgorithm::FedAvg);
        assert_eq!(of(MinibatchSgd::new(2), Spec::MinibatchSgd), StatedAlgorithm::MinibatchSgd);
        assert_eq!(of(Scaffnew::new(0.1), Spec::Scaffnew), StatedAlgorithm::RandomScaffold);
        let over_step = crate::sample::romberg(2, Extrapolate::StepSize);
        let three = RichardsonRomberg { points: 3, ..over_step.clone() };
        let over_scaffold = RichardsonRomberg { over: Base::Scaffold, ..over_step.clone() };
        let over_steps = crate::sample::romberg(2, Extrapolate::LocalSteps);
        for (own, algorithm) in [
            (over_step, StatedAlgorithm::RichardsonRomberg),
            (three, StatedAlgorithm::Other),
            (over_scaffold, StatedAlgorithm::ExtrapolatedScaffold),
            (over_steps, StatedAlgorithm::OverLocalSteps),
        ] {
            assert_eq!(of(own, Spec::RichardsonRomberg), algorithm);
        }
    }
}
