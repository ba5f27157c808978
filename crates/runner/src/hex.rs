//! Hashes as text: the names of cells and the digests of their numbers.

use crate::files::{hex, sha256};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::ops::Deref;

/// `N` hexadecimal digits, in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexText<const N: usize>([u8; N]);

/// The content id of a cell: the first digits of the hash of its canonical text.
pub type CellId = HexText<16>;

/// The digest of a cell: the first 32 digits of a hash over every bit of its traces. It is held by
/// its bytes, since large grids have many.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "HexText<32>", into = "HexText<32>")]
pub struct TraceDigest([u8; 16]);

impl TraceDigest {
    /// The first digits of the SHA-256 of a text.
    pub fn of(text: &str) -> Self {
        HexText::of(text).into()
    }

    /// The first digits of a hash with these bytes, 16 or more.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn from_hash(hash: &[u8]) -> Self {
        HexText::from_hash(hash).into()
    }

    /// The digest that a text of 32 digits is; `None` if the text is anything else.
    pub fn read(text: &str) -> Option<Self> {
        HexText::read(text).map(Self::from)
    }

    /// The hexadecimal digits of the digest.
    pub fn text(self) -> HexText<32> {
        self.into()
    }
}

impl From<HexText<32>> for TraceDigest {
    fn from(text: HexText<32>) -> Self {
        Self(text.bytes())
    }
}

impl From<TraceDigest> for HexText<32> {
    fn from(digest: TraceDigest) -> Self {
        Self::from_hash(&digest.0)
    }
}

impl fmt::Display for TraceDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl fmt::Debug for TraceDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl<const N: usize> HexText<N> {
    /// The first `N` digits of the SHA-256 of a text.
    ///
    /// # Panics
    /// If `N` is above 64.
    pub fn of(text: &str) -> Self {
        Self::read(&sha256(text.as_bytes())[..N]).expect("digits")
    }

    /// The first `N` digits of a hash with these bytes, `N / 2` or more.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn from_hash(hash: &[u8]) -> Self {
        Self::read(&hex(&hash[..N / 2])).expect("digits")
    }

    /// The text as `N` digits; `None` if it is no such text.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.as_bytes().try_into().ok()?;
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(digits))
    }

    /// The bytes of the hash, `B` of them: half as many as digits.
    pub fn bytes<const B: usize>(&self) -> [u8; B] {
        const { assert!(2 * B == N) };
        std::array::from_fn(|i| u8::from_str_radix(&self[2 * i..2 * i + 2], 16).expect("digits"))
    }

    /// The digits as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits")
    }
}

impl<const N: usize> Default for HexText<N> {
    fn default() -> Self {
        Self([b'0'; N])
    }
}

impl<const N: usize> Deref for HexText<N> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> fmt::Display for HexText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl<const N: usize> fmt::Debug for HexText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> PartialEq<str> for HexText<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl<const N: usize> Serialize for HexText<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for HexText<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::read(&text).ok_or_else(|| de::Error::custom(format!("{text} is not {N} digits")))
    }
}
