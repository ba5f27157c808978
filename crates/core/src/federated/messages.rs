//! Messages that a custom algorithm compresses: the streams from which compressors draw, and what clients remember of
//! what their messages left out.

use super::{Conditions, RoundClients};
use crate::compression::Compressor;
use crate::rng::{Purpose, Stream};

/// The streams from which the messages of a run are compressed: one of each client, and one of the server. So the draws
/// of a client do not depend on the other clients, nor on what else the run draws.
pub(super) struct CompressionStreams {
    seed: u64,
    copy: u8,
    replicate: u64,
    /// The streams of the clients, as far as they have compressed a message.
    clients: Vec<Option<Stream>>,
    /// The stream of the server, if it has compressed a message.
    server: Option<Stream>,
}

impl CompressionStreams {
    /// The streams of a run, from their beginnings.
    pub(super) fn new(from: &Conditions, clients: usize) -> Self {
        let Conditions { seed, copy, replicate, .. } = *from;
        Self { seed, copy, replicate, clients: vec![None; clients], server: None }
    }

    /// The stream of a client.
    pub(super) fn of_client(&mut self, client: usize) -> &mut Stream {
        let Self { seed, copy, replicate, clients, .. } = self;
        clients[client].get_or_insert_with(|| {
            Stream::new(*seed, Purpose::ClientCompression, *copy, *replicate, client as u64)
        })
    }

    /// The stream of the server.
    pub(super) fn of_server(&mut self) -> &mut Stream {
        let Self { seed, copy, replicate, server, .. } = self;
        server.get_or_insert_with(|| {
            Stream::new(*seed, Purpose::ServerCompression, *copy, *replicate, 0)
        })
    }
}

/// What the messages of each client have left out so far, or what the server knows of it: a memory of d numbers for
/// each client, 0 before the first round.
pub struct ErrorFeedback {
    compressor: Compressor,
    /// N rows of d numbers.
    memory: Vec<f64>,
}

impl ErrorFeedback {
    /// Memories of 0 of N clients in dimension d, whose messages this compressor shortens.
    pub fn new(clients: usize, d: usize, compressor: Compressor) -> Self {
        Self { compressor, memory: vec![0.0; clients * d] }
    }

    /// The memories e_k, N rows of d numbers.
    pub fn memory(&self) -> &[f64] {
        &self.memory
    }

    /// Error feedback (Seide et al. 2014; Stich, Cordonnier and Jaggi 2018): each client that takes part sends
    /// m_k = C(e_k + r_k − s) and keeps e_k ← e_k + r_k − s − m_k. Writes m_k to `sent`, N rows of d, which are 0 for
    /// the other clients. r_k is the client's row of `rows`; s, which is 0 without it, is d numbers.
    ///
    /// # Panics
    /// If lengths do not fit N and d.
    pub fn send(
        &mut self,
        clients: &mut RoundClients<'_>,
        rows: &[f64],
        start: Option<&[f64]>,
        sent: &mut [f64],
    ) {
        let d = clients.dim();
        let mut wanted = self.memory.clone();
        for &client in clients.members().indices() {
            let own = client * d..(client + 1) * d;
            for (i, place) in own.enumerate() {
                wanted[place] += rows[place];
                if let Some(start) = start {
                    wanted[place] -= start[i];
                }
            }
        }
        clients.compress(&wanted, self.compressor, sent);
        for &client in clients.members().indices() {
            for place in client * d..(client + 1) * d {
                self.memory[place] = wanted[place] - sent[place];
            }
        }
    }

