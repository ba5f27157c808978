//! The distinct values of a column, and their order.

use crate::problem::arrays::Column;
use crate::problem::column::LongNumber;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The distinct values of a column as texts, such as the names of its clients.
pub fn distinct_texts(column: &Column) -> BTreeSet<String> {
    (0..column.len()).map(|row| column.text(row)).collect()
}

/// The rank of each value among the distinct values of its column in sorted order, from 0: the number of its class
/// or its client. Equal values have one rank, and no rank is left out. Missing values must be refused before: a NaN
/// would have no rank, and the list would be shorter than the column.
pub fn ranks(column: &Column) -> Vec<usize> {
    ranks_among(column, column).into_iter().flatten().collect()
}

/// The rank of each of `values` among the distinct values of `all` in sorted order, from 0; `None` if it is none of
/// them. Callers pass one column, or it and a part of its rows: columns of different types have no value in common
/// here, even where [`Column::Numbers`] and [`Column::LongNumbers`] hold the same number.
pub fn ranks_among(all: &Column, values: &Column) -> Vec<Option<usize>> {
    match (all, values) {
        (Column::Numbers(all), Column::Numbers(values)) => {
            ranks_in_order(all, values, f64::total_cmp)
        }
        (Column::LongNumbers(all), Column::LongNumbers(values)) => {
            let all: Vec<LongNumber<'_>> = all.iter().map(|text| LongNumber(text)).collect();
            let values: Vec<LongNumber<'_>> = values.iter().map(|text| LongNumber(text)).collect();
            ranks_in_order(&all, &values, LongNumber::total_cmp)
        }
        (Column::Text(all), Column::Text(values)) => ranks_in_order(all, values, Ord::cmp),
        _ => vec![None; values.len()],
    }
}

/// [`ranks_among`] for values of one type, which `order` sorts. `order` must agree with the comparison by `<` and `==`,
/// by which ranks are found.
fn ranks_in_order<T: PartialOrd + Clone>(
    all: &[T],
    values: &[T],
    order: fn(&T, &T) -> Ordering,
) -> Vec<Option<usize>> {
    let mut distinct = all.to_vec();
    distinct.sort_by(order);
    distinct.dedup();
    let mut ranks = Vec::with_capacity(values.len());
    for value in values {
        let rank = distinct.partition_point(|x| x < value);
        ranks.push((distinct.get(rank) == Some(value)).then_some(rank));
    }
    ranks
}

/// The number of classes, or of clients, given the ranks of all records, which are from 0 on without a gap.
pub fn number_of_classes(ranks: &[usize]) -> usize {
    ranks.iter().max().map_or(0, |largest| largest + 1)
}
