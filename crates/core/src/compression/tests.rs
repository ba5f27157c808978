//! The moments of compressors by simulation, their bits, and their texts.

use super::*;
use crate::rng::{Purpose, Stream};
use crate::sample::{mean, standard_error};
use std::str::FromStr;

/// The compressor of a text.
fn compressor(text: &str) -> Compressor {
    text.parse().unwrap()
}

/// A stream that no other test uses.
fn stream() -> Stream {
    Stream::new(7, Purpose::ClientCompression, 0, 0, 0)
}

/// The texts of unbiased compressors of every kind and form.
const UNBIASED: [&str; 11] = [
    "identity",
    "rand-k:1",
    "rand-k:3:indices",
    "rand-k:9",
    "qsgd:1",
    "qsgd:4",
    "qsgd:3:max",
    "natural-dithering:1",
    "natural-dithering:3",
    "natural-dithering:4:max",
    "natural",
];

/// Vectors of five numbers: of equal and of different sizes, with zeros and small numbers, and with a single number.
const VECTORS: [[f64; 5]; 4] = [
    [1.0, -1.0, 1.0, 1.0, -1.0],
    [3.1, -0.02, 0.0, 1.7, -2.9],
    [0.0, 0.0, -0.3, 0.0, 0.0],
    [4.0 / 3.0, 2.0 / 3.0, -1.0 / 3.0, 0.01, -16.0 / 3.0],
];

/// Asserts that the mean of a sample is an exact value within four standard errors, and the error of the summation.
fn assert_mean(sample: &[f64], exact: f64, what: &str) {
    let off = (mean(sample) - exact).abs();
    let error = standard_error(sample);
    assert!(off <= 4.0 * error + 1e-11 * exact.abs(), "{what}: off by {off}, error {error}");
}

/// (u − |x|)(|x| − l) for a coordinate that is rounded at random to l or u, which are next to |x|: its variance.
fn rounding_variance(x: f64, levels: &[f64]) -> f64 {
    let size = x.abs();
    let below = levels.iter().copied().filter(|level| *level <= size).fold(0.0, f64::max);
    let above = levels.iter().copied().filter(|level| *level >= size).fold(f64::MAX, f64::min);
    if above == f64::MAX { 0.0 } else { (above - size) * (size - below) }
}

/// E ‖C(x) − x‖² of an unbiased compressor, from the levels to which it rounds.
fn variance(of: &Compressor, x: &[f64]) -> f64 {
    let square: f64 = x.iter().map(|x| x * x).sum();
    let norm_of = |norm: DitheringNorm| match norm {
        DitheringNorm::Euclidean => square.sqrt(),
        DitheringNorm::Max => x.iter().fold(0.0, |most: f64, x| most.max(x.abs())),
    };
    let levels: Vec<f64> = match of {
        Compressor::RandK(_) => return of.omega(x.len()).unwrap() * square,
        Compressor::Qsgd(Qsgd { levels, norm }) => {
            let s = levels.get();
            (0..=s).map(|level| norm_of(*norm) * f64::from(level) / f64::from(s)).collect()
        }
        Compressor::NaturalDithering(NaturalDithering { levels, norm }) => {
            let powers = (0..levels.get() as i32).map(|power| norm_of(*norm) * 0.5_f64.powi(power));
            powers.chain([0.0]).collect()
        }
        Compressor::Natural(_) => (-60..10).map(|power| 2.0_f64.powi(power)).collect(),
        _ => return 0.0,
    };
    x.iter().map(|x| rounding_variance(*x, &levels)).sum()
}

/// The mean of C(x) is x, and E ‖C(x) − x‖² is what follows from the levels, which is at most ω ‖x‖²: for Rand-k equal
/// to it.
#[test]
fn unbiased_compressors_have_their_mean_and_variance() {
    let mut draws = stream();
    for text in UNBIASED {
        let of = compressor(text);
        assert!(of.is_unbiased());
        for x in &VECTORS {
            let mut out = vec![0.0; 5];
            let mut coordinates = vec![Vec::new(); 5];
            let mut squares = Vec::new();
            for _ in 0..20_000 {
                of.apply(x, &mut draws, &mut out);
                squares.push(crate::kernel::squared_distance(&out, x));
                coordinates.iter_mut().zip(&out).for_each(|(all, value)| all.push(*value));
            }
            for (i, (all, x)) in coordinates.iter().zip(x).enumerate() {
                assert_mean(all, *x, &format!("{text}, coordinate {i}"));
            }
            let exact = variance(&of, x);
            assert_mean(&squares, exact, &format!("{text}, variance"));
            let square: f64 = x.iter().map(|x| x * x).sum();
            assert!(exact <= of.omega(5).unwrap() * square * (1.0 + 1e-12), "{text}: {x:?}");
        }
    }
}

/// ω is reached by some vector: that of natural compression by 4/3, and that of dithering by the maximum nearly by a
/// large coordinate with many small ones.
#[test]
fn omega_is_reached() {
    let natural = compressor("natural");
    assert!((variance(&natural, &[4.0 / 3.0]) / (16.0 / 9.0) - 0.125).abs() < 1e-12);
    // Half of it is one coordinate of size 1, and the other half 10 000 coordinates whose squares add up to 1.
    let small = 0.01;
    let mut x = vec![small; 10_000];
    x[0] = 1.0;
    let square: f64 = x.iter().map(|x| x * x).sum();
    let of = compressor("qsgd:1:max");
    let ratio = variance(&of, &x) / square / of.omega(10_000).unwrap();
    assert!(ratio > 0.97 && ratio <= 1.0, "{ratio}");
}

