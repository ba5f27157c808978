//! Losses that depend on a record by its margin alone: φ(xᵀθ) + λ/2 ‖θ‖², where x has the sign of the record's label.
//!
//! The slopes φ′ and the losses φ of many margins are a user's functions. What is left of a field, φ′(xᵀθ) x + λθ, is
//! computed here, in a fixed order, so that the bits do not depend on a library.

use super::rows::FieldRows;
use crate::kernel::{Rows, axpy, dot, prefetch_all, products};

/// The records of all clients of a problem whose losses depend on margins.
pub struct MarginRecords {
    /// x of each record, d numbers each, client by client.
    rows: Vec<f64>,
    /// The number of the first record of each client, and the number of all records at the end.
    first: Vec<usize>,
    /// The dimension d of θ.
    dimension: usize,
    /// The weight λ of the penalty.
    l2: f64,
}

/// Functions of margins write a number for each margin of their first argument to the second one, or fail with an E.
impl MarginRecords {
    /// The records of clients, which have `counts` of them in this order.
    ///
    /// # Panics
    /// If `rows` does not have d numbers for each record.
    pub fn new(rows: Vec<f64>, counts: &[usize], dimension: usize, l2: f64) -> Self {
        let mut first = vec![0];
        for count in counts {
            first.push(first[first.len() - 1] + count);
        }
        assert_eq!(rows.len(), first[counts.len()] * dimension, "d numbers for each record");
        Self { rows, first, dimension, l2 }
    }

