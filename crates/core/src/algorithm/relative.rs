//! Numbers of keys that may be written in units of the problem: `step-size = { over-L = 1.0 }` is γ = 1/L.

use crate::problem::{Constant, Facts, Fault, Faults, ProblemConstants};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::cell::RefCell;
use std::convert::Infallible;

/// Makes [`ProblemMultiple`] of all units, each with its key and its value: a function of the written number x and of
/// what returns a constant of the problem.
macro_rules! units {
    ($($(#[doc = $doc:literal])+ $unit:ident($key:literal) = |$x:ident, $of:ident| $value:expr;)*) => {
        /// A multiple of a constant of the problem, which is computed when an instance is built; every
        /// instance has its own. Smoothness and strong convexity hold at every θ, as papers state step
        /// sizes. The page shows the number next to what is written.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum ProblemMultiple {
            $($(#[doc = $doc])+ #[serde(rename = $key)] $unit(f64),)*
        }

        impl ProblemMultiple {
            /// The key of the unit, and the number that is written with it.
            pub fn written(self) -> (&'static str, f64) {
                match self {
                    $(Self::$unit(number) => ($key, number),)*
                }
            }

            /// The constants of the problem on which the number depends.
            pub fn constants(self) -> Vec<Constant> {
                let asked = RefCell::new(Vec::new());
                let _: Result<f64, Infallible> = self.value(|constant| {
                    asked.borrow_mut().push(constant);
                    Ok(1.0)
                });
                asked.into_inner()
            }

            /// The number on a problem whose constants `constant` returns.
            ///
            /// # Errors
            /// The first error of `constant`.
            fn value<E>(self, constant: impl Fn(Constant) -> Result<f64, E>) -> Result<f64, E> {
                match self {
                    $(Self::$unit($x) => {
                        let $of = &constant;
                        Ok($value)
                    })*
                }
            }
        }
    };
}

units! {
    /// x/L, with L the largest smoothness of a client's loss f_c, its penalty included.
    OverL("over-L") = |x, of| x / of(Constant::L)?;
    /// x L, with the L of `over-L`.
    TimesL("times-L") = |x, of| x * of(Constant::L)?;
    /// x divided by the smoothness of f, the mean of the clients' losses by their shares, its penalty
    /// included.
    OverMeanL("over-mean-L") = |x, of| x / of(Constant::MeanL)?;
    /// x times the smoothness of f, as in `over-mean-L`.
    TimesMeanL("times-mean-L") = |x, of| x * of(Constant::MeanL)?;
    /// x/L, with L the largest smoothness of a client's loss without its penalty.
    OverDataL("over-data-L") = |x, of| x / of(Constant::DataL)?;
    /// x L, with the L of `over-data-L`.
    TimesDataL("times-data-L") = |x, of| x * of(Constant::DataL)?;
    /// x divided by the smoothness of f without its penalty.
    OverMeanDataL("over-mean-data-L") = |x, of| x / of(Constant::MeanDataL)?;
    /// x times the smoothness of f without its penalty.
    TimesMeanDataL("times-mean-data-L") = |x, of| x * of(Constant::MeanDataL)?;
    /// x/L, with L the largest smoothness of the loss of a single draw, such as that of a record with the
    /// penalty: L_max.
    OverDrawL("over-draw-L") = |x, of| x / of(Constant::DrawL)?;
    /// x L, with the L of `over-draw-L`.
    TimesDrawL("times-draw-L") = |x, of| x * of(Constant::DrawL)?;
    /// x/μ, with μ the smallest strong convexity of a client's loss: λ of losses of records with classes,
    /// and the smallest eigenvalue over clients where fields are linear.
    OverMu("over-mu") = |x, of| x / of(Constant::Mu)?;
    /// x μ, with the μ of `over-mu`.
    TimesMu("times-mu") = |x, of| x * of(Constant::Mu)?;
    /// x divided by the strong convexity of f.
    OverMeanMu("over-mean-mu") = |x, of| x / of(Constant::MeanMu)?;
    /// x times the strong convexity of f.
    TimesMeanMu("times-mean-mu") = |x, of| x * of(Constant::MeanMu)?;
    /// x/(L + μ), with L of `over-L` and μ of `over-mu`: with x = 2 the best step of gradient descent.
    OverLPlusMu("over-L-plus-mu") = |x, of| x / (of(Constant::L)? + of(Constant::Mu)?);
    /// x/(L + μ), with L and μ of f.
    OverMeanLPlusMu("over-mean-L-plus-mu") = |x, of| x / (of(Constant::MeanL)? + of(Constant::MeanMu)?);
    /// x/κ, with κ = L/μ of `over-L` and `over-mu`.
    OverKappa("over-kappa") = |x, of| x / (of(Constant::L)? / of(Constant::Mu)?);
    /// x/κ, with κ = L/μ of f.
    OverMeanKappa("over-mean-kappa") = |x, of| x / (of(Constant::MeanL)? / of(Constant::MeanMu)?);
    /// x/√κ, with the κ of `over-kappa`: the probability of communication of ProxSkip's theory.
    OverSqrtKappa("over-sqrt-kappa") = |x, of| x / libm::sqrt(of(Constant::L)? / of(Constant::Mu)?);
    /// x/√κ, with the κ of `over-mean-kappa`.
    OverSqrtMeanKappa("over-sqrt-mean-kappa") =
        |x, of| x / libm::sqrt(of(Constant::MeanL)? / of(Constant::MeanMu)?);
}

/// What a number of a key is written as.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum WrittenNumber {
    /// The number itself.
    Number(f64),
    /// A multiple of a constant of the problem.
    Multiple(ProblemMultiple),
}

/// A number of a key: it is written itself, or as a multiple of a constant of the problem, which becomes a number on an
/// instance.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenNumber")]
pub struct RelativeNumber {
    written: WrittenNumber,
    /// The number that a multiple is on an instance; `None` before it is known, and for a number that is written
    /// itself.
    found: Option<f64>,
}

impl From<WrittenNumber> for RelativeNumber {
    fn from(written: WrittenNumber) -> Self {
        Self { written, found: None }
    }
}

impl From<f64> for RelativeNumber {
    fn from(number: f64) -> Self {
        WrittenNumber::Number(number).into()
    }
}

impl Default for RelativeNumber {
    fn default() -> Self {
        0.0.into()
    }
}

impl Serialize for RelativeNumber {
    /// Writes what is written: cells whose settings are in units of the problem are identified by these.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(to)
    }
}

impl JsonSchema for RelativeNumber {
    fn schema_name() -> Cow<'static, str> {
        WrittenNumber::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = WrittenNumber::json_schema(generator);
        // The keys themselves say what they are.
        schema.remove("description");
        schema
    }
}

