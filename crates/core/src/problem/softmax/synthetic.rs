//! The synthetic classification problem of Li et al. 2020 (*Federated optimization in
//! heterogeneous networks*, the paper of FedProx), *Synthetic(α, β)*.
//!
//! Client k draws n_k records with d features and labels of K classes:
//!
//! - u_k ~ N(0, α), W_k of K × d and b_k of K with entries ~ N(u_k, 1);
//! - B_k ~ N(0, β), v_k of d with entries ~ N(B_k, 1), x ~ N(v_k, Σ), Σ = diag(j^−1.2), j from 1;
//! - y = argmax softmax(W_k x + b_k), the first one of equal ones.
//!
//! α and β are variances, as the paper writes them; its published program passes them to the
//! generator as standard deviations, which is the same for 0 and 1 only. Without heterogeneity
//! (`iid`), W and b of all clients are the same, with entries ~ N(0, 1), and v_k is 0.
//! Power-law sizes are those of the published program, n_k = 50 + ⌊exp(4 + 2 z)⌋ with z ~ N(0, 1).
//! The model has an intercept: a feature that is always 1 follows the d features.
//!
//! All that a client draws comes from its own stream, so the first clients stay when N grows.

use super::loss::{Softmax, SoftmaxLoss};
use crate::kernel::dot;
use crate::kernel::softmax::{ClassTables, MOST_CLASSES};
use crate::problem::arrays::Files;
use crate::problem::cost::{ProblemCost, RecordCost, RecordCounts};
use crate::problem::dataset::ClientWeights;
use crate::problem::fault::{Fault, Faults};
use crate::problem::form::{OracleForm, Visitor};
use crate::problem::penalty::Penalty;
use crate::problem::records::{InstanceInputs, Sampling};
use crate::problem::settings::OnRecords;
use crate::problem::size::{InstanceSize, MemoryPart};
use crate::rng::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Softmax regression on the synthetic records of Li et al. 2020, Synthetic(α, β). θ has K (d + 1)
/// numbers, the weights of the d features and the intercept of one class after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// α, 0 or more: the variance over the clients of the mean of their true models' entries.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 1.0)]
    pub alpha: f64,
    /// β, 0 or more: the variance over the clients of the mean of their features' means.
    #[serde(default)]
    #[schemars(range(min = 0.0), example = 1.0)]
    pub beta: f64,
    /// Whether all clients have one true model and one distribution of features, with mean 0.
    /// α and β must then be 0; Synthetic(0, 0) alone is heterogeneous.
    #[serde(default)]
    #[schemars(example = false)]
    pub iid: bool,
    /// N, the number of clients; 1 or more.
    #[schemars(range(min = 1), example = 30)]
    pub clients: usize,
    /// d, the number of features without the intercept; 1 or more.
    #[serde(default = "sixty")]
    #[schemars(range(min = 1), example = 60)]
    pub dimension: usize,
    /// K, the number of classes, from 2 to 100.
    #[serde(default = "ten")]
    #[schemars(range(min = 2, max = 100), example = 10)]
    pub classes: usize,
    /// The number of records that each client holds.
    #[serde(default)]
    #[schemars(example = Sizes::PowerLaw)]
    pub records: Sizes,
    /// How much clients count.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = ClientWeights::Records)]
    pub weights: ClientWeights,
    /// λ, the weight of the penalty λ/2 ‖θ‖², 0 or more, also of the intercepts; or a multiple of the smoothness
    /// of the losses without it. With 0, θ\* exists only if the classes of the records cannot be separated
    /// without an error; otherwise write `optimum = false` in `[record]`. It is not unique, since a common change
    /// of the weights of all classes changes nothing: errors are distances to the set of minimisers.
    #[schemars(extend("minimum" = 0.0), example = 0.01)]
    pub l2: Penalty,
    /// B, the number of records drawn for each gradient; 1 or more.
    #[serde(default = "crate::problem::defaults::one")]
    #[schemars(range(min = 1), example = 1)]
    pub batch: usize,
    /// How the records of a gradient are drawn.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(example = Sampling::Reshuffled, extend("default" = "with-replacement"))]
    pub sampling: Sampling,
}

/// The default d, that of the paper.
fn sixty() -> usize {
    60
}

/// The default K, that of the paper.
fn ten() -> usize {
    10
}

/// The number of records that each client holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// 50 + ⌊exp(4 + 2 z)⌋ with z ~ N(0, 1): a mean of about 450, and a median of 105.
    #[default]
    PowerLaw,
    /// The same number for every client, 1 or more.
    Equal(usize),
}

impl crate::problem::settings::Settings for Settings {
    type Instance = Softmax;

    fn penalty_mut(&mut self) -> Option<&mut Penalty> {
        Some(&mut self.l2)
    }

