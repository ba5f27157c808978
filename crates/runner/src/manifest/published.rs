//! `[published]`: the experiment of another group that a manifest runs again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The published experiment of another group that the manifest runs again. The page *Published experiments of other
/// groups, run again* lists all manifests that have this table, with their verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Published {
    /// The authors and the year, as texts cite the publication.
    #[schemars(example = &"Yuan and Ma 2020")]
    pub authors: String,
    /// The title and where it appeared.
    #[schemars(example = &"Federated Accelerated Stochastic Gradient Descent, NeurIPS 2020")]
    pub paper: String,
    /// What of the experiment was published, and where the paper or the code has it.
    #[schemars(example = &"Losses of FedAvg after 4096 local steps (out/a9a_1e-03/summary.csv)")]
    pub what: String,
    /// The code of the authors with the commit that was read, or the version of a text if there is no code.
    #[schemars(example = &"github.com/hongliny/FedAc-NeurIPS20, commit d3c1e7c")]
    pub code: String,
    /// Data that the experiment needs and that are not part of this project: which file the results were computed
    /// from.
    #[schemars(example = &"a9a of LIBSVM, 32 561 records")]
    pub data: Option<String>,
    /// What in the settings differs from the published ones, and why.
    #[schemars(example = &"λ = 1e-9 in place of 0")]
    pub differs: Option<String>,
    /// A slip in the publication or its code that the runs show, in one sentence with the evidence.
    #[schemars(example = &"The text names one schedule of steps, and the curves have two")]
    pub slip: Option<String>,
}
