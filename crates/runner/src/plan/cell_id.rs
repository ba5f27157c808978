//! The names of cells.

use crate::files::{hex, sha256};
use std::fmt;
use std::ops::Deref;

/// The content id of a cell: sixteen hexadecimal digits, the first of the hash of its canonical text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId([u8; 16]);

impl CellId {
    /// The id of the cell whose canonical text this is.
    pub fn of(canonical: &str) -> Self {
        Self::read(&sha256(canonical.as_bytes())[..16]).expect("sixteen digits")
    }

    /// The id of the cell whose canonical text has a hash that begins so.
    pub fn from_hash(first: [u8; 8]) -> Self {
        Self::read(&hex(&first)).expect("sixteen digits")
    }

    /// The id that this text is, if it is one.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.as_bytes().try_into().ok()?;
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(digits))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits")
    }
}

impl Deref for CellId {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq<str> for CellId {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}
