//! What is written down of a cell beside its numbers: `cell.toml`, `failed.toml`. The
//! seal is that of `experiment.toml` too.
//!
//! *Invariant*: the last line of either is a hash of the lines above it; a text in
//! which any bit is another is refused.

use super::CellSummary;
use super::provenance::Provenance;
use driftbench_runner::plan::{Cell, hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What `cell.toml` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRecord {
    /// Content id.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the curve when it was stored.
    pub label: String,
    /// Digest of the traces.
    pub digest: String,
    /// Length of the Parquet file, in bytes.
    pub bytes: u64,
    /// SHA-256 of the Parquet file.
    pub sha256: String,
    /// Time that the cell took on one thread, in seconds.
    pub seconds: f64,
    /// Who computed it.
    pub provenance: Provenance,
    /// What determines the numbers.
    pub cell: toml::Table,
}

/// What `failed.toml` says of a cell that could not be run to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedRecord {
    /// Content id.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the curve.
    pub label: String,
    /// Why it could not be run.
    pub reason: String,
    /// Who tried.
    pub provenance: Provenance,
    /// What determines the numbers.
    pub cell: toml::Table,
}

impl CellRecord {
    /// What it says, but for the settings.
    pub fn summary(&self) -> CellSummary {
        CellSummary {
            id: self.id.clone(),
            label: self.label.clone(),
            digest: self.digest.clone(),
            seconds: self.seconds,
            provenance: self.provenance.clone(),
        }
    }
}

impl FailedRecord {
    /// That a cell failed, and why.
    pub fn new(experiment: &str, cell: &Cell, reason: String, by: &Provenance) -> Self {
        Self {
            id: cell.id.clone(),
            experiment: experiment.to_owned(),
            label: cell.label.clone(),
            reason,
            provenance: by.clone(),
            cell: cell.identity.canonical(),
        }
    }
}

/// What the last line begins with.
const CHECKSUM: &str = "# sha256 ";

/// A record as text, with a hash of it in the last line.
pub fn checksummed(record: &impl Serialize) -> Result<String, String> {
    let text = toml::to_string(record).map_err(|e| e.to_string())?;
    let hash = hex(&Sha256::digest(text.as_bytes()));
    Ok(format!("{text}{CHECKSUM}{hash}\n"))
}

/// Whether the last line of a text is a seal, be it the right one or not.
pub fn has_checksum(text: &str) -> bool {
    text.lines().next_back().is_some_and(|last| last.starts_with(CHECKSUM))
}

/// The record of a checksummed text.
pub fn verify_checksum<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let whole = || {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = &text[..body.len() + 1];
        let hash = last.strip_prefix(CHECKSUM)?;
        (hex(&Sha256::digest(body.as_bytes())) == hash).then_some(body)
    };
    let body = whole().ok_or("is not as it was written")?;
    toml::from_str(body).map_err(|e| e.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let record = Provenance { version: "1".into(), commit: "c".into(), dirty: true };
        let text = checksummed(&record).unwrap();
        assert_eq!(verify_checksum::<Provenance>(text.as_bytes()).unwrap(), record);
        for cut in 0..text.len() {
            assert!(verify_checksum::<Provenance>(&text.as_bytes()[..cut]).is_err(), "{cut}");
        }
        for bit in 0..8 * text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(verify_checksum::<Provenance>(&wrong).is_err(), "{bit}");
        }
    }
}