    /// Reports the values for which no instance exists, or which are too large.
    fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        faults.non_negative("alpha", self.alpha);
        faults.non_negative("beta", self.beta);
        let is_consistent = !self.iid || (self.alpha == 0.0 && self.beta == 0.0);
        faults.require(is_consistent, "iid", || "α and β must be 0 if clients are i.i.d.".into());
        faults.clients(self.clients);
        self.weights.check("weights", Some(self.clients), &mut faults);
        faults.dimension("dimension", self.dimension);
        let classes = self.classes;
        faults.require((2..=MOST_CLASSES).contains(&classes), "classes", || {
            format!("must be from 2 to {MOST_CLASSES}, not {classes}")
        });
        if let Sizes::Equal(records) = self.records {
            faults.at_least_one("records.equal", records as u64);
        }
        let bytes = self.bytes_per_client();
        let bounded_bytes = if bytes < 1e18 { bytes as usize } else { usize::MAX };
        faults.memory("records", self.clients, bounded_bytes);
        self.l2.check(&mut faults);
        faults.at_least_one("batch", self.batch as u64);
        faults.0
    }

    fn has_given_weights(&self) -> bool {
        matches!(self.weights, ClientWeights::Given(_))
    }

    fn on_records(&self) -> Option<OnRecords<'_>> {
        Some(OnRecords { dataset: None, classes: true, batch: self.batch })
    }

    /// Counts the operations of an oracle call, of the mean field and of a record, with the mean number of records of a
    /// client, since sizes are drawn; an oracle call is one of the exact oracle if `exact`.
    fn cost(&self, exact: bool) -> ProblemCost {
        let classes = self.classes;
        let features = self.dimension + 1;
        let sizes = RecordCounts::drawn(
            self.clients,
            classes * features,
            self.mean_records_per_client(),
            self.batch,
        );
        sizes.cost(exact, RecordCost::softmax(classes as u64, features as u64))
    }

    /// N, the dimension K (d + 1) of θ, and the memory of the records, estimated from their mean number per client.
    fn extent(&self) -> Option<InstanceSize> {
        let clients = self.clients;
        let dimension = self.classes.saturating_mul(self.dimension.saturating_add(1));
        let bytes = clients as f64 * self.bytes_per_client();
        let what = format!("the records of {clients} clients");
        let parts = vec![MemoryPart::new("records", bytes, what)];
        Some(InstanceSize { clients, dimension, parts })
    }

    /// Draws the records of each client, and searches for θ* unless `files` says otherwise. It reads no file.
    fn build(&self, seed: u64, files: &dyn Files) -> Result<Softmax, Fault> {
        let shared = self.iid.then(|| self.draw_model(0.0, &mut Stream::shared_instance(seed)));
        let mut held = Vec::with_capacity(self.clients);
        for client in 0..self.clients {
            let mut rng = Stream::client_instance(seed, client);
            held.push(self.draw_records(shared.as_deref(), &mut rng));
        }
        let counts: Vec<usize> = held.iter().map(|(_, labels)| labels.len()).collect();
        let tables = ClassTables::new(self.dimension + 1, self.classes, self.l2.value(), &held);
        let loss = SoftmaxLoss { classes: self.classes, l2: self.l2.value(), batch: self.batch };
        let given = InstanceInputs {
            shares: self.weights.shares("weights", &counts)?,
            optimum: files.optimum_search(),
            ..InstanceInputs::default()
        };
        Softmax::new(loss, tables, given)
    }

    /// Builds the instance and calls the visitor with it, in this form of its oracle, which draws records as `sampling`
    /// says.
    fn visit<V: Visitor>(
        &self,
        seed: u64,
        files: &dyn Files,
        form: OracleForm,
        visitor: V,
    ) -> Result<V::Out, Fault> {
        self.sampling.visit(self.build(seed, files)?, form, visitor)
    }
}

impl Settings {
    /// The mean number of records of a client, by which memory and operations are estimated.
    pub fn mean_records_per_client(&self) -> usize {
        match self.records {
            // 50 and e⁶, the mean of exp(4 + 2 z).
            Sizes::PowerLaw => 453,
            Sizes::Equal(records) => records,
        }
    }

    /// About how many bytes the records of a client take: as they are drawn, in padded rows, and with the
    /// probabilities of their classes.
    fn bytes_per_client(&self) -> f64 {
        8.0 * self.mean_records_per_client() as f64
            * (2.0 * (self.dimension as f64 + 3.0) + 2.0 * self.classes as f64)
    }

    /// Draws a true model, whose entries have this mean and variance 1: K rows (w, b) of d + 1 numbers.
    fn draw_model(&self, mean: f64, rng: &mut Stream) -> Vec<f64> {
        (0..self.classes * (self.dimension + 1)).map(|_| mean + rng.gaussian()).collect()
    }

