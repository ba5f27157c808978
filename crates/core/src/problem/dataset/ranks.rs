//! The distinct values of a column, and their order.

use crate::problem::arrays::Column;
use crate::problem::column::LongNumber;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The distinct values of a column, as texts.
pub fn distinct_texts(column: &Column) -> BTreeSet<String> {
    (0..column.len()).map(|row| column.text(row)).collect()
}

/// The rank of each value among the distinct values of a column, from 0.
pub fn ranks(column: &Column) -> Vec<usize> {
    ranks_among(column, column).into_iter().flatten().collect()
}

/// The rank of each value among the distinct values of `all`, from 0; `None` if it is none of them.
pub fn ranks_among(all: &Column, values: &Column) -> Vec<Option<usize>> {
    fn among<T: PartialOrd + Clone>(
        all: &[T],
        values: &[T],
        order: fn(&T, &T) -> Ordering,
    ) -> Vec<Option<usize>> {
        let mut all = all.to_vec();
        all.sort_by(order);
        all.dedup();
        let rank = |value: &T| all.partition_point(|x| x < value);
        values
            .iter()
            .map(|value: &T| Some(rank(value)).filter(|rank| all.get(*rank) == Some(value)))
            .collect()
    }
    match (all, values) {
        (Column::Numbers(all), Column::Numbers(values)) => among(all, values, f64::total_cmp),
        (Column::LongNumbers(all), Column::LongNumbers(values)) => {
            let all: Vec<LongNumber<'_>> = all.iter().map(|text| LongNumber(text)).collect();
            let values: Vec<LongNumber<'_>> = values.iter().map(|text| LongNumber(text)).collect();
            among(&all, &values, LongNumber::total_cmp)
        }
        (Column::Text(all), Column::Text(values)) => among(all, values, Ord::cmp),
        _ => vec![None; values.len()],
    }
}

pub fn number_of_classes(ranks: &[usize]) -> usize {
    ranks.iter().max().map_or(0, |largest| largest + 1)
}