    /// What the server knows of a vector r_k of each client that changes slowly, by compressed differences: each client
    /// that takes part sends m_k = C(r_k − e_k), which makes the estimate e_k + m_k, and both sides keep
    /// e_k ← e_k + α m_k. With α = `rate` = 1 this is EF21 (Richtárik, Sokolov and Fatkhullin 2021), and with an
    /// unbiased compressor and α of at most 1/(1 + ω) DIANA (Mishchenko et al. 2019). Writes the estimates to
    /// `estimates`, N rows of d; those of the other clients are e_k.
    ///
    /// # Panics
    /// If lengths do not fit N and d.
    pub fn track(
        &mut self,
        clients: &mut RoundClients<'_>,
        rows: &[f64],
        rate: f64,
        estimates: &mut [f64],
    ) {
        let changes: Vec<f64> = rows.iter().zip(&self.memory).map(|(r, e)| r - e).collect();
        clients.compress(&changes, self.compressor, estimates);
        for (estimate, memory) in estimates.iter_mut().zip(&mut self.memory) {
            let sent = *estimate;
            *estimate = *memory + sent;
            *memory += rate * sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federated::{Cost, StatedPrice};
    use crate::problem::garnet::Heterogeneity;
    use crate::sample;

    const FROM: Conditions<'static> =
        Conditions { seed: 5, replicate: 3, start: &[0.5; 4], rounds: 30, copy: 0 };
    const PRICE: StatedPrice = StatedPrice { communications: 1, vectors: 2, calls_per_step: 1 };

    fn compressor(text: &str) -> Compressor {
        text.parse().unwrap()
    }

    /// A message replaces one of the vectors that a round's price states, or adds to what is charged. Bits are counted
    /// exactly: 3 · 68 bits are 25.5 bytes, and twice as many 51.
    #[test]
    fn messages_cost_their_bits() {
        let problem = sample::build(&sample::garnet(Heterogeneity::Independent {}, 3), 3);
        let mut clients = RoundClients::new(&problem, &FROM, PRICE);
        let rows = [1.0; 12];
        let mut out = [0.0; 12];
        let mut costs = Vec::new();
        let mut end = |clients: &mut RoundClients<'_>| {
            clients.end_round();
            let Cost { communications, vectors_sent, bytes_sent, .. } = clients.cost();
            costs.push([communications, vectors_sent, bytes_sent]);
        };
        clients.compress(&rows, compressor("sign"), &mut out);
        end(&mut clients);
        clients.compress(&rows, compressor("sign"), &mut out);
        end(&mut clients);
        // The server sends one message to each client, and the clients answer.
        clients.compress_of_server(&[1.0; 4], compressor("natural"), &mut out[..4]);
        clients.compress(&rows, compressor("rand-k:1"), &mut out);
        end(&mut clients);
        clients.draw_cohort(1);
        clients.compress(&rows, compressor("top-k:1"), &mut out);
        end(&mut clients);
        clients.charge(2, 3, 100);
        clients.charge_bits(4);
        clients.compress(&rows, compressor("sign"), &mut out);
        end(&mut clients);
        let wanted = [
            [1, 6, 96 + 26],
            [2, 12, 2 * 96 + 51],
            [3, 18, 243 + 3 * 6 + 3 * 8],
            [4, 20, 285 + 32 + 12],
            [6, 26, 329 + 100 + 26],
        ];
        assert_eq!(costs, wanted);
    }

    /// Each client has a stream of its own: its messages are the same whoever else takes part. Others' rows are 0.
    #[test]
    fn messages_do_not_depend_on_other_clients() {
        let few = sample::build(&sample::garnet(Heterogeneity::Independent {}, 3), 3);
        let many = sample::build(&sample::garnet(Heterogeneity::Independent {}, 7), 3);
        let rand_k = compressor("rand-k:1");
        let mut alone = RoundClients::new(&few, &FROM, PRICE);
        let mut together = RoundClients::new(&many, &FROM, PRICE);
        let mut first = [0.0; 12];
        let mut second = [0.0; 28];
        for _ in 0..20 {
            alone.compress(&[1.0; 12], rand_k, &mut first);
            // The server's own draws and gradients change nothing.
            together.compress_of_server(&[1.0; 4], rand_k, &mut second[..4]);
            together.fields(&[0.5; 4], 1, &mut [0.0; 28]);
            together.compress(&[1.0; 28], rand_k, &mut second);
            assert_eq!(first, second[..12]);
        }
        let mut part = RoundClients::new(&many, &FROM, PRICE);
        part.draw_cohort(2);
        part.compress(&[1.0; 28], rand_k, &mut second);
        for client in 0..7 {
            let is_zero = second[client * 4..][..4].iter().all(|x| *x == 0.0);
            assert_eq!(is_zero, !part.members().indices().contains(&client));
        }
    }

    /// What is sent and what is kept add up to what was to be sent, and the estimates of slow vectors tend to them.
    #[test]
    fn nothing_is_lost() {
        let problem = sample::build(&sample::garnet(Heterogeneity::Independent {}, 3), 3);
        let mut clients = RoundClients::new(&problem, &FROM, PRICE);
        let rows: Vec<f64> = (0..12).map(|i| f64::from(i) - 5.0).collect();
        let mut feedback = ErrorFeedback::new(3, 4, compressor("top-k:1"));
        let mut sent = vec![0.0; 12];
        let mut total = [0.0; 12];
        for round in 1..=50 {
            feedback.send(&mut clients, &rows, Some(&[1.0; 4]), &mut sent);
            total.iter_mut().zip(&sent).for_each(|(total, sent)| *total += sent);
            for (place, total) in total.iter().enumerate() {
                let wanted = f64::from(round) * (rows[place] - 1.0);
                assert!((total + feedback.memory()[place] - wanted).abs() < 1e-9);
            }
        }
        let mut tracked = ErrorFeedback::new(3, 4, compressor("top-k:1"));
        for _ in 0..4 {
            tracked.track(&mut clients, &rows, 1.0, &mut sent);
            assert_eq!(sent, tracked.memory());
        }
        assert_eq!(sent, rows);
        let mut slow = ErrorFeedback::new(3, 4, compressor("rand-k:1"));
        let mut squares = Vec::new();
        for _ in 0..200 {
            slow.track(&mut clients, &rows, 0.25, &mut sent);
            squares.push(crate::kernel::squared_distance(&sent, &rows));
        }
        assert!(squares[199] < 1e-12 * squares[0], "{} and {}", squares[0], squares[199]);
    }
}
