//! The features of a file, dense or sparse: what is known of their columns from passes over the
//! numbers that are stored.

use exactfed_core::kernel::SparseRows;
use std::borrow::Cow;

/// The features of records, row by row.
pub enum FeatureRows<'a> {
    /// n rows of d numbers.
    Dense {
        /// The numbers n of records and d of features.
        size: (usize, usize),
        /// The numbers of all records, d for each.
        numbers: Cow<'a, [f64]>,
    },
    /// Rows of which only some numbers are stored; the others are 0.
    Sparse(Cow<'a, SparseRows>),
}

/// The mean and the standard deviation of a feature over all records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureMoments {
    pub mean: f64,
    pub deviation: f64,
}

/// The values of a feature that were looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundValues {
    /// How many there are.
    pub count: usize,
    /// The row, from 0, that has the first of them.
    pub row: usize,
    /// The first of them.
    pub value: f64,
}

impl FeatureRows<'_> {
    /// The numbers n of records and d of features.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Self::Dense { size, .. } => *size,
            Self::Sparse(rows) => (rows.len(), rows.dim()),
        }
    }

    /// Calls `each` with the number of the feature and the value, for every number that is stored of a row: for all d
    /// of dense rows, and for those of sparse rows that are not left out as 0.
    fn each_in_row(&self, row: usize, mut each: impl FnMut(usize, f64)) {
        match self {
            Self::Dense { size: (_, d), numbers } => {
                let numbers = &numbers[row * d..][..*d];
                numbers.iter().enumerate().for_each(|(j, x)| each(j, *x));
            }
            Self::Sparse(rows) => rows.row(row).iter().for_each(|(j, x)| each(j, x)),
        }
    }

    /// Calls `each` with the number of the feature and the value, for every number that is stored, row by row.
    fn each(&self, mut each: impl FnMut(usize, f64)) {
        (0..self.size().0).for_each(|row| self.each_in_row(row, &mut each));
    }

    /// How many numbers of all records are not 0.
    pub fn nonzeros(&self) -> usize {
        let mut sum = 0;
        self.each(|_, x| sum += usize::from(x != 0.0));
        sum
    }

    /// For each feature the values that are `wanted`; `None` if there are none. Values that are not stored, which are
    /// 0, are not looked at.
    pub fn find(&self, wanted: impl Fn(f64) -> bool) -> Vec<Option<FoundValues>> {
        let mut found: Vec<Option<FoundValues>> = vec![None; self.size().1];
        for row in 0..self.size().0 {
            self.each_in_row(row, |j, value| {
                if wanted(value) {
                    found[j].get_or_insert(FoundValues { count: 0, row, value }).count += 1;
                }
            });
        }
        found
    }

    /// How many values of each feature are missing, which NaN stands for.
    pub fn lacking(&self) -> Vec<usize> {
        let mut counts = vec![0; self.size().1];
        self.each(|j, x| counts[j] += usize::from(x.is_nan()));
        counts
    }

    /// For each record whether a feature of it is missing.
    pub fn lacking_rows(&self) -> Vec<bool> {
        let mut lacks = vec![false; self.size().0];
        for (row, lacks) in lacks.iter_mut().enumerate() {
            self.each_in_row(row, |_, x| *lacks |= x.is_nan());
        }
        lacks
    }

    /// The features of the records with these numbers, in this order.
    pub fn take(&self, rows: &[usize]) -> FeatureRows<'static> {
        match self {
            Self::Dense { size: (_, d), numbers } => {
                let taken = rows.iter().flat_map(|row| &numbers[row * d..][..*d]);
                let numbers = Cow::Owned(taken.copied().collect());
                FeatureRows::Dense { size: (rows.len(), *d), numbers }
            }
            Self::Sparse(all) => {
                FeatureRows::Sparse(Cow::Owned(all.selected(rows.iter().map(|row| (*row, 1.0)))))
            }
        }
    }

    /// The features with the mean of a feature over the records that have a value of it where it is missing. It stays
    /// missing if no record has one.
    pub fn with_means(&self) -> FeatureRows<'static> {
        let (n, d) = self.size();
        let mut means = vec![0.0; d];
        self.each(|j, x| means[j] += if x.is_nan() { 0.0 } else { x });
        let known = self.lacking().into_iter().map(|lacking| (n - lacking) as f64);
        means.iter_mut().zip(known).for_each(|(mean, known)| *mean /= known);
        match self {
            Self::Dense { size, numbers } => {
                let mut filled = numbers.to_vec();
                let places = filled.iter_mut().zip(means.iter().cycle());
                places.filter(|(x, _)| x.is_nan()).for_each(|(x, mean)| *x = *mean);
                FeatureRows::Dense { size: *size, numbers: Cow::Owned(filled) }
            }
            Self::Sparse(all) => {
                let mut filled = all.clone().into_owned();
                filled.map_stored(|j, x| if x.is_nan() { means[j] } else { x });
                FeatureRows::Sparse(Cow::Owned(filled))
            }
        }
    }

    /// How many records do not store each feature, where it is 0.
    fn unstored(&self) -> Vec<usize> {
        let (n, d) = self.size();
        let mut counts = vec![n; d];
        self.each(|j, _| counts[j] -= 1);
        counts
    }

    /// The mean and the standard deviation of each feature, by passes over the stored numbers alone; NaN where values
    /// are missing, and not finite where sums of values are beyond double precision.
    pub fn moments(&self) -> Vec<FeatureMoments> {
        let (n, d) = self.size();
        let mut means = vec![0.0; d];
        self.each(|j, x| means[j] += x);
        means.iter_mut().for_each(|mean| *mean /= n as f64);
        let plain = self.variances(&means, &vec![1.0; d]);
        let mut deviations: Vec<f64> = plain.iter().map(|variance| libm::sqrt(*variance)).collect();
        if !plain.iter().all(|variance| variance.is_normal()) {
            // Squares are too small or too large, or the feature is constant: squares are taken in units of the largest
            // difference, as where a dataset is standardised.
            let units = self.largest_differences(&means);
            let scaled = self.variances(&means, &units);
            for j in (0..d).filter(|j| !plain[*j].is_normal()) {
                let is_constant = means[j].is_finite() && units[j] == 0.0;
                deviations[j] = if is_constant { 0.0 } else { units[j] * libm::sqrt(scaled[j]) };
            }
        }
        let pairs = means.into_iter().zip(deviations);
        pairs.map(|(mean, deviation)| FeatureMoments { mean, deviation }).collect()
    }

    /// The variance of each feature around its mean, when both are measured in its unit.
    fn variances(&self, means: &[f64], units: &[f64]) -> Vec<f64> {
        let mut squares: Vec<f64> = Vec::with_capacity(means.len());
        for (j, zeros) in self.unstored().into_iter().enumerate() {
            let mean = means[j] / units[j];
            // Without zeros a mean beyond double precision would make 0 · ∞.
            squares.push(if zeros == 0 { 0.0 } else { zeros as f64 * mean * mean });
        }
        self.each(|j, x| {
            let difference = (x - means[j]) / units[j];
            squares[j] += difference * difference;
        });
        squares.into_iter().map(|square| square / self.size().0 as f64).collect()
    }

    /// The largest |x − mean| of each feature; NaN does not count.
    fn largest_differences(&self, means: &[f64]) -> Vec<f64> {
        let zeros = self.unstored().into_iter().zip(means);
        let mut most: Vec<f64> =
            zeros.map(|(zeros, mean)| if zeros == 0 { 0.0 } else { mean.abs() }).collect();
        self.each(|j, x| most[j] = most[j].max((x - means[j]).abs()));
        most
    }

    /// How many records have another value of each feature than its most frequent one. This is exact if more than half
    /// of the records have that value; otherwise the number is half of all records or more. Where few records differ,
    /// a test set that holds them all would leave a constant feature.
    pub fn rarer(&self) -> Vec<usize> {
        let zeros = self.unstored();
        // A majority vote: each value cancels one vote for another value, and the candidate that is left is the only
        // value that more than half of the records can have. Zeros that are not stored vote last.
        let mut votes: Vec<(f64, usize)> = vec![(f64::NAN, 0); self.size().1];
        let mut vote = |j: usize, x: f64, times: usize| {
            let (most, lead) = &mut votes[j];
            if x == *most {
                *lead += times;
            } else if times > *lead {
                (*most, *lead) = (x, times - *lead);
            } else {
                *lead -= times;
            }
        };
        self.each(|j, x| vote(j, x, 1));
        zeros.iter().enumerate().for_each(|(j, zeros)| vote(j, 0.0, *zeros));
        let others = zeros.iter().zip(&votes);
        let mut rarer: Vec<usize> =
            others.map(|(zeros, (most, _))| if *most == 0.0 { 0 } else { *zeros }).collect();
        self.each(|j, x| rarer[j] += usize::from(x != votes[j].0));
        rarer
    }

    /// The largest ‖x‖² over all records x, counting the `kept` features alone. Step sizes depend on it.
    pub fn largest_square(&self, kept: &[usize]) -> f64 {
        let mut counts = vec![false; self.size().1];
        kept.iter().for_each(|j| counts[*j] = true);
        (0..self.size().0)
            .map(|row| {
                let mut sum = 0.0;
                self.each_in_row(row, |j, x| sum += if counts[j] { x * x } else { 0.0 });
                sum
            })
            .fold(0.0, f64::max)
    }

    /// The largest ‖x‖² over all records x, counting the `kept` features alone, each shifted and scaled to mean 0 and
    /// variance 1 by the `moments` of all features; all of `kept` must vary.
    pub fn largest_standard_square(&self, kept: &[usize], moments: &[FeatureMoments]) -> f64 {
        let mut most = 0.0_f64;
        self.each_standard(kept, moments, |row: &[f64]| {
            most = most.max(row.iter().fold(0.0, |sum, x| sum + x * x))
        });
        most
    }

    /// Calls `each` with the `kept` features of every record, shifted and scaled to mean 0 and
    /// variance 1 by the `moments` of all features. Features that do not vary must not be among
    /// `kept`: they would be divided by 0.
    pub fn each_standard(
        &self,
        kept: &[usize],
        moments: &[FeatureMoments],
        mut each: impl FnMut(&[f64]),
    ) {
        let mut places = vec![None; self.size().1];
        kept.iter().enumerate().for_each(|(place, j)| places[*j] = Some(place));
        let zeros: Vec<f64> = kept.iter().map(|j| standardised(0.0, moments[*j])).collect();
        let mut all = zeros.clone();
        for row in 0..self.size().0 {
            all.copy_from_slice(&zeros);
            self.each_in_row(row, |j, x| {
                if let Some(place) = places[j] {
                    all[place] = standardised(x, moments[j]);
                }
            });
            each(&all);
        }
    }
}

