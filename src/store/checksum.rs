//! The checksum of every text below the folder of an experiment, of the index of a pack, and of every cache. Only the
//! marker of a results folder has none.
//!
//! *Invariant*: the last line of each of these is a hash of the bytes above it; one in which any bit differs is
//! refused.

use exactfed_runner::files::{Error, MOST_READ, error, read_plain, sha256};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::Path;

/// The beginning of the last line.
const CHECKSUM: &str = "# sha256 ";
/// What is wrong with bytes that do not have their checksum.
pub const CHANGED: &str = "is not as it was written";

/// Why a text with a checksum is no record.
#[derive(Debug, thiserror::Error)]
pub enum ChecksumError {
    /// The text was changed after it was written.
    #[error("{CHANGED}")]
    Changed,
    /// The text was written with other keys.
    #[error("{}", .0.message())]
    Keys(#[from] toml::de::Error),
}

/// Bytes of the hash in hexadecimal digits, and of the line end after it.
const HASH_AND_LINE_END: usize = 64 + 1;

/// The line, with its line end, that follows these bytes in a file.
pub fn checksum_line(body: &[u8]) -> String {
    format!("{CHECKSUM}{}\n", sha256(body))
}

/// The bytes above the last line; `None` if the last line is not their checksum. The last line is found by its length,
/// which is always the same, since the bytes of a cache above it need not end with a line end.
pub fn checked_body(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.len().checked_sub(CHECKSUM.len() + HASH_AND_LINE_END)?;
    let (body, last_line) = bytes.split_at(length);
    if last_line == checksum_line(body).as_bytes() { Some(body) } else { None }
}

/// A record as TOML, below which a last line has the checksum of the text.
pub fn with_checksum(record: &impl Serialize) -> Result<String, toml::ser::Error> {
    let text = toml::to_string(record)?;
    Ok(format!("{text}{}", checksum_line(text.as_bytes())))
}

/// Whether the last line of a text is a checksum, correct or not: a file of another kind that happens to have the name
/// of a record has none.
pub fn has_checksum(text: &str) -> bool {
    text.lines().next_back().is_some_and(|last| last.starts_with(CHECKSUM))
}

/// The record in a text, whose last line must be its checksum.
pub fn parse_checked<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ChecksumError> {
    let body = checked_body(bytes).ok_or(ChecksumError::Changed)?;
    let text = std::str::from_utf8(body).map_err(|_| ChecksumError::Changed)?;
    Ok(toml::from_str(text)?)
}

/// The record in a file; `None` if there is no such file.
///
/// # Errors
/// If the file or its folder is a symbolic link, the last line is not its checksum, or its text lacks keys of `T`.
pub fn read_checked<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    if path.symlink_metadata().is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let bytes = read_plain(path, MOST_READ)?;
    let record = parse_checked(&bytes).map_err(|e| error(path, e))?;
    Ok(Some(record))
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
            assert!(checked_body(&text.as_bytes()[..cut]).is_none(), "{cut}");
        }
        for bit in 0..8 * text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(checked_body(&wrong).is_none(), "{bit}");
        }
    }
}
