//! Which records are the test set: those that a column marks, a fraction that is drawn from all records alike, or
//! one that is drawn within each class or each client.

use super::ranks::{number_of_classes, ranks};
use super::records::Records;
use super::settings::{Dataset, MissingValues, TestGroups, TestRecords};
use crate::problem::fault::Fault;
use crate::rng::{Purpose, Stream};
use std::collections::{BTreeMap, BTreeSet};

/// What the labels of records are to a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelKind {
    /// The names of classes, each of which clients must hold to learn it.
    Classes,
    /// Numbers to fit.
    Numbers,
}

/// The records that a draw of the test set is about.
pub(super) struct TestDraw<'a> {
    /// All records, before any is held out.
    pub records: &'a Records,
    /// What their labels are.
    pub labels: LabelKind,
    /// For each client the indices of its records, where records are partitioned before the draw.
    pub parts: Option<&'a [Vec<usize>]>,
    /// The seed of the instance.
    pub seed: u64,
}

impl Dataset {
    /// For each record whether it belongs to the test set, which is drawn or marked by a column; `None` if the
    /// settings ask for no test set. Only a drawn test set depends on the seed.
    ///
    /// # Errors
    /// A mark that is neither yes nor no; labels that are no classes, or too many, for a draw within classes.
    pub(super) fn test_records(&self, draw: &TestDraw<'_>) -> Result<Option<Vec<bool>>, Fault> {
        let records = draw.records;
        let n = records.count();
        let fraction = match (&self.test, &records.marks) {
            (Some(TestRecords::Fraction(fraction)), _) => *fraction,
            (Some(TestRecords::Column(_)), Some(marks)) => {
                let marked: Result<Vec<bool>, Fault> =
                    (0..n).map(|i| self.is_marked(marks, i)).collect();
                return marked.map(Some);
            }
            _ => return Ok(None),
        };
        let count = ((fraction * n as f64 + 0.5) as usize).clamp(1, n);
        // This stream draws nothing else: the others are partitioned as if the file held them alone.
        let mut rng = Stream::new(draw.seed, Purpose::SharedInstance, 2, 0, 0);
        let Some(within) = self.test_within else {
            let mut held_out = vec![false; n];
            rng.distinct(n, count).into_iter().for_each(|i| held_out[i] = true);
            return Ok(Some(held_out));
        };
        let order = rng.distinct(n, n);
        let kept = self.kept_for_training(draw, &order);
        let groups = match (within, draw.parts) {
            (TestGroups::Clients, Some(parts)) => group_of_each(parts, n),
            (TestGroups::Clients, None) => vec![0; n],
            (TestGroups::Classes, _) => ranks(&records.labels),
        };
        Ok(Some(drawn_within(&groups, &kept, &order, count)))
    }

    /// For each record whether it must stay with its client, so that no client, class, category or feature is lost to
    /// the test set: the first record, in the random `order` of all, of each client that is known before the draw, of
    /// each class and of each category, and, where features are standardised or filled in with means, the first record
    /// that has a value of the feature, and the first one that has another value.
    fn kept_for_training(&self, draw: &TestDraw<'_>, order: &[usize]) -> Vec<bool> {
        let records = draw.records;
        let mut kept = vec![false; order.len()];
        if let Some(parts) = draw.parts {
            keep_first_of_each(&group_of_each(parts, order.len()), order, &mut kept);
        } else if let Some(clients) = &records.groups {
            keep_first_of_each(&ranks(clients), order, &mut kept);
        }
        if draw.labels == LabelKind::Classes {
            keep_first_of_each(&ranks(&records.labels), order, &mut kept);
        }
        records.keep_categories(order, &mut kept);
        let fills = self.missing == Some(MissingValues::Mean);
        match &records.sparse {
            None if self.standardise || fills => records.keep_two_values(order, &mut kept),
            Some(_) if fills => records.keep_known_values(order, &mut kept),
            _ => {}
        }
        kept
    }
}

impl Records {
    /// Marks in `kept` the first record, in this order, of each category, also of those that have no indicator: there
    /// all indicators of a column are 0.
    fn keep_categories(&self, order: &[usize], kept: &mut [bool]) {
        for column in &self.categories {
            // The first record of each category that has an indicator, and of the one that has none.
            let mut found = BTreeSet::new();
            for &i in order {
                let indicators = &self.row(i)[column.indicators.clone()];
                let is_missing = indicators.iter().any(|x| x.is_nan());
                if !is_missing && found.insert(indicators.iter().position(|x| *x == 1.0)) {
                    kept[i] = true;
                }
            }
        }
    }