    /// Draws one client's rows (x, 1) of d + 1 numbers and their classes. If clients are i.i.d., `shared` is the
    /// true model of all, and features have mean 0; else the client draws both. Two numbers are drawn for the
    /// client's means in either case.
    fn draw_records(&self, shared: Option<&[f64]>, rng: &mut Stream) -> (Vec<f64>, Vec<u8>) {
        let d = self.dimension;
        let n = match self.records {
            Sizes::PowerLaw => 50 + libm::exp(4.0 + 2.0 * rng.gaussian()) as usize,
            Sizes::Equal(records) => records,
        };
        let mean_of_model = libm::sqrt(self.alpha) * rng.gaussian();
        let mean_of_features = libm::sqrt(self.beta) * rng.gaussian();
        let model = shared.map_or_else(|| self.draw_model(mean_of_model, rng), <[f64]>::to_vec);
        let center: Vec<f64> = match shared {
            Some(_) => vec![0.0; d],
            None => (0..d).map(|_| mean_of_features + rng.gaussian()).collect(),
        };
        // The square roots of the variances j^−1.2.
        let deviations: Vec<f64> = (1..=d).map(|j| libm::pow(j as f64, -0.6)).collect();
        let mut rows = Vec::with_capacity(n * (d + 1));
        let mut labels = Vec::with_capacity(n);
        for _ in 0..n {
            let begin = rows.len();
            rows.extend((0..d).map(|j| center[j] + deviations[j] * rng.gaussian()));
            rows.push(1.0);
            labels.push(most_likely_class(&model, &rows[begin..]) as u8);
        }
        (rows, labels)
    }
}

/// The class, from 0, whose row of a model has the greatest product with a record: the first of equal ones. The record
/// has d + 1 numbers, of which the last is 1, and the model as many for each class.
fn most_likely_class(model: &[f64], record: &[f64]) -> usize {
    let mut class = 0;
    let mut greatest = f64::NAN;
    for (k, weights) in model.chunks_exact(record.len()).enumerate() {
        let logit = dot(weights, record);
        if k == 0 || logit > greatest {
            class = k;
            greatest = logit;
        }
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rows;
    use crate::problem::{Facts, check};
    use crate::sample;

    #[test]
    fn the_oracle_has_the_stated_mean_and_covariance() {
        let problem = sample::build(&sample::synthetic(), 5);
        assert_eq!((problem.clients(), problem.dim()), (4, 12));
        check::roots(&problem, 1e-14);
        check::agree(&problem, 100_000);
    }

    #[test]
    fn the_first_clients_stay() {
        let few = sample::build(&sample::synthetic(), 4);
        let many = sample::build(&Settings { clients: 9, ..sample::synthetic() }, 4);
        for client in 0..4 {
            assert_eq!(few.local_optimum(client), many.local_optimum(client));
        }
        assert_ne!(few.local_optimum(0), few.local_optimum(1));
    }

    /// The squared mean and the variance of one feature over the records of each of 4000 clients.
    fn moments(settings: &Settings, feature: usize) -> [Vec<f64>; 2] {
        let mut squared_means = Vec::new();
        let mut variances = Vec::new();
        for client in 0..4000 {
            let (rows, _) = settings.draw_records(None, &mut Stream::client_instance(8, client));
            let rows = Rows::new(&rows, settings.dimension + 1, settings.dimension + 1);
            let n = rows.len() as f64;
            let mean = rows.iter().map(|row| row[feature]).sum::<f64>() / n;
            let square = rows.iter().map(|row| (row[feature] - mean).powi(2)).sum::<f64>();
            squared_means.push(mean * mean);
            variances.push(square / (n - 1.0));
        }
        [squared_means, variances]
    }

    #[test]
    fn features_have_the_stated_variances() {
        for feature in [0, 2] {
            let settings = sample::synthetic();
            let own = libm::pow(feature as f64 + 1.0, -1.2);
            let [between, within] = moments(&settings, feature);
            sample::assert_mean(&within, own, "Σ_jj");
            sample::assert_mean(&between, 2.0 + 1.0 + own / 30.0, "β + 1 + Σ_jj/n");
        }
    }

    #[test]
    fn sizes_have_the_stated_median_and_least() {
        let settings =
            Settings { dimension: 1, classes: 2, records: Sizes::PowerLaw, ..sample::synthetic() };
        let mut sizes = Vec::new();
        for client in 0..1001 {
            let (_, labels) = settings.draw_records(None, &mut Stream::client_instance(1, client));
            sizes.push(labels.len());
        }
        sizes.sort_unstable();
        // The median of exp(4 + 2z) is 54.6, with a standard error of 8 percent.
        assert!(sizes[0] >= 50 && (90..120).contains(&sizes[500]), "{} {}", sizes[0], sizes[500]);
    }

    #[test]
    fn clients_without_heterogeneity_have_one_true_model() {
        let iid = Settings { iid: true, alpha: 0.0, beta: 0.0, ..sample::synthetic() };
        let many = Settings { records: Sizes::Equal(20_000), l2: 1e-3.into(), ..iid.clone() };
        let problem = sample::build(&many, 2);
        let [first, second] = [0, 1].map(|client| problem.local_optimum(client).unwrap());
        let apart = sample::distance(first, second);
        let size = sample::distance(problem.optimum(), &[0.0; 12]);
        assert!(apart < 0.1 * size, "{apart} {size}");
        let both = Settings { alpha: 1.0, ..iid };
        assert_eq!(crate::problem::Settings::check(&both)[0].key, "iid");
    }
}
