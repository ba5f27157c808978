//! Who takes part in a round, by a scheme ([`ParticipationScheme`]), and with which weights.

use crate::client_sampling::{
    ClientProbabilities, FixedSizeDesign, ParticipationScheme, RoundCandidates, shares_of,
};
use crate::kernel::Members;
use crate::rng::Stream;

/// What draws the clients of each round of a run, and says how the server weighs them.
pub(super) struct ClientSampler {
    /// N.
    clients: usize,
    draw: ClientDraw,
    /// w_k of each client when it takes part, N numbers, if the scheme fixes it
    /// ([`ParticipationScheme::inverse_weights`]).
    weights: Option<Vec<f64>>,
}

/// What a draw of each scheme needs.
enum ClientDraw {
    /// L distinct clients, all with the same probability, whose shares are divided by their sum.
    Normalised { size: usize },
    /// The same clients, whose weights are N/L times these shares, N numbers.
    Rescaled { size: usize, shares: Vec<f64> },
    /// L draws of one client each.
    WithReplacement {
        size: usize,
        /// π_1 + … + π_k for each client k, N numbers; empty if all shares are equal.
        sums: Vec<f64>,
        /// How often each client was drawn for the current round, N numbers.
        counts: Vec<f64>,
    },
    /// L distinct clients in proportion to their shares.
    Proportional { size: usize, design: FixedSizeDesign },
    /// L distinct clients in proportion to numbers.
    Weighted(FixedSizeDesign),
    /// A coin for each client.
    Coins(ClientProbabilities),
    /// Clients by a schedule.
    Scheduled(ScheduledDraw),
}

/// A schedule, and how far its period is.
struct ScheduledDraw {
    /// Who may take part in each round of the period.
    rounds: Vec<RoundCandidates>,
    /// The order of these rounds in the current period.
    order: Vec<usize>,
    /// Whether the order is drawn for each period.
    is_shuffled: bool,
    /// The place of the next round in the order.
    next: usize,
}

/// The weights of the ends of the clients that take part in a round, which are divided by their sum.
pub(super) enum DrawWeights<'a> {
    /// Their shares.
    Shares,
    /// All the same.
    Equal,
    /// N numbers, of which those of the clients that take part count.
    Each(&'a [f64]),
}

impl ClientSampler {
    /// What draws the clients of runs by this scheme, of `clients` clients with these shares, N numbers, or with equal
    /// ones without them; `None` if all clients take part in each round. L = `size` of them are drawn, if it is given.
    ///
    /// # Panics
    /// If the scheme is none for these clients ([`ParticipationScheme::check_for`],
    /// [`proportional_fault`](crate::client_sampling::proportional_fault)).
    pub(super) fn new(
        scheme: &ParticipationScheme,
        size: Option<usize>,
        clients: usize,
        shares: Option<&[f64]>,
    ) -> Option<Self> {
        if !scheme.draws_clients(size, clients) {
            return None;
        }
        let weights = scheme.inverse_weights(size, clients, shares);
        let size = size.unwrap_or(clients);
        let draw = match scheme {
            ParticipationScheme::Normalised => ClientDraw::Normalised { size },
            ParticipationScheme::Rescaled => {
                let equal = || vec![1.0 / clients as f64; clients];
                ClientDraw::Rescaled { size, shares: shares.map_or_else(equal, <[f64]>::to_vec) }
            }
            ParticipationScheme::WithReplacement => {
                let mut total = 0.0;
                let mut sums = Vec::with_capacity(clients);
                for share in shares.unwrap_or(&[]) {
                    total += share;
                    sums.push(total);
                }
                ClientDraw::WithReplacement { size, sums, counts: vec![0.0; clients] }
            }
            ParticipationScheme::Proportional => {
                let equal = vec![1.0 / clients as f64; clients];
                let design = FixedSizeDesign::new(shares.unwrap_or(&equal), size);
                let design = design.expect("shares of at most 1/L, which were checked");
                ClientDraw::Proportional { size, design }
            }
            ParticipationScheme::Weighted(numbers) => {
                let design = FixedSizeDesign::new(&shares_of(numbers), size);
                ClientDraw::Weighted(
                    design.expect("probabilities of at most 1, which were checked"),
                )
            }
            ParticipationScheme::Bernoulli(probabilities)
            | ParticipationScheme::BernoulliNormalised(probabilities) => {
                ClientDraw::Coins(probabilities.clone())
            }
            ParticipationScheme::Cyclic(_) | ParticipationScheme::Available(_) => {
                let rounds = scheme.rounds_of_period(Some(size), clients);
                ClientDraw::Scheduled(ScheduledDraw {
                    order: (0..rounds.len()).collect(),
                    rounds,
                    is_shuffled: scheme.is_shuffled(),
                    next: 0,
                })
            }
        };
        Some(Self { clients, draw, weights })
    }

