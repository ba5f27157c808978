//! Metrics that count each class by itself: the balanced accuracy, and the area under the receiver operating
//! characteristic (AUC). Each record counts with a weight; only ratios of weights matter.

use super::loss::{RecordLoss, RecordSets};
use crate::kernel::softmax::MOST_CLASSES;

/// A set of records that all count the same.
pub struct WeighedSet<'a, S> {
    /// The storage in which the set is.
    pub records: &'a S,
    /// The number of the set there.
    pub set: usize,
    /// How much each of its records counts, above 0.
    pub weight: f64,
}

/// The mean over classes of the recall at θ: of the weight of the records of a class, the part whose class is
/// predicted. Classes without records are left out. `None` if the loss has no classes, or a storage does not know them.
pub fn balanced_accuracy<L: RecordLoss<S>, S: RecordSets>(
    loss: &L,
    sets: &[WeighedSet<'_, S>],
    theta: &[f64],
) -> Option<f64> {
    let mut of_class = [0.0; MOST_CLASSES];
    let mut predicted = [0.0; MOST_CLASSES];
    for WeighedSet { records, set, weight } in sets {
        let hits = loss.hits(records, *set, theta)?;
        for (label, hit) in records.labels(*set)?.iter().zip(hits) {
            of_class[usize::from(*label)] += weight;
            predicted[usize::from(*label)] += weight * hit;
        }
    }
    let mut sum = 0.0;
    let mut classes = 0.0;
    for (predicted, all) in predicted.iter().zip(of_class) {
        if all > 0.0 {
            sum += predicted / all;
            classes += 1.0;
        }
    }
    Some(sum / classes)
}

/// A record with its score for a class.
#[derive(Clone, Copy, Debug)]
struct ScoredRecord {
    score: f64,
    /// How much the record counts.
    weight: f64,
    /// Whether it is of the class.
    is_of_class: bool,
}

/// The AUC at θ: of all pairs of a record of class 1 and a record of class 0 the part in which the first one has the
/// higher score; a tie counts half, and a pair counts by the product of its weights. If the loss has a score for each
/// class, it is the mean over the classes that have records, each against all others. `None` if scores or classes are
/// not known, or all records have the same class.
pub fn auc<L: RecordLoss<S>, S: RecordSets>(
    loss: &L,
    sets: &[WeighedSet<'_, S>],
    theta: &[f64],
) -> Option<f64> {
    let mut scores = Vec::with_capacity(sets.len());
    for WeighedSet { records, set, .. } in sets {
        scores.push(loss.class_scores(records, *set, theta)?);
    }
    let per_record = sets.first()?.records.classes();
    // A single score is that of class 1.
    let first_class = usize::from(per_record == 1);
    let mut sum = 0.0;
    let mut classes = 0.0;
    for column in 0..per_record {
        let mut scored = Vec::new();
        for (WeighedSet { records, set, weight }, scores) in sets.iter().zip(&scores) {
            let of_records = scores.chunks_exact(per_record).zip(records.labels(*set)?);
            scored.extend(of_records.map(|(scores, label)| ScoredRecord {
                score: scores[column],
                weight: *weight,
                is_of_class: usize::from(*label) == column + first_class,
            }));
        }
        if let Some(auc) = auc_of_class(scored) {
            sum += auc;
            classes += 1.0;
        }
    }
    (classes > 0.0).then(|| sum / classes)
}

/// The AUC of one class against all others; `None` if all records are of the class, or none is, and NaN if a score is
/// not a number. It is 1 minus the part of the pairs that are in the wrong order, so that it is 1 to the last bit if
/// none is.
fn auc_of_class(mut scored: Vec<ScoredRecord>) -> Option<f64> {
    scored.sort_by(|a, b| a.score.total_cmp(&b.score));
    let mut of_class = 0.0;
    let mut of_others = 0.0;
    let mut wrong = 0.0;
    for tied in scored.chunk_by(|a, b| a.score == b.score) {
        let mut tied_of_class = 0.0;
        let mut tied_of_others = 0.0;
        for record in tied {
            if record.is_of_class {
                tied_of_class += record.weight;
            } else {
                tied_of_others += record.weight;
            }
        }
        // Records of the class with a lower score than these of the others, and with the same one.
        wrong += tied_of_others * (of_class + 0.5 * tied_of_class);
        of_class += tied_of_class;
        of_others += tied_of_others;
    }
    if of_class == 0.0 || of_others == 0.0 {
        return None;
    }
    if scored.iter().any(|record| record.score.is_nan()) {
        return Some(f64::NAN);
    }
    Some((1.0 - wrong / (of_class * of_others)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auc_of(records: &[(f64, f64, bool)]) -> Option<f64> {
        auc_of_class(
            records
                .iter()
                .map(|&(score, weight, is_of_class)| ScoredRecord { score, weight, is_of_class })
                .collect(),
        )
    }

    /// The example of scikit-learn's `roc_auc_score`, and pairs that can be counted by hand.
    #[test]
    fn pairs_in_the_right_order_are_counted() {
        let example = [(0.1, 1.0, false), (0.4, 1.0, false), (0.35, 1.0, true), (0.8, 1.0, true)];
        assert_eq!(auc_of(&example), Some(0.75));
        assert_eq!(auc_of(&[(0.0, 1.0, true), (-0.0, 1.0, false)]), Some(0.5));
        assert_eq!(auc_of(&[(2.0, 0.3, true), (1.0, 0.1, false), (3.0, 0.7, true)]), Some(1.0));
        assert_eq!(auc_of(&[(1.0, 0.3, true), (2.0, 0.1, false)]), Some(0.0));
        // A record of weight 3 counts as three records.
        let weighed = auc_of(&[(1.0, 3.0, false), (2.0, 1.0, true), (3.0, 1.0, false)]);
        assert_eq!(weighed, Some(0.75));
    }

    #[test]
    fn without_pairs_there_is_none() {
        assert_eq!(auc_of(&[(1.0, 1.0, true), (2.0, 1.0, true)]), None);
        assert_eq!(auc_of(&[(1.0, 1.0, false)]), None);
        assert!(auc_of(&[(f64::NAN, 1.0, true), (2.0, 1.0, false)]).unwrap().is_nan());
    }
}