    /// The dimension d of θ, which a row x has too.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// How many records each client has, N numbers.
    pub fn counts(&self) -> Vec<usize> {
        self.first.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// The weight λ of the penalty λ/2 ‖θ‖².
    pub(super) fn l2(&self) -> f64 {
        self.l2
    }

    /// x of a record of a client.
    pub(super) fn record(&self, client: usize, draw: u64) -> &[f64] {
        let d = self.dimension;
        &self.rows[(self.first[client] + draw as usize) * d..][..d]
    }

    /// x of all records of a client, one after the other.
    fn records_of(&self, client: usize) -> &[f64] {
        let d = self.dimension;
        &self.rows[self.first[client] * d..self.first[client + 1] * d]
    }

    /// Writes φ′(xᵀθ) x + λθ of each row to `fields`, M × d numbers, with one call of the slope for all rows.
    ///
    /// # Errors
    /// The error of the slope.
    pub fn write_fields<E>(
        &self,
        rows: FieldRows<'_>,
        slope: impl FnOnce(&[f64], &mut [f64]) -> Result<(), E>,
        fields: &mut [f64],
    ) -> Result<(), E> {
        let FieldRows { thetas, clients, draws } = rows;
        let d = self.dimension;
        let records: Vec<&[f64]> =
            clients.iter().zip(draws).map(|(&client, &draw)| self.record(client, draw)).collect();
        let margins = margins_of(&records, thetas.chunks_exact(d));
        let mut slopes = vec![0.0; margins.len()];
        slope(&margins, &mut slopes)?;
        let points = thetas.chunks_exact(d).zip(fields.chunks_exact_mut(d));
        for ((theta, field), (record, slope)) in points.zip(records.iter().zip(slopes)) {
            for ((field, theta), x) in field.iter_mut().zip(theta).zip(*record) {
                *field = slope * x + self.l2 * theta;
            }
        }
        Ok(())
    }

    /// Writes the mean field of each row's client, over all its records, to `fields`, M × d numbers, with one call of
    /// the slope for each row.
    ///
    /// # Errors
    /// The error of the slope.
    pub fn write_mean_fields<E>(
        &self,
        thetas: &[f64],
        clients: &[usize],
        mut slope: impl FnMut(&[f64], &mut [f64]) -> Result<(), E>,
        fields: &mut [f64],
    ) -> Result<(), E> {
        let d = self.dimension;
        let points = thetas.chunks_exact(d).zip(fields.chunks_exact_mut(d));
        for ((theta, field), &client) in points.zip(clients) {
            let slopes = self.of_all_margins(client, theta, &mut slope)?;
            field.fill(0.0);
            for (record, slope) in self.records_of(client).chunks_exact(d).zip(&slopes) {
                axpy(*slope, record, field);
            }
            for (field, theta) in field.iter_mut().zip(theta) {
                *field = *field / slopes.len() as f64 + self.l2 * theta;
            }
        }
        Ok(())
    }

    /// The mean loss of each row's client over all its records, with one call of φ for each row.
    ///
    /// # Errors
    /// The error of the loss φ.
    pub fn losses<E>(
        &self,
        thetas: &[f64],
        clients: &[usize],
        mut loss: impl FnMut(&[f64], &mut [f64]) -> Result<(), E>,
    ) -> Result<Vec<f64>, E> {
        let mut means = Vec::with_capacity(clients.len());
        for (theta, &client) in thetas.chunks_exact(self.dimension).zip(clients) {
            let losses = self.of_all_margins(client, theta, &mut loss)?;
            let sum = losses.iter().fold(0.0, |sum, loss| sum + loss);
            means.push(sum / losses.len() as f64 + 0.5 * self.l2 * dot(theta, theta));
        }
        Ok(means)
    }

    /// A function of the margins of all records of a client.
    fn of_all_margins<E>(
        &self,
        client: usize,
        theta: &[f64],
        function: &mut impl FnMut(&[f64], &mut [f64]) -> Result<(), E>,
    ) -> Result<Vec<f64>, E> {
        let d = self.dimension;
        let mut margins = vec![0.0; self.first[client + 1] - self.first[client]];
        products(Rows::new(self.records_of(client), d, d), theta, &mut margins);
        let mut values = vec![0.0; margins.len()];
        function(&margins, &mut values)?;
        Ok(values)
    }
}

/// How many records before its use a record is read from memory.
const AHEAD: usize = 4;

/// The margin xᵀθ of each of these records with its θ.
pub(super) fn margins_of<'a>(
    records: &[&[f64]],
    thetas: impl Iterator<Item = &'a [f64]>,
) -> Vec<f64> {
    let mut margins = Vec::with_capacity(records.len());
    for (row, theta) in thetas.enumerate() {
        if let Some(next) = records.get(row + AHEAD) {
            prefetch_all(next.as_ptr(), size_of_val(*next));
        }
        margins.push(dot(records[row], theta));
    }
    margins
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn cube(margins: &[f64], cubes: &mut [f64]) -> Result<(), Infallible> {
        cubes.iter_mut().zip(margins).for_each(|(cube, m)| *cube = m * m * m);
        Ok(())
    }

    fn slope_of_cube(margins: &[f64], slopes: &mut [f64]) -> Result<(), Infallible> {
        slopes.iter_mut().zip(margins).for_each(|(slope, m)| *slope = 3.0 * m * m);
        Ok(())
    }

    /// Two clients with two records and one, d = 2, the loss m³ and λ = 0.5: all values were computed by hand.
    #[test]
    fn fields_means_and_losses_are_those_of_the_margins() {
        let records = MarginRecords::new(vec![1.0, 2.0, 0.0, 1.0, -1.0, 1.0], &[2, 1], 2, 0.5);
        let thetas = [1.0, 1.0, 2.0, -2.0];
        let mut fields = [0.0; 4];
        let rows = FieldRows { thetas: &thetas, clients: &[0, 1], draws: &[0, 0] };
        records.write_fields(rows, slope_of_cube, &mut fields).unwrap();
        // Margins 3 and −4.
        assert_eq!(fields, [27.5, 54.5, -47.0, 47.0]);
        records.write_mean_fields(&thetas, &[0, 1], slope_of_cube, &mut fields).unwrap();
        // Slopes 27 and 3 of the first client.
        assert_eq!(fields, [14.0, 29.0, -47.0, 47.0]);
        let losses = records.losses(&thetas, &[0, 1], cube).unwrap();
        assert_eq!(losses, [14.5, -62.0]);
    }

    #[test]
    fn errors_of_the_functions_are_passed_on() {
        let records = MarginRecords::new(vec![1.0], &[1], 1, 0.0);
        let fails = |_: &[f64], _: &mut [f64]| Err("no number");
        let rows = FieldRows { thetas: &[1.0], clients: &[0], draws: &[0] };
        assert_eq!(records.write_fields(rows, fails, &mut [0.0]), Err("no number"));
        assert_eq!(records.write_mean_fields(&[1.0], &[0], fails, &mut [0.0]), Err("no number"));
        assert_eq!(records.losses(&[1.0], &[0], fails), Err("no number"));
    }
}
