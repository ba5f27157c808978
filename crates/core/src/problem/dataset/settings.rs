//! The keys of a data file, and of the partition of its records among clients.

use crate::problem::arrays::{CsvDialect, DataFile, FileFormat, usual_separator};
use crate::problem::fault::{Fault, Faults};
use crate::rng::MAX_CLIENTS;
use crate::words::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A data file, and how its records are partitioned among clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Dataset {
    /// The file: CSV (`.csv`, `.tsv`), Parquet (`.parquet`), LIBSVM (`.libsvm`, `.svm`, `.txt`; with
    /// indices from 1, or from 0 where the index 0 occurs) or NumPy (`.npz`). The first and the third
    /// may be compressed with gzip (`.csv.gz`). An `.npz` has the arrays `x` (n, d) of numbers,
    /// `y` (n,) of numbers or texts and, for a split by column, `client` (n,). Instead of these two it may have
    /// `x_train` and `y_train`, and `x_test` and `y_test`, whose records follow, so that
    /// `test = { column = "test" }` names them. Images, with more axes than two, become rows. Instead of `x` it
    /// may have sparse rows as `scipy.sparse.save_npz` writes them: `data`, `indices`, `indptr`, `shape` and `format` (`"csr"`). An `.npz` of two
    /// or more arrays that all have one axis (n,) holds columns by name, numbers or texts, as a CSV
    /// file does.
    #[schemars(example = &"records.csv")]
    pub file: DataFile,
    /// The character between the values of a CSV file: a comma by default, or a tab in a `.tsv` file.
    /// A blank stands for any number of blanks and tabs. A file whose name ends otherwise, such as
    /// `.txt`, `.dat` or `.tab`, is read as a CSV file if this is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ';')]
    pub separator: Option<char>,
    /// The character before the decimals of the numbers of a CSV file: `"."`, the default, or `","`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ',')]
    pub decimal: Option<char>,
    /// The character that divides the digits of the numbers of a CSV file into groups of three, such
    /// as `","` in "1,250,000"; by default there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = ',')]
    pub thousands: Option<char>,
    /// The character with which lines of a CSV file begin that are no records; by default there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = '#')]
    pub comment: Option<char>,
    /// Whether the first line of a CSV file has the names of the columns. Without it they are called
    /// c1, c2, ….
    #[serde(
        default = "crate::problem::defaults::yes",
        skip_serializing_if = "crate::problem::defaults::is_yes"
    )]
    #[schemars(example = false, extend("default" = true))]
    pub header: bool,
    /// The column of the labels (CSV, Parquet, `.npz` of columns).
    #[serde(default = "label", skip_serializing_if = "is_default_label")]
    #[schemars(example = &"label", extend("default" = "label"))]
    pub label: String,
    /// The columns of the features (CSV, Parquet, `.npz` of columns), in this order; by default all
    /// but those of the label, the split and the test set, and those that number or name the rows:
    /// first columns without a name (also `Unnamed: 0`, as pandas calls it), and a first column whose
    /// values are 0, 1, 2, … or 1, 2, 3, … in ten records or more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_FEATURES)]
    pub features: Vec<String>,
    /// The features that hold categories, texts or numbers (CSV, Parquet, `.npz` of columns). Each
    /// is replaced by indicators, one for each category but the first, in sorted order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_CATEGORICAL)]
    pub categorical: Vec<String>,
    /// What is done where a value is missing: it is NaN or, in CSV, Parquet and `.npz` of columns, an
    /// empty field or one of the marks NA, N/A, nan, null, None, ?, -, ., #N/A, NaT and their usual
    /// spellings. Without this key that is an error. A label, a client or a mark of the test set
    /// that is missing has no mean: only `"drop"` takes such a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = MissingValues::Mean)]
    pub missing: Option<MissingValues>,
    /// N, the number of clients, 1 or more. A split by column determines it and refuses this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 10)]
    pub clients: Option<usize>,
    /// How records are partitioned.
    #[serde(default)]
    #[schemars(example = Split::Dirichlet(0.5))]
    pub split: Split,
    /// How much clients count in every mean: the server's, that of the control variates, and the
    /// objective, whose minimum is θ*.
    #[serde(default, skip_serializing_if = "crate::problem::defaults::is_default")]
    #[schemars(extend("default" = "equal"), example = ClientWeights::Records)]
    pub weights: ClientWeights,
    /// The records that no client holds: a fraction of all, or those that a column marks. A
    /// fraction is drawn from the seed, before the other records are partitioned unless `test-within`
    /// is `"clients"`. The metrics
    /// `test-loss` and `test-accuracy` are computed on these records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.2)]
    pub test: Option<TestRecords>,
    /// Within which groups of records a fraction is drawn for the test set: each class, or each client,
    /// gives about this fraction of its records. Every client that is known before the draw, and every
    /// class and category, then keeps a record for training, as does every value that `standardise` and
    /// `missing = "mean"` need. By default the fraction is drawn from all records alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = TestGroups::Classes)]
    pub test_within: Option<TestGroups>,
    /// Whether each feature is shifted and scaled to mean 0 and variance 1 over
    /// all records that clients hold.
    #[serde(default)]
    #[schemars(example = true)]
    pub standardise: bool,
    /// Whether a feature that is always 1 is added at the end.
    #[serde(default)]
    #[schemars(example = true)]
    pub intercept: bool,
    /// How features are stored during a run. By default those of LIBSVM and of sparse `.npz` files
    /// are sparse if there are more than 32, fewer than an eighth of them are not 0, and they are
    /// not standardised. All others are dense. Only `logistic-dataset` has sparse features. There
    /// are at most 5000 dense features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = Storage::Sparse)]
    pub storage: Option<Storage>,
}

