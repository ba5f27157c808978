//! How records are partitioned among clients.

use super::ranks::{number_of_classes, ranks};
use super::records::Records;
use super::settings::{Dataset, Split};
use crate::kernel::softmax::MOST_CLASSES;
use crate::problem::fault::Fault;
use crate::rng::Stream;

impl Dataset {
    /// Partitions the records that clients hold as the settings say, with draws from the seed: for each client the
    /// indices of its records, of which there is at least one. With a split by column nothing is drawn, and clients
    /// are in the sorted order of the column's values. If every client holds all records, there is one list for all.
    ///
    /// # Errors
    /// A client that would get no records, or labels of too many kinds for a split by Dirichlet proportions.
    pub(super) fn partition(&self, records: &Records, seed: u64) -> Result<Vec<Vec<usize>>, Fault> {
        let n = records.labels.len();
        let mut rng = Stream::shared_instance(seed);
        // A split by column, which determines the number itself, has no `clients`.
        let clients = self.clients.unwrap_or(1);
        if clients > n && self.split != Split::All {
            // Checked before any list is allocated: `clients` may be huge.
            return Err(self.empty_client(n / clients, clients, n));
        }
        let parts = match &self.split {
            Split::Iid => split_equally(&rng.distinct(n, n), clients),
            Split::ByLabel => {
                let mut order = rng.distinct(n, n);
                let ranks = ranks(&records.labels);
                order.sort_by_key(|&i| ranks[i]);
                split_equally(&order, clients)
            }
            Split::Dirichlet(alpha) => {
                let mut parts = records.dirichlet_parts(clients, *alpha, &mut rng)?;
                fill_empty_parts(&mut parts);
                parts
            }
            Split::Quantity(alpha) => {
                let order = rng.distinct(n, n);
                // Each client gets one record in addition to its share of the others.
                let begins = part_begins(&rng.dirichlet(clients, *alpha), n - clients);
                (0..clients).map(|k| order[begins[k] + k..begins[k + 1] + k + 1].to_vec()).collect()
            }
            Split::Shards(per_client) => {
                // `Dataset::check` refuses 0 shards.
                let per_client = (*per_client).max(1);
                let shards = clients.saturating_mul(per_client);
                if shards > n {
                    let message = format!(
                        "cuts the records of {clients} clients into {shards} shards, and there are {n} records; fewer shards or clients leave none empty"
                    );
                    return Err(Fault::new("dataset.split.shards", message));
                }
                let ranks = ranks(&records.labels);
                let mut order: Vec<usize> = (0..n).collect();
                // A stable sort: records of one label stay in the order of the file.
                order.sort_by_key(|&i| ranks[i]);
                let all = split_equally(&order, shards);
                let drawn = rng.distinct(shards, shards);
                let hands = drawn.chunks_exact(per_client);
                hands
                    .map(|hand| hand.iter().flat_map(|&shard| all[shard].clone()).collect())
                    .collect()
            }
            Split::All => vec![(0..n).collect()],
            Split::Column(_) => match &records.groups {
                None => vec![(0..n).collect()],
                Some(groups) => {
                    let ranks = ranks(groups);
                    let mut parts = vec![Vec::new(); number_of_classes(&ranks)];
                    ranks.iter().enumerate().for_each(|(i, &k)| parts[k].push(i));
                    parts
                }
            },
        };
        match parts.iter().position(Vec::is_empty) {
            None => Ok(parts),
            Some(empty) => Err(self.empty_client(empty, parts.len(), n)),
        }
    }

    /// The fault that client number `empty` of `count` gets none of the `n` records.
    fn empty_client(&self, empty: usize, count: usize, n: usize) -> Fault {
        let message = format!(
            "client {empty} of {count} gets no records of the {n}; fewer clients would leave none empty"
        );
        Fault::new("dataset.clients", message)
    }
}

impl Records {
    /// For each client the indices of its records: the records of each class are shuffled, and split in proportions
    /// that are drawn from the Dirichlet distribution with all parameters α. A client may get none.
    ///
    /// # Errors
    /// If there are more classes than [`MOST_CLASSES`], as where labels are numbers.
    fn dirichlet_parts(
        &self,
        clients: usize,
        alpha: f64,
        rng: &mut Stream,
    ) -> Result<Vec<Vec<usize>>, Fault> {
        let ranks = ranks(&self.labels);
        let classes = number_of_classes(&ranks);
        if classes > MOST_CLASSES {
            let message = format!("needs classes, but there are {classes} different labels");
            return Err(Fault::new("dataset.split", message));
        }
        let mut parts = vec![Vec::new(); clients];
        for class in 0..classes {
            let members: Vec<usize> = (0..ranks.len()).filter(|&i| ranks[i] == class).collect();
            let all = members.len();
            let order = rng.distinct(all, all);
            let begins = part_begins(&rng.dirichlet(clients, alpha), all);
            for (k, part) in parts.iter_mut().enumerate() {
                part.extend(order[begins[k]..begins[k + 1]].iter().map(|&i| members[i]));
            }
        }
        Ok(parts)
    }
}

/// Splits a list, in its order, into `parts` parts whose lengths differ by at most 1. There are no more parts than
/// items.
fn split_equally(order: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::with_capacity(parts);
    let mut begin = 0;
    for k in 1..=parts {
        let end = (k as u128 * order.len() as u128 / parts as u128) as usize;
        all.push(order[begin..end].to_vec());
        begin = end;
    }
    all
}

/// The offsets that split `count` items in proportion to `shares`, which sum to 1: where each part begins, and at
/// the end `count`, so that part k is from offset k to offset k + 1.
fn part_begins(shares: &[f64], count: usize) -> Vec<usize> {
    let mut begins = vec![0];
    let mut sum = 0.0;
    // The last part ends at `count` whatever the rounding errors of the sum are.
    for share in &shares[..shares.len() - 1] {
        sum += share;
        begins.push(((sum * count as f64) as usize).min(count));
    }
    begins.push(count);
    begins
}

/// Moves to each empty part the last item of the part that is longest then (the first one of equal ones), as long as a
/// part is empty. There are no fewer items than parts, so that no part is emptied for another.
fn fill_empty_parts(parts: &mut [Vec<usize>]) {
    while let Some(empty) = parts.iter().position(Vec::is_empty) {
        let longest = (0..parts.len()).rev().max_by_key(|&k| parts[k].len());
        let Some(item) = longest.and_then(|k| parts[k].pop()) else { break };
        parts[empty].push(item);
    }
}
