//! Compressors in Python, and the memories of clients whose messages are compressed.

use exactfed::compression::{Compressor, CompressorError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::fmt::Display;

/// A compressor: an operator that shortens a message, with the bits that the message then has.
///
/// :meth:`Clients.compress` applies it. Where a manifest gives it, it is a text such as
/// ``compressor = "rand-k:3"``; a parameter of an algorithm with the annotation ``Compressor`` is
/// such a key, and with ``UnbiasedCompressor`` one that refuses biased compressors.
/// docs/EXTENDING.md has the list with all formulas.
///
/// Parameters
/// ----------
/// text
///     ``"identity"``, ``"rand-k:K"``, ``"top-k:K"``, ``"qsgd:S"``, ``"natural-dithering:S"``,
///     ``"natural"`` or ``"sign"``; ``"rand-k:K:indices"``, ``"qsgd:S:max"`` and
///     ``"natural-dithering:S:max"`` are other forms.
///
/// Raises
/// ------
/// ValueError
///     If the text is no compressor.
///
/// Examples
/// --------
/// >>> import exactfed as ef
/// >>> ef.Compressor("rand-k:2") == ef.rand_k(2)
/// True
/// >>> ef.rand_k(2).omega(10), ef.rand_k(2).bits(10)
/// (4.0, 128)
#[pyclass(frozen, eq, hash, module = "exactfed", name = "Compressor")]
#[derive(PartialEq, Eq, Hash)]
pub struct PythonCompressor(Compressor);

#[pymethods]
impl PythonCompressor {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        Ok(Self(parsed(text)?))
    }

    /// The name of its kind.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.info().name
    }

    /// Whether E C(x) = x for every x.
    #[getter]
    fn unbiased(&self) -> bool {
        self.0.is_unbiased()
    }

    /// Return ω in dimension d, E ‖C(x) − x‖² ≤ ω ‖x‖²; None for a biased compressor.
    fn omega(&self, d: usize) -> Option<f64> {
        self.0.omega(d)
    }

    /// Return the bits of a compressed vector of d numbers.
    fn bits(&self, d: usize) -> u64 {
        self.0.bits(d)
    }

    /// How many of d coordinates Rand-k draws and sends; `None` for other compressors. For the tracer.
    fn _drawn(&self, d: usize) -> Option<usize> {
        match &self.0 {
            Compressor::RandK(rand_k) => Some(rand_k.sent(d)),
            _ => None,
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Compressor(\"{}\")", self.0)
    }

    /// What makes it again where it is unpickled.
    fn __getnewargs__(&self) -> (String,) {
        (self.0.to_string(),)
    }
}

/// Reads a compressor from its text.
///
/// # Errors
/// If it is none.
fn parsed(text: &str) -> PyResult<Compressor> {
    text.parse().map_err(|error| {
        PyValueError::new_err(match error {
            CompressorError::Name { .. } => {
                format!("{error}; compressors are {}", CompressorError::allowed(false))
            }
            _ => error.to_string(),
        })
    })
}

/// Reads an argument that is a compressor, or the text of one.
///
/// # Errors
/// If it is neither.
pub fn compressor(value: &Bound<'_, PyAny>) -> PyResult<Compressor> {
    if let Ok(given) = value.cast::<PythonCompressor>() {
        return Ok(given.get().0);
    }
    let text: String = value.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "compressor must be a Compressor or a text, not {}",
            value.get_type()
        ))
    })?;
    parsed(&text)
}

/// The compressor of a name, a number and perhaps a word.
fn with_number(name: &str, number: impl Display, word: Option<&str>) -> PyResult<PythonCompressor> {
    let word = word.map_or(String::new(), |word| format!(":{word}"));
    PythonCompressor::new(&format!("{name}:{number}{word}"))
}

/// The word for a norm in the text of a compressor.
///
/// # Errors
/// If it is no norm of dithering.
fn norm_word(norm: &str) -> PyResult<Option<&'static str>> {
    match norm {
        "euclidean" => Ok(None),
        "max" => Ok(Some("max")),
        _ => Err(PyValueError::new_err(format!(
            "the norm is \"euclidean\" or \"max\", not {norm:?}"
        ))),
    }
}

/// Return the compressor that changes nothing: 64 bits a number.
#[pyfunction]
pub fn identity() -> PyResult<PythonCompressor> {
    PythonCompressor::new("identity")
}

/// Return Rand-k: k coordinates, drawn without replacement, times d/k. It is unbiased with ω = d/k − 1.
///
/// A message has 64 k bits, since both sides draw the indices from a seed that they share; with
/// ``indices`` they are sent, and it has (64 + 32) k bits. Where k is d or more, all are sent.
#[pyfunction]
#[pyo3(signature = (k, *, indices = false))]
pub fn rand_k(k: i64, indices: bool) -> PyResult<PythonCompressor> {
    with_number("rand-k", k, indices.then_some("indices"))
}

/// Return Top-k: the k coordinates of the largest absolute values. It is biased.
///
/// A message has (64 + 32) k bits. Where k is d or more, all are sent.
#[pyfunction]
pub fn top_k(k: i64) -> PyResult<PythonCompressor> {
    with_number("top-k", k, None)
}

/// Return QSGD (Alistarh et al. 2017): dithering with the levels 0, 1/s, 2/s, …, 1 of the norm.
///
/// It is unbiased with ω = min(d/s², √d/s), or min(d/(4s²), (1 + √d)/(2s)) where the norm is max |x_i|.
/// A message has 64 + d (1 + ⌈log₂(s + 1)⌉) bits: the norm, and a sign and a level of each coordinate.
///
/// Parameters
/// ----------
/// levels
///     s, the number of levels above 0.
/// norm
///     ``"euclidean"`` or ``"max"``.
#[pyfunction]
#[pyo3(signature = (levels, *, norm = "euclidean"))]
pub fn qsgd(levels: i64, norm: &str) -> PyResult<PythonCompressor> {
    with_number("qsgd", levels, norm_word(norm)?)
}

/// Return natural dithering (Horváth et al. 2019): as :func:`qsgd`, with the levels 0, 2^(1−s), …, 1/2, 1.
///
/// It is unbiased with ω = 1/8 + √d 2^(1−s) min(1, √d 2^(1−s)). A message has the bits of
/// :func:`qsgd`.
#[pyfunction]
#[pyo3(signature = (levels, *, norm = "euclidean"))]
pub fn natural_dithering(levels: i64, norm: &str) -> PyResult<PythonCompressor> {
    with_number("natural-dithering", levels, norm_word(norm)?)
}

/// Return natural compression (Horváth et al. 2019): each coordinate becomes a power of two next to it.
///
/// It is unbiased with ω = 1/8. A message has 12 d bits: a sign and an exponent of each coordinate.
#[pyfunction]
pub fn natural() -> PyResult<PythonCompressor> {
    PythonCompressor::new("natural")
}

/// Return the scaled sign: the mean of all |x_i| times the sign of each coordinate. It is biased.
///
/// A message has 64 + d bits. The sign of 0 is 1.
#[pyfunction]
pub fn sign() -> PyResult<PythonCompressor> {
    PythonCompressor::new("sign")
}