/// What is done where a feature has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingValues {
    /// It is the mean of the feature over the records that clients hold, also in the test set; an
    /// indicator of a category is the category's fraction of them.
    Mean,
    /// The record is left out; also one without a label, a client or a mark of the test set.
    Drop,
}

/// How features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// All numbers.
    Dense,
    /// The numbers other than 0; the cost of a local step grows with them, not with d.
    Sparse,
}

/// How records are partitioned among clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Shuffled, then split into equal parts.
    #[default]
    Iid,
    /// Shuffled, sorted by label, then split into equal parts.
    ByLabel,
    /// The records of each label are split in proportions drawn from Dirichlet(α, …, α), with α
    /// above 0; a client that would get none gets one of the client that holds most.
    Dirichlet(f64),
    /// Shuffled, then split into parts of drawn sizes: each client gets one record, and the others
    /// are split in proportions drawn from Dirichlet(α, …, α), with α above 0.
    Quantity(f64),
    /// Every client holds all records, which are stored once: clients differ in their draws alone, as
    /// the machines of Yuan and Ma (2020) do.
    All,
    /// One client for each value of this column (npz: of the array `client`). Numbers are compared as
    /// numbers, whole ones exactly whatever their length: 1, 01 and 1.0 are one client. In a column
    /// that has other texts too, these are three.
    Column(#[schemars(example = &"client")] String),
    /// k shards for each client (McMahan et al. 2017), with k of 1 or more: records are sorted by label,
    /// those of one label in the order of the file, and cut into N·k shards whose sizes differ by at most
    /// 1; each client gets k of them, drawn without replacement. Labels that are numbers to fit are sorted
    /// by value.
    Shards(#[schemars(range(min = 1), example = 2)] usize),
}

/// The records of the test set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = or_number)]
pub enum TestRecords {
    /// This fraction of the records, above 0 and below 1; `test = 0.2` is short for it.
    Fraction(#[schemars(example = 0.2)] f64),
    /// Those for which this column (npz: array) is 1 or true; for the others it is 0 or false.
    Column(#[schemars(example = &"test")] String),
}

/// The groups of records each of which gives a fraction of its records to the test set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestGroups {
    /// The records of each class. They are partitioned among clients after the draw.
    Classes,
    /// The records of each client. All records are partitioned among clients before the draw, so that
    /// each record of the test set is of a client too.
    Clients,
}

/// Adds to the schema of [`TestRecords`] that a number may stand for the choice `fraction`, which the reader of
/// manifests replaces by this choice.
fn or_number(schema: &mut schemars::Schema) {
    if let Some(choices) = schema.get_mut("oneOf").and_then(|choices| choices.as_array_mut()) {
        choices.push(schemars::json_schema!({ "type": "number" }).to_value());
    }
}

/// Adds to the schema of weights that a list of numbers may stand for the choice `given`, which the reader of manifests
/// replaces by this choice.
pub(super) fn or_numbers(schema: &mut schemars::Schema) {
    if let Some(choices) = schema.get_mut("oneOf").and_then(|choices| choices.as_array_mut()) {
        let numbers = schemars::json_schema!({ "type": "array", "items": { "type": "number" } });
        choices.push(numbers.to_value());
    }
}

/// How much clients count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = or_numbers)]
pub enum ClientWeights {
    /// All the same, however many records they hold: θ* is that of the mean of their means. The
    /// theory of the sources assumes it.
    #[default]
    Equal,
    /// In proportion to the records that they hold (McMahan et al. 2017): θ* is that of the
    /// pooled records. Under partial participation, the weights of the participating clients are
    /// divided by their sum. That is biased: the mean of a round's step is then not the gradient of
    /// the objective, and only control variates (`scaffold`) keep θ* as the fixed point.
    Records,
    /// In proportion to these numbers, one above 0 for each client, which are divided by their sum;
    /// `weights = [0.4, 0.3, 0.3]` is short for it. Clients of a split by column are in the sorted order
    /// of its values. Under partial participation it is biased as weights by records are.
    Given(#[schemars(example = EXAMPLE_WEIGHTS)] Vec<f64>),
}

impl ClientWeights {
    /// π_c, the share of each client, given the number of records that each holds; `None` if all shares are equal.
    /// `key` is the key of these weights, for the fault.
    ///
    /// # Errors
    /// If there is not one given number for each client.
    pub fn shares(&self, key: &'static str, counts: &[usize]) -> Result<Option<Vec<f64>>, Fault> {
        let numbers: Vec<f64> = match self {
            Self::Equal => return Ok(None),
            Self::Records => counts.iter().map(|count| *count as f64).collect(),
            Self::Given(numbers) => {
                let mut faults = Faults::default();
                self.check(key, Some(counts.len()), &mut faults);
                if let Some(fault) = faults.0.pop() {
                    return Err(fault);
                }
                numbers.clone()
            }
        };
        let sum = numbers.iter().fold(0.0, |sum, number| sum + number);
        let are_unequal = numbers.iter().any(|number| *number != numbers[0]);
        Ok(are_unequal.then(|| numbers.iter().map(|number| number / sum).collect()))
    }

    /// Adds what is wrong with the given numbers, whose key is `key`: there must be one for each of the `clients`,
    /// where their number is known already, and each must have a finite share above 0.
    pub fn check(&self, key: &'static str, clients: Option<usize>, faults: &mut Faults) {
        let Self::Given(numbers) = self else { return };
        if let Some(clients) = clients.filter(|clients| *clients != numbers.len()) {
            let given = count(numbers.len(), "number");
            let message = format!(
                "has {given}, and there are {}; each client needs one",
                count(clients, "client")
            );
            faults.0.push(Fault::new(key, message));
        }
        if let Some(wrong) = numbers.iter().find(|number| !(number.is_finite() && **number > 0.0)) {
            let message = format!(
                "must have finite numbers above 0, not {wrong}; leave the records of a client out that shall not count"
            );
            faults.0.push(Fault::new(key, message));
            return;
        }
        let sum = numbers.iter().fold(0.0, |sum, number| sum + number);
        let are_shares = numbers.iter().all(|number| number / sum > 0.0);
        faults.require(are_shares, key, || {
            "has numbers that are too large or too far apart: each, divided by their sum, must be above 0".into()
        });
    }
}

/// The default name of the label column.
fn label() -> String {
    "label".into()
}

/// Whether this is the default name of the label column.
pub fn is_default_label(name: &str) -> bool {
    name == label()
}

/// Whether a character may separate values or begin comments: a sign that is no quote.
fn is_plain_sign(character: char) -> bool {
    character.is_ascii_punctuation() && character != '"'
}

/// Examples of columns for the reference of keys.
const EXAMPLE_FEATURES: [&str; 2] = ["age", "height"];
const EXAMPLE_CATEGORICAL: [&str; 1] = ["colour"];
const EXAMPLE_WEIGHTS: [f64; 3] = [0.4, 0.3, 0.3];

impl Dataset {
    /// An example of a dataset for the reference of keys, and for tests.
    pub fn example() -> Self {
        Self {
            file: DataFile::at("records.csv"),
            separator: None,
            decimal: None,
            thousands: None,
            comment: None,
            header: true,
            label: label(),
            features: Vec::new(),
            categorical: Vec::new(),
            missing: None,
            clients: Some(10),
            split: Split::Dirichlet(0.5),
            weights: ClientWeights::Equal,
            test: None,
            test_within: None,
            standardise: true,
            intercept: true,
            storage: None,
        }
    }

    /// How the file is written, as the settings say.
    fn dialect(&self) -> CsvDialect {
        CsvDialect {
            separator: self.separator,
            decimal: self.decimal,
            thousands: self.thousands,
            comment: self.comment,
            is_without_header: !self.header,
        }
    }

    /// The file, with how it is written.
    pub(super) fn data_file(&self) -> DataFile {
        DataFile { dialect: self.dialect(), ..self.file.clone() }
    }

    /// Checks the keys that say how a CSV file is written.
    fn check_dialect(&self, faults: &mut Faults) {
        let path = &self.file.path;
        let is_csv = self.data_file().format() == Some(FileFormat::Csv);
        if let Some((key, _)) = self.dialect().keys().first().filter(|_| !is_csv) {
            let message = "is for CSV files alone (.csv, .tsv, and texts of other names with `separator`); leave it out";
            faults.0.push(Fault::new(format!("dataset.{key}"), message));
            return;
        }
        let separator = self.separator.unwrap_or_else(|| usual_separator(path));
        faults.require(
            is_plain_sign(separator) || separator == '\t' || separator == ' ',
            "dataset.separator",
            || format!("must be a sign such as \",\", \";\", \"|\", \"\\t\" or \" \", not {separator:?}"),
        );
        let decimal = self.decimal.unwrap_or('.');
        faults.require(decimal == '.' || decimal == ',', "dataset.decimal", || {
            format!("must be \".\" or \",\", not {decimal:?}")
        });
        if let Some(thousands) = self.thousands {
            faults.require(
                [',', '.', '\'', ' ', '_'].contains(&thousands) && thousands != decimal,
                "dataset.thousands",
                || format!("must be one of , . ' _ or a blank, and not the decimal sign, not {thousands:?}"),
            );
        }
        if let Some(comment) = self.comment {
            faults.require(
                is_plain_sign(comment)
                    && comment != separator
                    && !['-', '+', '.'].contains(&comment),
                "dataset.comment",
                || format!("must be a sign such as \"#\" that begins no value, not {comment:?}"),
            );
        }
    }

    /// What is wrong with the settings, before the file is read.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Faults::default();
        self.check_dialect(&mut faults);
        match (&self.split, self.clients) {
            (Split::Column(_), Some(_)) => faults.0.push(Fault::new(
                "dataset.clients",
                "cannot be combined with a split by column, which defines the clients",
            )),
            (Split::Column(_), None) => {}
            (_, None) => faults.0.push(Fault::new(
                "dataset.clients",
                "is required: the number of clients among which the records are partitioned",
            )),
            (_, Some(clients)) => faults.require(
                (1..=MAX_CLIENTS).contains(&(clients as u64)),
                "dataset.clients",
                || format!("must be from 1 to {MAX_CLIENTS}, not {clients}"),
            ),
        }
        match self.split {
            Split::Dirichlet(alpha) => faults.positive("dataset.split.dirichlet", alpha),
            Split::Quantity(alpha) => faults.positive("dataset.split.quantity", alpha),
            Split::Shards(shards) => {
                faults.at_least_one("dataset.split.shards", shards as u64);
            }
            _ => {}
        }
        faults.require(
            !(self.split == Split::All && self.test_within == Some(TestGroups::Clients)),
            "dataset.test-within",
            || "cannot be \"clients\" with the split \"all\", where no record belongs to one client; leave it out".into(),
        );
        self.weights.check("dataset.weights", self.clients, &mut faults);
        if let Some(TestRecords::Fraction(fraction)) = self.test {
            faults.require(fraction > 0.0 && fraction < 1.0, "dataset.test", || {
                format!("must be a fraction of the records above 0 and below 1, not {fraction}")
            });
        }
        faults.require(
            self.test_within.is_none() || matches!(self.test, Some(TestRecords::Fraction(_))),
            "dataset.test-within",
            || "says how a fraction of the records is drawn: write a fraction such as `test = 0.2`, or leave it out".into(),
        );
        faults.require(
            !(self.standardise && self.storage == Some(Storage::Sparse)),
            "dataset.standardise",
            || {
                "cannot be combined with sparse features: a shift makes every 0 another number; scale the features in the file instead".into()
            },
        );
        faults.0
    }

    /// Whether the test set or the partition is drawn, and so depends on the seed.
    pub fn uses_seed(&self) -> bool {
        let drawn = matches!(self.test, Some(TestRecords::Fraction(_)));
        drawn || !matches!(self.split, Split::Column(_) | Split::All)
    }

    /// Whether the records of the test set belong to clients: a column names them, or the test set is drawn from what
    /// each client would hold.
    pub fn has_test_of_clients(&self) -> bool {
        let is_drawn_within = self.test_within == Some(TestGroups::Clients);
        self.test.is_some() && (is_drawn_within || matches!(self.split, Split::Column(_)))
    }

    /// Whether features are likely to be stored sparse, guessed from the settings and the file's name: operations are
    /// estimated from it before the file is read. Where `storage` is not given, the features decide in the end.
    pub fn is_sparse(&self) -> bool {
        let may_be_sparse =
            self.data_file().format() == Some(FileFormat::Libsvm) && !self.standardise;
        self.storage.map_or(may_be_sparse, |storage| storage == Storage::Sparse)
    }
}
