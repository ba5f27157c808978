//! Compressors as texts, such as `rand-k:3` or `qsgd:4:max`: a name, for most a number, and for some a word.

use super::{
    COMPRESSORS, Compressor, CompressorInfo, DitheringNorm, NaturalDithering, Qsgd, RandK, TopK,
};
use std::fmt::{self, Display, Formatter};
use std::num::NonZeroU32;
use std::str::FromStr;
use thiserror::Error;

/// Why a text is no compressor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompressorError {
    /// The name is not in the list.
    #[error("{name:?} is no compressor")]
    Name {
        /// The name.
        name: String,
    },
    /// The compressor is biased, where an unbiased one is needed.
    #[error("{compressor} is biased, and the compressor must be unbiased")]
    Biased {
        /// The text of the compressor.
        compressor: String,
    },
    /// The number is missing, is not whole or is out of range.
    #[error("{name} takes a whole number from 1 to {most}, as in {name}:3")]
    Number {
        /// The name of the compressor.
        name: &'static str,
        /// The largest number that it takes.
        most: u32,
    },
    /// Something follows that the compressor does not have.
    #[error("{name} does not take {found:?}: write {form}")]
    Rest {
        /// The name of the compressor.
        name: &'static str,
        /// What follows.
        found: String,
        /// The form of its texts.
        form: String,
    },
}

impl CompressorError {
    /// The forms of the texts of all compressors, or of all unbiased ones, for a message that says what is allowed.
    pub fn allowed(must_be_unbiased: bool) -> String {
        let allowed = COMPRESSORS.iter().filter(|info| info.omega.is_some() || !must_be_unbiased);
        let forms: Vec<String> = allowed.map(|info| info.form()).collect();
        forms.join(", ")
    }
}

impl CompressorInfo {
    /// The form of the compressor's texts, such as `rand-k:K` or `rand-k:K[:indices]`; what is in brackets may be left
    /// out.
    pub fn form(&self) -> String {
        let number = self.number.map_or(String::new(), |number| format!(":{}", number.letter));
        let word = self.word.map_or(String::new(), |word| format!("[:{word}]"));
        format!("{}{number}{word}", self.name)
    }

    /// Reads the number that follows the name.
    ///
    /// # Errors
    /// If it is missing, not whole or out of range.
    fn read_number(&self, text: Option<&str>, most: u32) -> Result<NonZeroU32, CompressorError> {
        text.and_then(|text| text.parse::<NonZeroU32>().ok())
            .filter(|number| number.get() <= most)
            .ok_or(CompressorError::Number { name: self.name, most })
    }
}

impl Compressor {
    /// Reads a compressor that must be unbiased.
    ///
    /// # Errors
    /// If the text is no compressor, or that of a biased one.
    pub fn unbiased_from_str(text: &str) -> Result<Self, CompressorError> {
        let compressor: Self = text.parse()?;
        if compressor.is_unbiased() {
            Ok(compressor)
        } else {
            Err(CompressorError::Biased { compressor: compressor.to_string() })
        }
    }
}

impl FromStr for Compressor {
    type Err = CompressorError;

    /// Reads a compressor. Its parts are separated by colons, around which there may be spaces.
    fn from_str(text: &str) -> Result<Self, CompressorError> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let Some(info) = COMPRESSORS.iter().find(|info| info.name == name) else {
            return Err(CompressorError::Name { name: name.to_owned() });
        };
        let number = match info.number {
            Some(number) => info.read_number(parts.next(), number.most)?,
            None => NonZeroU32::MIN,
        };
        let rest: Vec<&str> = parts.collect();
        match (rest.as_slice(), info.word) {
            ([], _) => Ok((info.make)(number, false)),
            ([found], Some(word)) if *found == word => Ok((info.make)(number, true)),
            _ => Err(CompressorError::Rest {
                name: info.name,
                found: rest.join(":"),
                form: info.form(),
            }),
        }
    }
}

impl Display for Compressor {
    /// Writes the text from which the compressor is read again, without spaces.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let info = self.info();
        f.write_str(info.name)?;
        let has_word = match self {
            Self::RandK(RandK { size, sends_indices }) => {
                write!(f, ":{size}")?;
                *sends_indices
            }
            Self::TopK(TopK { size }) => {
                write!(f, ":{size}")?;
                false
            }
            Self::Qsgd(Qsgd { levels, norm })
            | Self::NaturalDithering(NaturalDithering { levels, norm }) => {
                write!(f, ":{levels}")?;
                *norm == DitheringNorm::Max
            }
            Self::Identity(_) | Self::Natural(_) | Self::Sign(_) => false,
        };
        match info.word {
            Some(word) if has_word => write!(f, ":{word}"),
            _ => Ok(()),
        }
    }
}