    /// Selects the clients of the next round; draws are from the server's stream. There may be none.
    pub(super) fn draw(&mut self, stream: &mut Stream) -> Members {
        match &mut self.draw {
            ClientDraw::Normalised { size } | ClientDraw::Rescaled { size, .. } => {
                Members::new(stream.distinct(self.clients, *size))
            }
            ClientDraw::WithReplacement { size, sums, counts } => {
                counts.fill(0.0);
                let mut drawn = Vec::with_capacity(*size);
                for _ in 0..*size {
                    let client = draw_client(sums, self.clients, stream);
                    counts[client] += 1.0;
                    drawn.push(client);
                }
                Members::new(drawn)
            }
            ClientDraw::Proportional { design, .. } | ClientDraw::Weighted(design) => {
                Members::new(design.draw(stream))
            }
            ClientDraw::Coins(probabilities) => {
                let mut heads = Vec::new();
                for client in 0..self.clients {
                    // Each client has its draw, so that the coins of one depend on no probability of another.
                    if stream.uniform() < probabilities.of_client(client) {
                        heads.push(client);
                    }
                }
                Members::new(heads)
            }
            ClientDraw::Scheduled(schedule) => schedule.draw(stream),
        }
    }

    /// The weights of the ends of the clients that take part in the current round, up to a common factor.
    pub(super) fn mean_weights(&self) -> DrawWeights<'_> {
        match (&self.draw, &self.weights) {
            (_, Some(weights)) => DrawWeights::Each(weights),
            (ClientDraw::WithReplacement { counts, .. }, None) => DrawWeights::Each(counts),
            (ClientDraw::Proportional { .. }, None) => DrawWeights::Equal,
            _ => DrawWeights::Shares,
        }
    }

    /// Whether the server weighs the ends of the clients that take part otherwise than by their shares.
    pub(super) fn replaces_shares(&self) -> bool {
        !matches!(self.mean_weights(), DrawWeights::Shares)
    }

    /// Whether w_k of a client is not its share, divided by the sum of these over those who take part
    /// ([`Self::weight`]).
    pub(super) fn replaces_sum(&self) -> bool {
        let is_rescaled = matches!(self.draw, ClientDraw::Rescaled { .. });
        is_rescaled || self.replaces_shares()
    }

    /// The sum of the weights w_k of the clients that take part, `members`. It is 1 where they are divided by their sum,
    /// and where clients are drawn by their shares.
    pub(super) fn sum_of_weights(&self, members: &[usize]) -> f64 {
        match (&self.draw, &self.weights) {
            (ClientDraw::Rescaled { size, shares }, _) => {
                let sum: f64 = members.iter().map(|&client| shares[client]).sum();
                self.clients as f64 / *size as f64 * sum
            }
            (_, Some(weights)) => members.iter().map(|&client| weights[client]).sum(),
            _ => 1.0,
        }
    }

    /// w_k of a client that takes part in the current round; `None` if it is its share, divided by the sum of these over
    /// those who take part.
    pub(super) fn weight(&self, client: usize) -> Option<f64> {
        match (&self.draw, &self.weights) {
            (_, Some(weights)) => Some(weights[client]),
            (ClientDraw::Rescaled { size, shares }, None) => {
                Some(self.clients as f64 / *size as f64 * shares[client])
            }
            (ClientDraw::WithReplacement { size, counts, .. }, None) => {
                Some(counts[client] / *size as f64)
            }
            (ClientDraw::Proportional { size, .. }, None) => Some(1.0 / *size as f64),
            _ => None,
        }
    }
}

impl ScheduledDraw {
    /// The clients of the next round: all that may take part, or those that are drawn of them.
    fn draw(&mut self, stream: &mut Stream) -> Members {
        if self.next == 0 && self.is_shuffled {
            self.order = stream.distinct(self.rounds.len(), self.rounds.len());
        }
        let round = &self.rounds[self.order[self.next]];
        self.next = (self.next + 1) % self.rounds.len();
        // Without a draw if all take part, so that a schedule that draws nobody has no draws.
        if round.size == round.clients.len() {
            return Members::new(round.clients.clone());
        }
        let drawn = stream.distinct(round.clients.len(), round.size);
        Members::new(drawn.into_iter().map(|place| round.clients[place]).collect())
    }
}

/// Draws one of `clients` clients from one draw of the stream; `sums` are the sums of shares up to each client, and
/// without them all shares are equal. The last client with a share takes what rounding leaves.
fn draw_client(sums: &[f64], clients: usize, stream: &mut Stream) -> usize {
    let Some(total) = sums.last() else { return stream.index(clients) };
    let point = stream.uniform() * total;
    let client = sums.partition_point(|sum| *sum <= point);
    if client < clients { client } else { sums.partition_point(|sum| sum < total) }
}
