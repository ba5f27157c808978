//! The checksum of `experiment.toml`, `cell.toml` and `failed.toml`.
//!
//! *Invariant*: the last line of each is a hash of the lines above it; a text in which any
//! bit differs is refused.

use exactfed_runner::files::{Error, MOST_READ, error, read_plain, sha256};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::Path;

/// The beginning of the last line.
const CHECKSUM: &str = "# sha256 ";

/// A record as text whose last line is its checksum.
pub fn with_checksum(record: &impl Serialize) -> Result<String, String> {
    let text = toml::to_string(record).map_err(|e| e.to_string())?;
    let hash = sha256(text.as_bytes());
    Ok(format!("{text}{CHECKSUM}{hash}\n"))
}

/// Whether the last line of a text is a checksum, correct or not.
pub fn has_checksum(text: &str) -> bool {
    text.lines().next_back().is_some_and(|last| last.starts_with(CHECKSUM))
}

/// The record of a text whose checksum is correct.
pub fn parse_checked<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let checked_body = || {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = &text[..body.len() + 1];
        let hash = last.strip_prefix(CHECKSUM)?;
        (sha256(body.as_bytes()) == hash).then_some(body)
    };
    let body = checked_body().ok_or("is not as it was written")?;
    toml::from_str(body).map_err(|e| e.message().to_owned())
}

/// The record in a file; `None` if there is no such file.
pub fn read_checked<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    if path.symlink_metadata().is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    parse_checked(&read_plain(path, MOST_READ)?).map(Some).map_err(|e| error(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exactfed_evidence::results::Provenance;

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let record = Provenance { version: "1".into(), commit: "c".into(), dirty: true };
        let text = with_checksum(&record).unwrap();
        assert_eq!(parse_checked::<Provenance>(text.as_bytes()).unwrap(), record);
        for cut in 0..text.len() {
            assert!(parse_checked::<Provenance>(&text.as_bytes()[..cut]).is_err(), "{cut}");
        }
        for bit in 0..8 * text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(parse_checked::<Provenance>(&wrong).is_err(), "{bit}");
        }
    }
}
