//! `[[phase]]`: which algorithm costs least, over two numbers that describe a problem.

use super::frontier::{EqualRatios, Frontier};
use exactfed_core::problem::quadratic::Settings;
use exactfed_core::problem::spectrum::Spectrum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A map of which algorithm costs least, over two numbers without a unit that describe a problem.
/// Algorithms, step sizes, local steps and the start are those of a frontier. So is every number
/// that is on no axis: the map takes the frontier's problem, its fewest clients, its smallest
/// target and its middle price. The problem must be a quadratic of two clients, which are its two
/// types of clients. `report` computes the map.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseMap {
    /// Name of the map and of its figure.
    #[schemars(example = &"noise")]
    pub id: String,
    /// Heading of its figure; made from the axes if it is left out.
    #[schemars(example = &"Noise against heterogeneity")]
    pub title: Option<String>,
    /// Id of the frontier; the first by default.
    #[schemars(example = &"quadratic")]
    pub frontier: Option<String>,
    /// From left to right.
    pub x: PhaseAxis,
    /// From below upwards.
    pub y: PhaseAxis,
    /// Seeds of the instances on which each square is solved, each instance by itself; by default
    /// the manifest's seed alone. The seed changes the directions of heterogeneity. A claim on the
    /// map must hold on every instance, and a square is coloured by what is best on all of them.
    #[serde(default)]
    #[schemars(example = serde_json::json!([1, 2, 3]))]
    pub seeds: Vec<u64>,
    /// Numbers that are on no axis and differ from those of the frontier, by their names.
    #[serde(default)]
    #[schemars(example = serde_json::json!({ "gradient-heterogeneity": 0.1 }))]
    pub at: BTreeMap<String, f64>,
    /// Boundaries that theory predicts, drawn over the map.
    #[serde(default)]
    pub boundaries: Vec<PhaseBoundary>,
}

/// An axis of a map.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseAxis {
    /// The number that changes along it.
    pub over: PhaseNumber,
    /// Its values.
    pub values: EqualRatios,
}

/// A straight line on logarithmic axes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseBoundary {
    /// What it separates, and the source.
    #[schemars(example = &"the bias of FedAvg is ε")]
    pub label: String,
    /// The power of x in y.
    #[schemars(example = -1.0)]
    pub power: f64,
    /// A point of it, x and y.
    #[schemars(example = serde_json::json!([1.0, 0.1]))]
    pub through: [f64; 2],
}

/// A number without a unit that describes a problem and what is asked of it. L and μ are the largest and the
/// smallest eigenvalue of the mean Hessian, R the root mean square of ‖θ_0 − θ*‖, σ² the mean square of the
/// additive noise of a gradient.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseNumber {
    /// κ = L/μ.
    Condition,
    /// ζ₁/(μR).
    GradientHeterogeneity,
    /// ζ₂/μ, less than 1.
    HessianHeterogeneity,
    /// σ²/(Nμ²ε²), where σ² is summed over the entries of a gradient: d times the square of `noise`.
    Noise,
    /// τ, the standard deviation of the factor on the gradient.
    MultiplicativeNoise,
    /// ε/R.
    Target,
    /// The price of a communication in gradients of a client.
    Price,
    /// N, rounded to an even number.
    Clients,
}

impl PhaseMap {
    /// The seeds of the instances on which each square is solved: those that are written, or else the manifest's seed
    /// alone.
    pub fn instance_seeds(&self, seed: u64) -> Vec<u64> {
        if self.seeds.is_empty() { vec![seed] } else { self.seeds.clone() }
    }

    /// The numbers that describe a square, before those on the axes are put in: from this problem, and from the
    /// frontier its fewest clients, smallest target, middle price and radius, except for those that the map states in
    /// `at`. A number is NaN if the frontier lacks what it is made of, as a start that is not isotropic has no radius;
    /// checks of the manifest refuse maps of such a frontier.
    pub fn numbers(&self, problem: &Settings, frontier: &Frontier) -> PhaseNumbers {
        let clients = frontier.clients.iter().min().copied().unwrap_or(problem.clients as u64);
        let target = frontier.smallest_target().unwrap_or(f64::NAN);
        // Maps have the price of a communication in gradients, also where the manifest has prices in seconds.
        let is_priced = false;
        let price = frontier.lead(is_priced).price().unwrap_or(f64::NAN);
        let radius = frontier.isotropic_radius().unwrap_or(f64::NAN);
        let base = PhaseNumbers::new(problem, clients, target, price, radius);
        let changed =
            self.at.iter().filter_map(|(name, value)| Some((PhaseNumber::named(name)?, *value)));
        changed.fold(base, |numbers, (number, value)| numbers.with_number(number, value))
    }
}