impl RelativeNumber {
    /// The number; 1 for a multiple that is not known yet, which is allowed for every key that may have one.
    pub fn value(self) -> f64 {
        match self.written {
            WrittenNumber::Number(number) => number,
            WrittenNumber::Multiple(_) => self.found.unwrap_or(1.0),
        }
    }

    /// The multiple that is written, with the number that it was found to be; `None` if a number is written itself.
    pub fn multiple(self) -> Option<(ProblemMultiple, Option<f64>)> {
        match self.written {
            WrittenNumber::Number(_) => None,
            WrittenNumber::Multiple(multiple) => Some((multiple, self.found)),
        }
    }

    /// Finds the number that a multiple is on an instance, whatever was found before.
    ///
    /// # Errors
    /// A fault of `key` that says which constant is not known.
    pub(super) fn resolve(
        &mut self,
        key: &'static str,
        facts: &dyn Facts,
        constants: &ProblemConstants,
    ) -> Result<(), Fault> {
        let WrittenNumber::Multiple(multiple) = self.written else { return Ok(()) };
        let found = multiple.value(|constant| {
            constants.get(facts, constant).ok_or_else(|| {
                let reason = constant.reason_of_absence();
                let unit = multiple.written().0;
                Fault::new(key, format!("is in units of `{unit}`, but {reason}: write a number"))
            })
        })?;
        self.found = Some(found);
        Ok(())
    }

