//! The algorithms of a frontier, and what their rounds cost.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, RwLock};

/// The algorithms of this crate: what each does, and its names in manifests and on pages.
macro_rules! frontier_algorithms {
    ($(#[doc = $description:literal] $variant:ident($name:literal, $label:literal),)*) => {
        /// An algorithm of a frontier.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum FrontierAlgorithm {
            $(#[doc = $description] $variant,)*
            /// One that is defined outside of this crate.
            Own(OwnAlgorithm),
        }

        impl FrontierAlgorithm {
            /// All of them.
            pub const ALL: [Self; 9] = [$(Self::$variant,)*];

            /// Its name, its name on pages, and what it does, for the schema.
            fn texts(self) -> [&'static str; 3] {
                match self {
                    $(Self::$variant => [$name, $label, $description],)*
                    Self::Own(OwnAlgorithm(own)) => [&own.kind, label_of(&own.kind), ""],
                }
            }
        }
    };
}

frontier_algorithms! {
    /// One local step with a batch of one draw, then a communication.
    Sgd("sgd", "SGD"),
    /// One local step with a batch of H draws, then a communication.
    MinibatchSgd("minibatch-sgd", "mini-batch SGD"),
    /// H local steps, then a communication.
    Fedavg("fedavg", "FedAvg"),
    /// FedAvg whose server goes a multiple of the way to the clients' mean; the multiple is tuned.
    FedavgServerStep("fedavg-server-step", "FedAvg, server step"),
    /// FedAvg with control variates, under full participation.
    Scaffold("scaffold", "Scaffold"),
    /// Local steps with control variates until a coin says to communicate.
    Scaffnew("scaffnew", "Scaffnew"),
    /// Two runs of FedAvg with γ and 2γ on common draws, extrapolated; both are paid for.
    RichardsonRomberg("richardson-romberg", "Richardson-Romberg"),
    /// The same two runs, each on draws of its own.
    RichardsonRombergIndependent("richardson-romberg-independent", "Richardson-Romberg, own draws"),
    /// Two runs of Scaffold on common draws, likewise extrapolated and paid for.
    ScaffoldRr("scaffold-rr", "Scaffold-RR"),
}

/// An algorithm that is defined outside of this crate, by its kind; each is kept for the life of the
/// program.
#[derive(Clone, Copy, Debug)]
pub struct OwnAlgorithm(&'static OwnDefinition);

#[derive(Debug)]
struct OwnDefinition {
    kind: String,
    /// The values of its keys that are tried, in the order of their names.
    keys: Vec<(String, Vec<f64>)>,
}

/// The names of kinds on pages.
static LABELS: RwLock<BTreeMap<&str, &str>> = RwLock::new(BTreeMap::new());

fn label_of(kind: &'static str) -> &'static str {
    let known = LABELS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    known.get(kind).copied().unwrap_or(kind)
}

impl OwnAlgorithm {
    /// The algorithm of a kind, with the values of its keys that are tried.
    pub fn new(kind: String, keys: BTreeMap<String, Vec<f64>>) -> Self {
        static KNOWN: Mutex<BTreeMap<String, OwnAlgorithm>> = Mutex::new(BTreeMap::new());
        let definition = OwnDefinition { kind, keys: keys.into_iter().collect() };
        // As text, in which a NaN is itself and −0 is not 0.
        let text = format!("{definition:?}");
        let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *known.entry(text).or_insert_with(|| Self(Box::leak(Box::new(definition))))
    }
}

impl PartialEq for OwnAlgorithm {
    /// Whether they are of one kind: a frontier has each once.
    fn eq(&self, other: &Self) -> bool {
        self.0.kind == other.0.kind
    }
}

/// How an algorithm is written: a name, or a kind with the values of its keys.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenAlgorithm {
    Name(String),
    Keys(BTreeMap<String, BTreeMap<String, Values>>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(f64),
    All(Vec<f64>),
}

impl<'de> Deserialize<'de> for FrontierAlgorithm {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = "an algorithm must be a name, or one kind with the values of its keys";
        match WrittenAlgorithm::deserialize(from).map_err(|_| serde::de::Error::custom(wrong))? {
            WrittenAlgorithm::Name(name) => {
                let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
                Ok(known.unwrap_or_else(|| Self::Own(OwnAlgorithm::new(name, BTreeMap::new()))))
            }
            WrittenAlgorithm::Keys(kinds) => {
                let mut all = kinds.into_iter();
                let (Some((kind, keys)), None) = (all.next(), all.next()) else {
                    return Err(serde::de::Error::custom(wrong));
                };
                let values = |(key, values)| match values {
                    Values::One(value) => (key, vec![value]),
                    Values::All(values) => (key, values),
                };
                let keys = keys.into_iter().map(values).collect();
                Ok(Self::Own(OwnAlgorithm::new(kind, keys)))
            }
        }
    }
}

impl Serialize for FrontierAlgorithm {
    /// Its name, which the schema's default has.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(to)
    }
}

impl JsonSchema for FrontierAlgorithm {
    fn schema_name() -> Cow<'static, str> {
        "FrontierAlgorithm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = Self::ALL.map(|algorithm| {
            let [name, _, description] = algorithm.texts();
            json_schema!({ "const": name, "description": description.trim_start() })
        });
        let mut any: Vec<Schema> = names.into();
        any.push(json_schema!({
            "type": "string",
            "description": "The kind of an algorithm that is defined in Python or Rust.",
        }));
        any.push(json_schema!({
            "type": "object",
            "maxProperties": 1,
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {
                    "anyOf": [
                        { "type": "number" },
                        { "type": "array", "items": { "type": "number" } },
                    ],
                },
            },
            "description": "The same with the values of its keys that are tried, such as `{ fedavgm = { momentum = [0.5, 0.9] } }`.",
        }));
        json_schema!({ "description": "An algorithm of a frontier: one of these names, the kind of an algorithm that is defined in Python or Rust, or such a kind with the values of its keys that are tried, as in `{ fedavgm = { momentum = [0.5, 0.9] } }`.", "anyOf": any })
    }
}