#[test]
fn rand_k_draws_each_pair_of_coordinates_equally_often() {
    let of = compressor("rand-k:2");
    let mut draws = stream();
    let mut out = [0.0; 4];
    let mut both = Vec::new();
    for _ in 0..50_000 {
        of.apply(&[1.0; 4], &mut draws, &mut out);
        assert!(out.iter().all(|x| *x == 0.0 || *x == 2.0));
        both.push(f64::from(u8::from(out[0] != 0.0 && out[3] != 0.0)));
    }
    // k (k − 1)/(d (d − 1)).
    assert_mean(&both, 2.0 / 12.0, "a pair of coordinates");
}

#[test]
fn biased_compressors_send_what_they_say() {
    let mut draws = stream();
    let x = [0.5, -3.0, 0.0, 3.0, -1.0];
    let mut out = [9.0; 5];
    let top = compressor("top-k:2");
    top.apply(&x, &mut draws, &mut out);
    assert_eq!(out, [0.0, -3.0, 0.0, 3.0, 0.0]);
    compressor("top-k:1").apply(&x, &mut draws, &mut out);
    assert_eq!(out, [0.0, -3.0, 0.0, 0.0, 0.0], "of equal ones the first");
    compressor("top-k:9").apply(&x, &mut draws, &mut out);
    assert_eq!(out, x);
    compressor("sign").apply(&x, &mut draws, &mut out);
    assert_eq!(out, [1.5, -1.5, 1.5, 1.5, -1.5]);
    for biased in [top, compressor("sign")] {
        assert!(!biased.is_unbiased() && biased.omega(5).is_none());
    }
}

/// Every compressor sends 0 as 0, and what is not finite leaves something that is not finite.
#[test]
fn zero_stays_zero_and_divergence_stays_visible() {
    let mut draws = stream();
    for text in UNBIASED.iter().chain(&["top-k:1", "sign"]).filter(|text| **text != "rand-k:1") {
        let of = compressor(text);
        let mut out = [9.0; 3];
        of.apply(&[0.0; 3], &mut draws, &mut out);
        assert_eq!(out.map(f64::abs), [0.0; 3], "{text}");
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            of.apply(&[1.0, bad, 2.0], &mut draws, &mut out);
            assert!(out.iter().any(|x| !x.is_finite()), "{text} of {bad}: {out:?}");
        }
    }
    // The least numbers of double precision are rounded to 0 or to the least normal number.
    for _ in 0..100 {
        let mut out = [0.0; 2];
        compressor("natural").apply(&[3e-310, -3e-310], &mut draws, &mut out);
        assert!(out.iter().all(|x| [0.0, f64::MIN_POSITIVE].contains(&x.abs())), "{out:?}");
    }
}

/// The bits of messages of ten numbers, by hand.
#[test]
fn bits_are_those_of_the_formulas() {
    for (text, bits) in [
        ("identity", 640),
        ("rand-k:3", 192),
        ("rand-k:3:indices", 288),
        ("rand-k:12", 640),
        ("top-k:3", 288),
        ("qsgd:1", 64 + 10 * 2),
        ("qsgd:3", 64 + 10 * 3),
        ("qsgd:4:max", 64 + 10 * 4),
        ("natural-dithering:8", 64 + 10 * 5),
        ("natural", 120),
        ("sign", 74),
    ] {
        assert_eq!(compressor(text).bits(10), bits, "{text}");
    }
}

#[test]
fn texts_are_read_and_written() {
    for info in COMPRESSORS {
        let number = if info.number.is_some() { ":2" } else { "" };
        let text = format!("{}{number}", info.name);
        let plain = compressor(&text);
        assert_eq!((plain.to_string(), plain.info().name), (text.clone(), info.name));
        let Some(word) = info.word else { continue };
        let text = format!("{text}:{word}");
        let other = compressor(&text);
        assert_eq!(other.to_string(), text);
        assert_ne!(other, plain);
    }
    assert_eq!(compressor(" rand-k : 3 "), compressor("rand-k:3"));
    for (text, message) in [
        ("rank-k:3", "\"rank-k\" is no compressor"),
        ("rand-k", "rand-k takes a whole number from 1 to 4294967295, as in rand-k:3"),
        ("top-k:0", "top-k takes a whole number from 1 to 4294967295, as in top-k:3"),
        ("qsgd:1.5", "qsgd takes a whole number from 1 to 4294967295, as in qsgd:3"),
        (
            "natural-dithering:1001",
            "natural-dithering takes a whole number from 1 to 1000, as in natural-dithering:3",
        ),
        ("qsgd:4:l2", "qsgd does not take \"l2\": write qsgd:S[:max]"),
        ("natural:4", "natural does not take \"4\": write natural"),
        ("top-k:4:indices:x", "top-k does not take \"indices:x\": write top-k:K"),
    ] {
        assert_eq!(Compressor::from_str(text).unwrap_err().to_string(), message);
    }
    assert!(CompressorError::allowed(false).contains("rand-k:K[:indices], top-k:K, qsgd:S[:max]"));
    let unbiased = "identity, rand-k:K[:indices], qsgd:S[:max], natural-dithering:S[:max], natural";
    assert_eq!(CompressorError::allowed(true), unbiased);
    assert_eq!(Compressor::unbiased_from_str("natural"), Ok(compressor("natural")));
    let biased = Compressor::unbiased_from_str("top-k: 2").unwrap_err().to_string();
    assert_eq!(biased, "top-k:2 is biased, and the compressor must be unbiased");
}
