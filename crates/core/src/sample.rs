//! Statistics of samples, for the tests of this crate.

/// Sample mean.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// Standard error of the sample mean.
pub fn standard_error(sample: &[f64]) -> f64 {
    let (n, mean) = (sample.len() as f64, mean(sample));
    (sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt()
}