impl PhaseNumber {
    /// All of them, with their names in manifests and their symbols.
    pub const ALL: [(Self, &str, &str); 8] = [
        (Self::Condition, "condition", "κ"),
        (Self::GradientHeterogeneity, "gradient-heterogeneity", "ζ₁/(μR)"),
        (Self::HessianHeterogeneity, "hessian-heterogeneity", "ζ₂/μ"),
        (Self::Noise, "noise", "σ²/(Nμ²ε²)"),
        (Self::MultiplicativeNoise, "multiplicative-noise", "τ"),
        (Self::Target, "target", "ε/R"),
        (Self::Price, "price", "the price of a communication"),
        (Self::Clients, "clients", "N"),
    ];

    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The number of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|number| number.1 == name).map(|(number, ..)| number)
    }

    /// The symbol of the number on pages.
    pub fn symbol(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}

/// All numbers of a problem, in the order of [`PhaseNumber::ALL`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseNumbers([f64; PhaseNumber::ALL.len()]);

impl PhaseNumbers {
    /// The numbers that describe a quadratic problem with N clients, a target ε (`target`), a price of a
    /// communication, and a start at the root mean square distance R (`radius`) from θ*. Its number of clients itself
    /// is not read.
    pub fn new(problem: &Settings, clients: u64, target: f64, price: f64, radius: f64) -> Self {
        let mu = problem.spectrum.from;
        let dimension = problem.dimension as f64;
        Self(PhaseNumber::ALL.map(|(number, ..)| match number {
            PhaseNumber::Condition => problem.spectrum.to / mu,
            PhaseNumber::GradientHeterogeneity => problem.gradient_heterogeneity / (mu * radius),
            PhaseNumber::HessianHeterogeneity => problem.hessian_heterogeneity / mu,
            PhaseNumber::Noise => {
                let ratio = problem.noise / (mu * target);
                dimension * ratio * ratio / clients as f64
            }
            PhaseNumber::MultiplicativeNoise => problem.multiplicative_noise,
            PhaseNumber::Target => target / radius,
            PhaseNumber::Price => price,
            PhaseNumber::Clients => clients as f64,
        }))
    }

    /// The value of a number.
    pub fn get(&self, number: PhaseNumber) -> f64 {
        self.0[number as usize]
    }

    /// These numbers with another value of one of them; the number of clients is rounded to an even one, 2 or more.
    #[must_use]
    pub fn with_number(mut self, number: PhaseNumber, value: f64) -> Self {
        let even = number == PhaseNumber::Clients;
        let value = if even { (2.0 * libm::round(value / 2.0)).max(2.0) } else { value };
        self.0[number as usize] = value;
        self
    }

    /// The number N of clients.
    pub fn clients(&self) -> u64 {
        self.get(PhaseNumber::Clients) as u64
    }

    /// The target ε, given the root mean square R of ‖θ_0 − θ*‖; the numbers hold ε/R.
    pub fn target(&self, radius: f64) -> f64 {
        self.get(PhaseNumber::Target) * radius
    }

    /// The settings of the quadratic that these numbers describe, given R (`radius`): those of which [`Self::new`]
    /// makes these numbers. L, the dimension and the form of the multiplicative noise are those of `like`. The number
    /// of clients is too, which the search replaces by N.
    pub fn problem(&self, like: &Settings, radius: f64) -> Settings {
        let mu = like.spectrum.to / self.get(PhaseNumber::Condition);
        let part = self.get(PhaseNumber::Noise) * self.clients() as f64 / like.dimension as f64;
        Settings {
            spectrum: Spectrum { from: mu, ..like.spectrum },
            gradient_heterogeneity: self.get(PhaseNumber::GradientHeterogeneity) * mu * radius,
            hessian_heterogeneity: self.get(PhaseNumber::HessianHeterogeneity) * mu,
            noise: mu * self.target(radius) * libm::sqrt(part),
            multiplicative_noise: self.get(PhaseNumber::MultiplicativeNoise),
            ..like.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quadratic_has_the_numbers_that_it_is_made_of() {
        let like = Settings {
            dimension: 3,
            clients: 2,
            spectrum: Spectrum { from: 0.2, to: 2.0 },
            gradient_heterogeneity: 0.4,
            hessian_heterogeneity: 0.05,
            noise: 0.3,
            multiplicative_noise: 0.2,
            multiplicative_form: Default::default(),
        };
        let numbers = PhaseNumbers::new(&like, 10, 0.01, 100.0, 3.0);
        assert_eq!(numbers.get(PhaseNumber::Condition), 10.0);
        for (number, name, _) in PhaseNumber::ALL {
            assert_eq!((serde_json::to_value(number).unwrap(), number.name()), (name.into(), name));
            let changed = numbers.with_number(number, 0.5 * numbers.get(number));
            let n = changed.clients();
            let price = changed.get(PhaseNumber::Price);
            let problem = changed.problem(&like, 3.0);
            let found = PhaseNumbers::new(&problem, n, changed.target(3.0), price, 3.0);
            for (number, ..) in PhaseNumber::ALL {
                let ratio = found.get(number) / changed.get(number);
                assert!((ratio - 1.0).abs() < 1e-14, "{number:?}: {ratio}");
            }
        }
        assert_eq!(numbers.with_number(PhaseNumber::Clients, 13.2).clients(), 14);
    }
}
