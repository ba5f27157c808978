//! The draw of the clients that take part in a round, by the scheme of the terms ([`ParticipationScheme`]).

use super::Terms;
use crate::client_sampling::{FixedSizeDesign, ParticipationScheme};
use crate::kernel::Members;
use crate::rng::Stream;

/// What draws the clients of each round of a run, and says how the server weighs them.
pub(super) struct ClientSampler {
    /// N.
    clients: usize,
    /// L.
    size: usize,
    draw: ClientDraw,
}

/// What a draw of each scheme needs.
enum ClientDraw {
    /// L distinct clients, all with the same probability, whose shares are divided by their sum.
    Normalised,
    /// The same clients, whose weights are N/L times these shares, N numbers.
    Rescaled(Vec<f64>),
    /// L draws of one client each.
    WithReplacement {
        /// π_1 + … + π_k for each client k, N numbers; empty if all shares are equal.
        sums: Vec<f64>,
        /// How often each client was drawn for the current round, N numbers.
        counts: Vec<f64>,
    },
    /// L distinct clients in proportion to their shares.
    Proportional(FixedSizeDesign),
}

impl ClientSampler {
    /// What draws the clients of runs with these terms, of `clients` clients with these shares, N numbers, or with equal
    /// ones without them; `None` if all clients take part in each round.
    ///
    /// # Panics
    /// If clients cannot be drawn in proportion to their shares.
    pub(super) fn new(terms: &Terms, clients: usize, shares: Option<&[f64]>) -> Option<Self> {
        let size = terms.cohort.filter(|_| terms.draws_clients(clients))?;
        let shares = shares.unwrap_or(&[]);
        let draw = match terms.participation.for_shares(!shares.is_empty()) {
            ParticipationScheme::Normalised => ClientDraw::Normalised,
            ParticipationScheme::Rescaled => ClientDraw::Rescaled(shares.to_vec()),
            ParticipationScheme::WithReplacement => {
                let mut total = 0.0;
                let mut sums = Vec::with_capacity(shares.len());
                for share in shares {
                    total += share;
                    sums.push(total);
                }
                ClientDraw::WithReplacement { sums, counts: vec![0.0; clients] }
            }
            ParticipationScheme::Proportional => {
                let design = FixedSizeDesign::new(shares, size);
                ClientDraw::Proportional(design.expect("shares of at most 1/L, which were checked"))
            }
        };
        Some(Self { clients, size, draw })
    }

    /// Draws the clients of the next round from the server's stream.
    pub(super) fn draw(&mut self, stream: &mut Stream) -> Members {
        match &mut self.draw {
            ClientDraw::Normalised | ClientDraw::Rescaled(_) => {
                Members::new(stream.distinct(self.clients, self.size))
            }
            ClientDraw::WithReplacement { sums, counts } => {
                counts.fill(0.0);
                let mut drawn = Vec::with_capacity(self.size);
                for _ in 0..self.size {
                    let client = draw_client(sums, self.clients, stream);
                    counts[client] += 1.0;
                    drawn.push(client);
                }
                Members::new(drawn)
            }
            ClientDraw::Proportional(design) => Members::new(design.draw(stream)),
        }
    }

    /// Whether the server weighs the ends of the clients that take part by [`Self::counts`], and not by their shares.
    pub(super) fn replaces_shares(&self) -> bool {
        matches!(self.draw, ClientDraw::WithReplacement { .. } | ClientDraw::Proportional(_))
    }

    /// How often each client was drawn for the current round, N numbers; `None` if those that take part were drawn once.
    pub(super) fn counts(&self) -> Option<&[f64]> {
        match &self.draw {
            ClientDraw::WithReplacement { counts, .. } => Some(counts),
            _ => None,
        }
    }

    /// The sum of the weights of the clients that take part, `members`: (N/L) Σ π_k over them if their shares are
    /// rescaled, and otherwise 1.
    pub(super) fn sum_of_weights(&self, members: &[usize]) -> f64 {
        match &self.draw {
            ClientDraw::Rescaled(shares) => {
                let sum: f64 = members.iter().map(|&client| shares[client]).sum();
                self.clients as f64 / self.size as f64 * sum
            }
            _ => 1.0,
        }
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
