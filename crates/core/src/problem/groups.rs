//! Clients that have equal keys, such as their distributions.

use std::collections::HashMap;
use std::hash::Hash;

/// Groups the clients 0..`clients` by their keys, so that what depends on the key alone is computed once
/// for each group. Returns the first client of each group, in increasing order, and for each client the
/// number of its group.
pub fn group_clients<K: Hash + Eq>(
    clients: usize,
    key: impl Fn(usize) -> K,
) -> (Vec<usize>, Vec<usize>) {
    let mut group_of_key = HashMap::new();
    let mut first = Vec::new();
    let mut groups = Vec::with_capacity(clients);
    for client in 0..clients {
        let group = *group_of_key.entry(key(client)).or_insert_with(|| {
            first.push(client);
            first.len() - 1
        });
        groups.push(group);
    }
    (first, groups)
}