    /// Adds a fault of `key` if the number of a multiple is not above 0, whatever the constant is.
    pub(super) fn check(self, key: &'static str, faults: &mut Faults) {
        if let WrittenNumber::Multiple(multiple) = self.written {
            let (unit, number) = multiple.written();
            faults.require(number.is_finite() && number > 0.0, key, || {
                format!("= {{ {unit} = {number:?} }} must have a finite number above 0")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Instance, Settings, Spec, fedavg};
    use crate::linalg::Matrix;
    use crate::problem::quadratic::Quadratic;
    use crate::sample;

    fn spec(lines: &str) -> Spec {
        toml::from_str(lines).unwrap()
    }

    /// The largest and the smallest eigenvalue of a symmetric 2 × 2 matrix.
    fn eigenvalues(matrix: &Matrix) -> [f64; 2] {
        let middle = 0.5 * (matrix[(0, 0)] + matrix[(1, 1)]);
        let half = 0.5 * (matrix[(0, 0)] - matrix[(1, 1)]);
        let radius = libm::sqrt(half * half + matrix[(0, 1)] * matrix[(0, 1)]);
        [middle + radius, middle - radius]
    }

    /// L and μ of three quadratics: the largest and the smallest over clients, and those of their mean.
    fn constants(problem: &Quadratic) -> [f64; 4] {
        let hessians: Vec<Matrix> = (0..3).map(|client| problem.jacobian(client)).collect();
        let of_clients: Vec<[f64; 2]> = hessians.iter().map(eigenvalues).collect();
        let largest = of_clients.iter().map(|both| both[0]).fold(0.0, f64::max);
        let smallest = of_clients.iter().map(|both| both[1]).fold(f64::INFINITY, f64::min);
        let sum = hessians[0].plus(1.0, &hessians[1]).plus(1.0, &hessians[2]);
        let [mean_largest, mean_smallest] = eigenvalues(&sum.scaled(1.0 / 3.0));
        [largest, smallest, mean_largest, mean_smallest]
    }

    /// Every unit of a step size has the value that the eigenvalues of three Hessians give it.
    #[test]
    fn units_are_those_of_the_hessians() {
        let problem = sample::noisy(3);
        let [l, mu, mean_l, mean_mu] = constants(&problem);
        assert!(
            l > 1.05 * mean_l && mu > 0.0 && mean_mu > 1.05 * mu,
            "{l} {mean_l} {mu} {mean_mu}"
        );
        for (unit, expected) in [
            ("over-L", 0.5 / l),
            ("times-L", 0.5 * l),
            ("over-mean-L", 0.5 / mean_l),
            ("times-mean-L", 0.5 * mean_l),
            ("over-mu", 0.5 / mu),
            ("times-mu", 0.5 * mu),
            ("over-mean-mu", 0.5 / mean_mu),
            ("times-mean-mu", 0.5 * mean_mu),
            ("over-L-plus-mu", 0.5 / (l + mu)),
            ("over-mean-L-plus-mu", 0.5 / (mean_l + mean_mu)),
            ("over-kappa", 0.5 * mu / l),
            ("over-mean-kappa", 0.5 * mean_mu / mean_l),
            ("over-sqrt-kappa", 0.5 * libm::sqrt(mu / l)),
            ("over-sqrt-mean-kappa", 0.5 * libm::sqrt(mean_mu / mean_l)),
        ] {
            let text = format!("[fedavg]\nstep-size = {{ {unit} = 0.5 }}\nlocal-steps = 3\n");
            let found = spec(&text).on_instance(&problem).components().remove(0).terms.step_size;
            assert!((found / expected - 1.0).abs() < 1e-12, "{unit}: {found} {expected}");
        }
    }

    /// A run whose step size is in units of L has the bits of the run with the number.
    #[test]
    fn runs_have_the_bits_of_the_number() {
        let problem = sample::noisy(3);
        let step_size = 0.5 / ProblemConstants::default().get(&problem, Constant::L).unwrap();
        let written = spec("[fedavg]\nstep-size = { over-L = 0.5 }\nlocal-steps = 3\n");
        let number = Spec::FedAvg(fedavg::Settings::new(step_size, 3));
        let from = crate::federated::Conditions {
            seed: 1,
            replicate: 0,
            start: &[1.0, 2.0],
            rounds: 5,
            copy: 0,
        };
        let mut runs = [&written, &number].map(|spec| problem.launch(spec, &from));
        for _ in 0..5 {
            runs.iter_mut().for_each(|run| run.round());
            assert_eq!(runs[0].estimate(), runs[1].estimate());
        }
    }

    /// What is written is serialised, also once the number is known, and plain numbers as before.
    #[test]
    fn what_is_written_is_what_is_hashed() {
        let written = spec("[fedavg]\nstep-size = { over-L = 0.5 }\nlocal-steps = 3\n");
        let resolved = written.on_instance(&sample::noisy(3)).into_owned();
        assert_eq!(toml::to_string(&written).unwrap(), toml::to_string(&resolved).unwrap());
        assert!(toml::to_string(&resolved).unwrap().contains("over-L = 0.5"));
        let plain: Settings<_> = fedavg::Settings::new(0.125, 3);
        let text = toml::to_string(&Spec::FedAvg(plain)).unwrap();
        assert!(text.contains("step-size = 0.125\n"), "{text}");
    }

    #[test]
    fn constants_that_are_not_known_are_named() {
        let mut data = spec("[fedavg]\nstep-size = { over-data-L = 0.5 }\nlocal-steps = 3\n");
        let faults = data.resolve(&sample::noisy(3), &ProblemConstants::default());
        assert_eq!(faults[0].key, "step-size");
        assert_eq!(
            faults[0].message,
            "is in units of `over-data-L`, but this problem has no loss of records: write a number"
        );
        let zero =
            spec("[fedprox]\nstep-size = 0.1\nlocal-steps = 3\nproximal = { times-L = 0 }\n");
        assert_eq!(zero.check()[0].key, "proximal");
    }
}
