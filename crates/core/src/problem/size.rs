//! The size of an instance, as far as its settings say it.

/// The size of an instance, known before it is built.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceSize {
    /// N, the number of clients.
    pub clients: usize,
    /// d, the dimension of θ.
    pub dimension: usize,
    /// The parts that take memory.
    pub parts: Vec<MemoryPart>,
}

impl InstanceSize {
    /// The size of an instance whose clients have a d × d matrix and some vectors each.
    pub fn of_matrices(clients: usize, dimension: usize) -> Self {
        let n = clients as f64;
        let d = dimension as f64;
        // Twice, since exact limits need the matrices of all clients.
        let bytes = n * (8.0 * (2.0 * d * d + 4.0 * d) + 150.0);
        let what = format!("{clients} clients' matrices of {dimension} × {dimension}");
        Self { clients, dimension, parts: vec![MemoryPart::new("clients", bytes, what)] }
    }
}

/// A part of an instance that takes memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPart {
    /// The setting that decides its size, by which messages about memory name it: a key within the
    /// problem's table, or a path from the root of the manifest.
    pub key: String,
    /// Its approximate size in bytes.
    pub bytes: f64,
    /// What takes the memory, for a message, in the plural: "the records of 9 clients".
    pub what: String,
}

impl MemoryPart {
    /// A part whose size is decided by `key`.
    pub fn new(key: &str, bytes: f64, what: impl Into<String>) -> Self {
        Self { key: key.to_owned(), bytes, what: what.into() }
    }
}
