//! Manifests for tests. Those of the experiments are not in the archive of this crate.

/// Logistic problems, with and without noise.
pub const LOGISTIC: &str = r#"title = "FedAvg, Scaffold and Richardson-Romberg on small logistic problems"
source = "Our choice, for tests"
seed = 7
replicates = 3
oracle = ["stochastic", "exact"]

[problem.logistic]
dimension = 3
records = 20
clients = 4
data = [{ noisy = { spread = 2.0 } }, { heterogeneous = { spread = 1.0, perturbation = 0.5 } }]
l2 = 0.2

[start]
zero = true

[budget]
rounds = 30

[record]
every = 3
iterates = true

[[algorithm.fedavg]]
step-size = 0.1
local-steps = [1, 5]
average = ["none", { burn-in = 0.5 }]

[[algorithm.scaffold]]
step-size = 0.1
local-steps = [1, 5]

[[algorithm.richardson-romberg]]
label = "Scaffold-RR"
over = "scaffold"
step-size = 0.1
local-steps = 5
"#;

/// A step size at which runs diverge.
pub const DIVERGING: &str = r#"title = "A step size too large"
source = "Our choice, for tests"
seed = 7
replicates = 2

[problem.logistic]
dimension = 2
records = 20
clients = 2
data = { noisy = { spread = 1.0 } }
l2 = 10.0

[start]
offset = 1.0

[budget]
rounds = 2000

[[algorithm.fedavg]]
step-size = [0.01, 0.5]
local-steps = 3
"#;

/// Garnet problems with linear algorithms.
pub const GARNET: &str = r#"title = "FedLSA and SCAFFLSA on small Garnet problems"
source = "Our choice, for tests"
seed = 7
replicates = 3

[problem.garnet]
states = 10
actions = 2
branching = 2
features = 4
discount = 0.9
clients = [3, 8]
heterogeneity = [{ perturbed = { kernel = 0.02, reward = 0.02 } }, { independent = {} }, { two-kernels = {} }]

[start]
offset = 1.0

[budget]
local-steps = 400
min-rounds = 20

[record]
points = 10

[[algorithm.fedlsa]]
step-size = 0.1
local-steps = [1, 20]

[[algorithm.scafflsa]]
step-size = 0.1
local-steps = [1, 20]

[[algorithm.richardson-romberg]]
label = "Richardson-Romberg"
step-size = 0.1
local-steps = 20
coupling = ["common", "independent"]
"#;

/// Least mean squares, on an instance for each replicate.
pub const LMS: &str = r#"title = "Some algorithms on least mean squares"
source = "Our choice, for tests"
seed = 7
replicates = 2
instance = "per-replicate"

[problem.lms]
dimension = 3
clients = 4
spectrum = { from = 0.5, to = 1.5 }
covariances = ["same", "rotated"]
model-spread = 0.5
noise = 0.2

[start]
offset = 1.0

[budget]
rounds = 12

[record]
every = 4
metrics = ["sq-error-average", "sq-error-clients", "sq-gradient", "lyapunov", "correction-sum", "suboptimality"]

[[algorithm.fedavg]]
label = "FedAvg, unequal work"
step-size = 0.1
steps-per-client = [1, 4]
normalised = [false, true]
batch-per-client = [2, 1]
cohort = 3
server-step = 0.9

[[algorithm.fedlsa]]
step-size = 0.1
local-steps = 4

[[algorithm.scaffold]]
label = "Scaffold, H1"
step-size = 0.1
communication-probability = 0.25
clock = ["communications", "steps"]

[[algorithm.richardson-romberg]]
label = "RR"
step-size = 0.1
local-steps = 4
over = ["fedavg", "scaffold", "fedlin", "minibatch-sgd", { fedprox = { proximal = 1.0 } }]
"#;
