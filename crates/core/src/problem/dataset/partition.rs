//! How records are partitioned among clients.

use super::ranks::{number_of_classes, ranks};
use super::records::Records;
use super::settings::{Dataset, Split};
use crate::kernel::softmax::MOST_CLASSES;
use crate::problem::fault::Fault;
use crate::rng::Stream;

impl Dataset {
    /// The indices of the records that each client holds.
    ///
    /// # Errors
    /// A client without records, or labels that are not classes.
    pub(super) fn partition(&self, records: &Records, seed: u64) -> Result<Vec<Vec<usize>>, Fault> {
        let n = records.labels.len();
        let mut rng = Stream::shared_instance(seed);
        let clients = self.clients.unwrap_or(1);
        if clients > n {
            // Checked before any list is allocated: `clients` may be huge.
            return Err(self.empty_client(n / clients, clients, n));
        }
        let equal_parts = |order: Vec<usize>| -> Vec<Vec<usize>> {
            let begin = |k: usize| (k as u128 * n as u128 / clients as u128) as usize;
            (0..clients).map(|k| order[begin(k)..begin(k + 1)].to_vec()).collect()
        };
        let parts = match &self.split {
            Split::Iid => equal_parts(rng.distinct(n, n)),
            Split::ByLabel => {
                let mut order = rng.distinct(n, n);
                let ranks = ranks(&records.labels);
                order.sort_by_key(|&i| ranks[i]);
                equal_parts(order)
            }
            Split::Dirichlet(alpha) => {
                one_each(records.dirichlet_parts(clients, *alpha, &mut rng)?)
            }
            Split::Quantity(alpha) => {
                let order = rng.distinct(n, n);
                let begins = begins(&rng.dirichlet(clients, *alpha), n - clients);
                let begin = |k: usize| begins[k] + k;
                (0..clients).map(|k| order[begin(k)..begin(k + 1)].to_vec()).collect()
            }
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

    /// The fault of a client without records.
    fn empty_client(&self, empty: usize, count: usize, n: usize) -> Fault {
        let message = format!(
            "client {empty} of {count} gets no records of the {n}; fewer clients would leave none empty"
        );
        Fault::new("dataset.clients", message)
    }
}

impl Records {
    /// The indices of each client's records: of each class, shares drawn from a symmetric
    /// Dirichlet distribution.
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
            let begins = begins(&rng.dirichlet(clients, alpha), all);
            for (k, part) in parts.iter_mut().enumerate() {
                part.extend(order[begins[k]..begins[k + 1]].iter().map(|&i| members[i]));
            }
        }
        Ok(parts)
    }
}

/// Where parts in these proportions begin among so many, and where the last one ends.
fn begins(shares: &[f64], all: usize) -> Vec<usize> {
    let mut sum = 0.0;
    let end = |share: &f64| {
        sum += share;
        ((sum * all as f64) as usize).min(all)
    };
    let ends = shares[..shares.len() - 1].iter().map(end);
    std::iter::once(0).chain(ends).chain([all]).collect()
}

/// Parts in which each client without records gets the last one of the client that has most.
fn one_each(mut parts: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    while let Some(empty) = parts.iter().position(Vec::is_empty) {
        let most = (0..parts.len()).rev().max_by_key(|&k| parts[k].len());
        let Some(record) = most.and_then(|k| parts[k].pop()) else { break };
        parts[empty].push(record);
    }
    parts
}