    /// Marks in `kept` for each feature the first record, in this order, that has a value of it, and the first one that
    /// has another value. Features must be stored dense.
    fn keep_two_values(&self, order: &[usize], kept: &mut [bool]) {
        let mut first = vec![f64::NAN; self.d];
        let mut has_two = vec![false; self.d];
        for &i in order {
            for (j, x) in self.row(i).iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                if first[j].is_nan() {
                    first[j] = *x;
                    kept[i] = true;
                } else if !has_two[j] && *x != first[j] {
                    has_two[j] = true;
                    kept[i] = true;
                }
            }
        }
    }

    /// Marks in `kept` for each feature that some record lacks the first record, in this order, that has a value of it.
    /// Features must be stored sparse, where a number that is not stored is 0, a value.
    fn keep_known_values(&self, order: &[usize], kept: &mut [bool]) {
        let mut lacking: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        self.for_each_feature(|row, j, x| {
            if x.is_nan() {
                lacking.entry(j).or_default().insert(row);
            }
        });
        for rows in lacking.values() {
            if let Some(&i) = order.iter().find(|i| !rows.contains(i)) {
                kept[i] = true;
            }
        }
    }
}

/// The number of the part that has each of `n` records.
fn group_of_each(parts: &[Vec<usize>], n: usize) -> Vec<usize> {
    let mut groups = vec![0; n];
    for (group, part) in parts.iter().enumerate() {
        part.iter().for_each(|&i| groups[i] = group);
    }
    groups
}

/// Marks in `kept` the first record, in this order, of each group; `groups` has the number of each record's group.
fn keep_first_of_each(groups: &[usize], order: &[usize], kept: &mut [bool]) {
    let mut is_found = vec![false; number_of_classes(groups)];
    for &i in order {
        if !is_found[groups[i]] {
            is_found[groups[i]] = true;
            kept[i] = true;
        }
    }
}

/// For each record whether it is among the `count` that are drawn, or fewer where too few are not `kept`: of each group
/// the first ones, in this order, that are not kept, as many as [`quotas`] says.
fn drawn_within(groups: &[usize], kept: &[bool], order: &[usize], count: usize) -> Vec<bool> {
    let number = number_of_classes(groups);
    let mut sizes = vec![0; number];
    let mut free = vec![0; number];
    for (&group, is_kept) in groups.iter().zip(kept) {
        sizes[group] += 1;
        free[group] += usize::from(!is_kept);
    }
    let mut left = quotas(&sizes, &free, count);
    let mut drawn = vec![false; groups.len()];
    for &i in order {
        if !kept[i] && left[groups[i]] > 0 {
            left[groups[i]] -= 1;
            drawn[i] = true;
        }
    }
    drawn
}

/// How many of `count` records each group gives, by the method of the largest remainder: ⌊count · size / n⌋, and one
/// more for the groups with the largest remainders, the first ones among equals, until the sum is `count`. No group
/// gives more than its `free` records: others give what it cannot, one each, in the same order.
fn quotas(sizes: &[usize], free: &[usize], count: usize) -> Vec<usize> {
    let n = sizes.iter().sum::<usize>() as u128;
    let shares: Vec<u128> = sizes.iter().map(|size| count as u128 * *size as u128).collect();
    let mut quotas: Vec<usize> =
        shares.iter().zip(free).map(|(share, free)| ((share / n) as usize).min(*free)).collect();
    let mut by_remainder: Vec<usize> = (0..sizes.len()).collect();
    by_remainder.sort_by_key(|&group| std::cmp::Reverse(shares[group] % n));
    let mut left = count.min(free.iter().sum()) - quotas.iter().sum::<usize>();
    while left > 0 {
        for &group in &by_remainder {
            if left > 0 && quotas[group] < free[group] {
                quotas[group] += 1;
                left -= 1;
            }
        }
    }
    quotas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_have_the_largest_remainders() {
        // 0.2 of 10, 7 and 3 records: 2, 1.4 and 0.6.
        assert_eq!(quotas(&[10, 7, 3], &[9, 6, 2], 4), [2, 1, 1]);
        // A group of one record keeps it; the others give the rest.
        assert_eq!(quotas(&[1, 1, 8], &[0, 0, 7], 5), [0, 0, 5]);
        assert_eq!(quotas(&[5, 5], &[4, 4], 1), [1, 0]);
        // There are fewer than are asked for.
        assert_eq!(quotas(&[2, 2], &[1, 1], 4), [1, 1]);
        assert_eq!(quotas(&[2, 2], &[0, 0], 3), [0, 0]);
    }

    /// Each group gives its quota, and what is kept is not drawn.
    #[test]
    fn the_draw_follows_the_order() {
        let groups = [0, 0, 0, 1, 1, 1];
        let kept = [false, true, false, false, false, true];
        let drawn = drawn_within(&groups, &kept, &[5, 4, 3, 2, 1, 0], 2);
        assert_eq!(drawn, [false, false, true, false, true, false]);
    }
}