/// A value of a feature with these moments, shifted and scaled to mean 0 and variance 1.
fn standardised(x: f64, moments: FeatureMoments) -> f64 {
    (x - moments.mean) / moments.deviation
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A feature of which most are 3, one of which most are 0, one of which all differ, and one
    /// that is always 0.
    #[test]
    fn dense_and_sparse_features_are_described_the_same() {
        let numbers: Vec<f64> = (0..9)
            .flat_map(|i| {
                let often = if i % 3 == 0 { 0.0 } else { 3.0 };
                [often, f64::from(i / 7), f64::from(i), 0.0]
            })
            .collect();
        let rows = SparseRows::from_dense(4, &numbers);
        let dense = FeatureRows::Dense { size: (9, 4), numbers: Cow::Borrowed(&numbers) };
        let sparse = FeatureRows::Sparse(Cow::Borrowed(&rows));
        assert_eq!((dense.size(), dense.nonzeros()), (sparse.size(), sparse.nonzeros()));
        assert_eq!(dense.rarer()[3], 0);
        for features in [&dense, &sparse] {
            assert_eq!(features.rarer()[..2], [3, 2]);
            assert!(features.rarer()[2] >= 5);
            assert_eq!(features.find(f64::is_nan), [None; 4]);
            let large = FoundValues { count: 3, row: 6, value: 6.0 };
            assert_eq!(features.find(|x| x > 5.0), [None, None, Some(large), None]);
            assert_eq!(features.largest_square(&[0, 2, 3]), 9.0 + 64.0);
        }
        let moments = dense.moments();
        let same = sparse.moments();
        for (one, other) in moments.iter().zip(&same) {
            assert_eq!(one.mean, other.mean);
            assert!((one.deviation - other.deviation).abs() < 1e-14);
        }
        assert_eq!(moments[0], FeatureMoments { mean: 2.0, deviation: libm::sqrt(2.0) });
        let standard = |features: &FeatureRows<'_>| {
            let mut all = Vec::new();
            features.each_standard(&[0, 2], &moments, |row| all.extend_from_slice(row));
            all
        };
        assert_eq!(standard(&dense), standard(&sparse));
        assert_eq!(standard(&dense)[2], 1.0 / libm::sqrt(2.0));
    }

    /// Numbers whose squares are 0 or infinite in double precision have the deviation of the same numbers in another
    /// unit, dense and sparse.
    #[test]
    fn deviations_of_very_small_and_very_large_numbers() {
        for unit in [1e-200, 1.0, 1e200] {
            let numbers = [3.0 * unit, 0.0, 0.0, 1.0 * unit];
            let rows = SparseRows::from_dense(1, &numbers);
            let dense = FeatureRows::Dense { size: (4, 1), numbers: Cow::Borrowed(&numbers) };
            for features in [&dense, &FeatureRows::Sparse(Cow::Borrowed(&rows))] {
                let [FeatureMoments { mean, deviation }] = features.moments()[..] else { panic!() };
                assert_eq!(mean, unit);
                assert!((deviation / unit / libm::sqrt(1.5) - 1.0).abs() < 1e-15, "{deviation}");
            }
        }
        let two = [1.7e308, 1.7e308, 0.5];
        let dense = FeatureRows::Dense { size: (3, 1), numbers: Cow::Borrowed(&two) };
        assert!(!dense.moments()[0].deviation.is_finite());
        let unknown = [1.0, f64::NAN, 2.0];
        let dense = FeatureRows::Dense { size: (3, 1), numbers: Cow::Borrowed(&unknown) };
        assert!(dense.moments()[0].deviation.is_nan());
    }
}