/// What a round costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPrice {
    /// Communications: one for each run.
    pub communications: f64,
    /// Oracle calls of each client, on average.
    pub gradients: f64,
    /// Draws of each client, on average: runs on common draws use each draw once.
    pub samples: f64,
    /// Vectors of d numbers that each client sends or receives.
    pub vectors: f64,
}

impl FrontierAlgorithm {
    /// The server steps that [`Self::FedavgServerStep`] tries: the estimate goes this multiple of the way
    /// to the mean of the clients' ends.
    pub const SERVER_STEPS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 32.0, 128.0];

    /// Its name in manifests and tables.
    pub fn name(self) -> &'static str {
        self.texts()[0]
    }

    /// Its name on pages.
    pub fn label(self) -> &'static str {
        self.texts()[1]
    }

    /// The price of a round, one communication of every run, with H local steps. Scaffold's clients compute their own variate from
    /// the mean that they receive, so they send no vector beside their estimate.
    pub fn round_price(self, local_steps: u64) -> RoundPrice {
        let runs = self.weights().len() as f64;
        let steps = if self == Self::Sgd { 1.0 } else { local_steps as f64 };
        let draws = if self.shares_draws() { steps } else { runs * steps };
        RoundPrice {
            communications: runs,
            gradients: runs * steps,
            samples: draws,
            vectors: 2.0 * runs,
        }
    }

    /// Whether it has several runs on common draws.
    pub fn shares_draws(self) -> bool {
        matches!(self, Self::RichardsonRomberg | Self::ScaffoldRr)
    }

    /// The weights of the estimates of its runs; run number r has the step size (r + 1) γ.
    pub(super) fn weights(self) -> &'static [f64] {
        match self {
            Self::RichardsonRomberg | Self::RichardsonRombergIndependent | Self::ScaffoldRr => {
                &[2.0, -1.0]
            }
            _ => &[1.0],
        }
    }

    /// Whether its clients keep control variates.
    pub(super) fn is_corrected(self) -> bool {
        matches!(self, Self::Scaffold | Self::ScaffoldRr | Self::Scaffnew)
    }

    /// Whether it is defined outside of this crate.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Gives an algorithm that is defined outside of this crate a name on pages.
    pub fn call(self, label: &str) {
        let [name, known_label, _] = self.texts();
        if known_label != label {
            let mut known = LABELS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            known.insert(name, Box::leak(label.to_owned().into_boxed_str()));
        }
    }

    /// Its further settings, each with the values that are tried.
    pub fn keys(self) -> Vec<(&'static str, &'static [f64])> {
        match self {
            Self::FedavgServerStep => vec![("server step", Self::SERVER_STEPS)],
            Self::Own(OwnAlgorithm(own)) => {
                own.keys.iter().map(|(key, values)| (key.as_str(), values.as_slice())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The number of choices of its further settings that are tried.
    pub fn choices(self) -> usize {
        self.keys().iter().map(|(_, values)| values.len()).product()
    }

    /// The further settings of a choice, by name.
    pub fn settings(self, choice: usize) -> Vec<(&'static str, f64)> {
        let mut rest = choice;
        let value = |(key, values): (&'static str, &[f64])| {
            let value = values[rest % values.len()];
            rest /= values.len();
            (key, value)
        };
        self.keys().into_iter().map(value).collect()
    }
}
