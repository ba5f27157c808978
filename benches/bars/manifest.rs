//! The manifests of the measurements.

/// One Garnet problem under FedLSA.
pub struct Manifest {
    pub clients: u64,
    pub rounds: u64,
    pub local_steps: u64,
    /// The numbers of starts and of step sizes, whose product is the number of cells.
    pub starts: u64,
    pub step_sizes: u64,
    pub points: u64,
    pub spacing: &'static str,
}

impl Manifest {
    /// One cell.
    pub fn one(clients: u64, local_steps: u64, rounds: u64) -> Self {
        let (starts, step_sizes, points) = (1, 1, 100);
        Self { clients, rounds, local_steps, starts, step_sizes, points, spacing: "log" }
    }

    /// Many small cells: ten clients, one local step.
    pub fn many(cells: u64, rounds: u64) -> Self {
        Self {
            starts: 100,
            step_sizes: cells / 100,
            points: 10,
            spacing: "linear",
            ..Self::one(10, 1, rounds)
        }
    }

    /// The client steps of all cells.
    pub fn client_steps(&self) -> f64 {
        (self.cells() * self.clients * self.rounds * self.local_steps) as f64
    }

    pub fn cells(&self) -> u64 {
        self.starts * self.step_sizes
    }

    pub fn text(&self) -> String {
        format!(
            r#"title = "Measured by bars"
seed = 1
replicates = 1

[problem.garnet]
states = 30
actions = 2
branching = 2
features = 8
discount = 0.95
clients = {clients}
heterogeneity = {{ perturbed = {{ kernel = 0.02, reward = 0.02 }} }}

[start]
offset = {starts}

[budget]
rounds = {rounds}

[record]
points = {points}
spacing = "{spacing}"

[[algorithm.fedlsa]]
step-size = {step_sizes}
local-steps = {steps}
"#,
            clients = self.clients,
            starts = values(self.starts, 1.0, 0.01),
            rounds = self.rounds,
            points = self.points,
            spacing = self.spacing,
            step_sizes = values(self.step_sizes, 0.01, 0.001),
            steps = self.local_steps,
        )
    }
}

/// An array of so many numbers, or a single number.
fn values(count: u64, from: f64, by: f64) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("{:.4}", from + by * i as f64)).collect();
    if count == 1 { all[0].clone() } else { format!("[{}]", all.join(", ")) }
}
