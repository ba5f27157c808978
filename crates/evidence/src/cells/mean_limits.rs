//! Intervals of the mean of a quantity.
//!
//! *Invariant*: an interval of a mean lies within the values that the quantity can have. Intervals of positive numbers
//! are on a logarithmic scale, which would take that of an accuracy above 1. So where more of a quantity is better, the
//! interval is that of its loss, which rankings and ratios compare: 1 minus the limits of the error rate.

use crate::stats::Summary;
use exactfed_runner::manifest::Quantity;

/// A function that finds the lower and the upper limit of the mean of a sample of numbers.
pub type Limits = fn(&[f64]) -> (f64, f64);

/// The lower and the upper limit of the mean of a quantity, as `limits` finds them from a sample of losses.
pub fn mean_limits(quantity: Quantity, sample: &[f64], limits: Limits) -> (f64, f64) {
    let losses: Vec<f64> = sample.iter().map(|value| quantity.loss(*value)).collect();
    let (low, high) = limits(&losses);
    quantity.limits_from_loss(low, high)
}

/// The mean, the standard deviation and the interval of a sample of a quantity.
pub fn summary(quantity: Quantity, sample: &[f64]) -> Summary {
    let of_sample = Summary::new(sample);
    let interval = if quantity.more_is_better() {
        mean_limits(quantity, sample, |losses| Summary::new(losses).interval)
    } else {
        // The losses are the sample itself.
        let (low, high) = of_sample.interval;
        quantity.limits_from_loss(low, high)
    };
    Summary { interval, ..of_sample }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::share;
    use exactfed_core::rng::Stream;

    /// The interval of the mean of a quantity in a sample.
    fn interval(quantity: Quantity, sample: &[f64]) -> (f64, f64) {
        summary(quantity, sample).interval
    }

    /// The accuracies on two instances, from which the logarithm of the accuracy gives the limits 0.303 and 97.5.
    #[test]
    fn the_interval_of_an_accuracy_is_that_of_its_error_rate() {
        let accuracies = [0.75, 0.705_555_555_555_555_5];
        let (low, high) = interval(Quantity::TestAccuracy, &accuracies);
        let errors = Summary::new(&accuracies.map(|accuracy| 1.0 - accuracy)).interval;
        assert_eq!((low, high), ((1.0 - errors.1).max(0.0), 1.0 - errors.0));
        assert!((0.0..0.7).contains(&low) && 0.75 < high && high <= 1.0, "{low} {high}");
        assert!(
            Summary::new(&accuracies).interval.1 > 1.0,
            "the logarithm of the accuracy does not fit"
        );
    }

    /// Runs without a mistake have an error rate of 0, which has no logarithm.
    #[test]
    fn intervals_of_fractions_are_within_what_fractions_can_be() {
        let (low, high) = interval(Quantity::Accuracy, &[1.0, 0.9, 1.0]);
        assert!(0.8 < low && low < 0.9 && high == 1.0, "{low} {high}");
        assert_eq!(interval(Quantity::Accuracy, &[1.0; 3]), (1.0, 1.0));
        assert_eq!(interval(Quantity::Accuracy, &[0.0, 0.0]), (0.0, 0.0));
        let (low, high) = interval(Quantity::AccuracySpread, &[0.1, 0.3]);
        assert!((0.0..0.1).contains(&low) && high == 0.5, "{low} {high}");
        assert_eq!(interval(Quantity::AccuracySpread, &[0.0, 0.3]), (0.0, 0.5));
        assert!(interval(Quantity::Accuracy, &[0.9]).0.is_nan());
    }

    /// Quantities without a largest value have the interval of the sample.
    #[test]
    fn other_quantities_have_the_interval_of_their_sample() {
        let sample = [0.2, 3.0, 0.7];
        assert_eq!(summary(Quantity::SqError, &sample), Summary::new(&sample));
        assert_eq!(summary(Quantity::TestLoss, &sample), Summary::new(&sample));
    }

    /// Each accuracy is the fraction of 40 records whose class is predicted, with a probability that varies
    /// over the instances around `expected`.
    #[test]
    fn the_interval_of_a_mean_accuracy_covers_it() {
        let mut rng = Stream::shared_instance(6);
        for (expected, size) in [(0.6, 3), (0.9, 5), (0.95, 20)] {
            let covered = share(2000, || {
                let mut sample = Vec::with_capacity(size);
                for _ in 0..size {
                    let varied = expected + 0.1 * (1.0 - expected) * rng.gaussian();
                    let right = (0..40).filter(|_| rng.uniform() < varied).count();
                    sample.push(right as f64 / 40.0);
                }
                let (low, high) = interval(Quantity::Accuracy, &sample);
                (low..=high).contains(&expected)
            });
            assert!(covered > 0.935, "{expected}, {size}: {covered}");
        }
    }
}
