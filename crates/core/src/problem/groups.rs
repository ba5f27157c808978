//! Clients that are alike.

use std::collections::HashMap;
use std::hash::Hash;

/// Groups clients with equal keys: the first client of each group, and the group of each client.
pub fn group_clients<K: Hash + Eq>(
    clients: usize,
    key: impl Fn(usize) -> K,
) -> (Vec<usize>, Vec<usize>) {
    let mut known = HashMap::new();
    let mut first = Vec::new();
    let mut group = |client| {
        *known.entry(key(client)).or_insert_with(|| {
            first.push(client);
            first.len() - 1
        })
    };
    let groups = (0..clients).map(&mut group).collect();
    (first, groups)
}
