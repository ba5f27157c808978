//! An algorithm that only the tests of this crate have. Its file and its line in `algorithms!` are all
//! that it needs: were there a second place, these tests would not compile or would fail.

use super::info::{Family, LOCAL, MEAN, RoundFormula};
use super::{AlgorithmKind, Component};
use crate::federated::Terms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FedAvg with one local step in each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dummy {}

impl AlgorithmKind for Dummy {
    const FAMILY: Family = Family::FedAvg;

    fn round(&self) -> Option<RoundFormula> {
        let words = "one local step of every client from θ_t, then their mean";
        Some(RoundFormula { words, tex: &[LOCAL, MEAN] })
    }

    fn components(&self, step_size: f64) -> Vec<Component> {
        vec![Component::one(Terms::fedavg(step_size, 1))]
    }
}

mod tests {
    use crate::algorithm::rounds::ProblemSize;
    use crate::algorithm::{SearchedSpecs, Settings, Spec, fedavg};
    use crate::federated::Conditions;
    use crate::moments::ExactMoments;
    use crate::problem::Facts;
    use crate::round_program::{RoundSettings, Rounds};
    use crate::sample;

    /// The settings of the algorithm as text.
    const ENTRY: &str = "[dummy]\nstep-size = 0.1\n";

    #[test]
    fn one_line_registers_an_algorithm() {
        let dummy: Spec = toml::from_str(ENTRY).unwrap();
        assert_eq!(dummy, Spec::Dummy(Settings::plain(0.1, super::Dummy {})));
        assert_eq!(
            toml::to_string(&dummy).unwrap(),
            "[dummy]\nstep-size = 0.1\naverage = \"none\"\n"
        );
        assert_eq!([dummy.kind(), dummy.label()], ["dummy"; 2]);
        assert!(Spec::KINDS.contains(&"dummy"));
        assert_eq!(dummy.info().map(|info| info.name), Some("dummy"));
        assert_eq!((dummy.check(), dummy.check_for(3)), (Vec::new(), None));
        assert_eq!(dummy.with_scale(0.2, 5).scale(), (0.2, 1));
        let schema = schemars::schema_for!(Spec).to_value().to_string();
        assert!(schema.contains(r#""dummy":"#), "{schema}");
    }

    /// It has the estimates, the exact moments, the price and the program of FedAvg with one local step, which it is.
    #[test]
    fn a_registered_algorithm_runs_and_is_predicted() {
        let dummy: Spec = toml::from_str(ENTRY).unwrap();
        let fedavg = Spec::FedAvg(fedavg::Settings::new(0.1, 1));
        let problem = sample::build(&sample::quadratic(3), 1);
        let start = vec![1.0; problem.dim()];
        let estimate = |spec: &Spec| {
            let from = Conditions { seed: 1, replicate: 0, start: &start, rounds: 7, copy: 0 };
            let mut run = spec.launch(&problem, &from);
            (0..7).for_each(|_| run.round());
            run.estimate().to_vec()
        };
        assert_eq!(estimate(&dummy), estimate(&fedavg));
        let error = |spec: &Spec| {
            let components = spec.components();
            let moments = ExactMoments::new(&problem, &components).unwrap();
            moments.at_rounds(&start, &[7], None).unwrap()[0].sq_error
        };
        assert_eq!(error(&dummy), error(&fedavg));
        let size = ProblemSize { clients: 3, dimension: problem.dim() };
        let [own, same] = [dummy, fedavg].map(|spec| SearchedSpecs::built_in(spec, size));
        let settings =
            RoundSettings { algorithm: 0, clients: 3, local_steps: 1, step_size: 0.1, choice: 0 };
        assert_eq!(own.price(&settings), same.price(&settings));
        assert_eq!(own.program(&settings), same.program(&settings));
    }
}
