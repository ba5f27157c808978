//! Whether a field is affine in θ, F_c(θ; z) = A_c(z) θ − b_c(z), and if so, its coefficients.

use super::functions::{DrawSpace, FunctionError, rows_of_call};
use super::instance::FunctionProblem;
use super::rows::FieldRows;
use crate::kernel::dot;
use crate::problem::atoms::{AtomTables, Atoms};
use crate::rng::Stream;

/// The most numbers that the matrices A_c(z) of all clients and records have together where a field is looked at: 128
/// MiB. A field with more counts as not affine.
pub const MOST_COEFFICIENTS: usize = 1 << 24;
/// How far a field may be from A θ − b, relative to the size of its terms, for rounding alone.
const ROUNDING: f64 = 1e-10;
/// The sizes of the points at which an affine field is verified: what is affine near 0 alone, as a field that is
/// clipped, is found by the larger ones.
const SCALES: [f64; 3] = [1.0, 30.0, 1000.0];
/// How many rows are looked at before all coefficients are computed, which takes d + 1 rows for each record.
const FIRST_ROWS: usize = 32;

/// One record of a client.
#[derive(Clone, Copy)]
struct ClientRecord {
    client: usize,
    draw: u64,
}

/// The atoms of an affine field, one for each record of a client. `None` if the field is not affine, draws are not
/// records, there are too many coefficients, or the mean field has no root.
///
/// # Errors
/// If the function has no value.
pub fn find_atoms(problem: &FunctionProblem) -> Result<Option<Atoms>, FunctionError> {
    let DrawSpace::Records(counts) = &problem.sizes.draws else { return Ok(None) };
    let d = problem.sizes.dimension;
    let n = problem.sizes.clients;
    let most = counts.iter().copied().max().unwrap_or(1);
    let coefficients = n.saturating_mul(most).saturating_mul(d).saturating_mul(d);
    if coefficients > MOST_COEFFICIENTS {
        return Ok(None);
    }
    let all = counts.iter().enumerate();
    let records: Vec<ClientRecord> = all
        .flat_map(|(client, &count)| {
            (0..count as u64).map(move |draw| ClientRecord { client, draw })
        })
        .collect();
    let spread = records.len().div_ceil(FIRST_ROWS);
    let first: Vec<ClientRecord> = records.iter().copied().step_by(spread).collect();
    if !is_additive(problem, &first)? {
        return Ok(None);
    }
    let mut tables = AtomTables {
        matrices: vec![0.0; coefficients],
        offsets: vec![0.0; n * most * d],
        probabilities: vec![0.0; n * most],
        shares: problem.sizes.shares.clone(),
    };
    let mut entries = Vec::with_capacity(records.len());
    for record in &records {
        let entry = record.client * most + record.draw as usize;
        tables.probabilities[entry] = 1.0 / counts[record.client] as f64;
        entries.push(entry);
    }
    let constants = fields_at(problem, &records, &vec![0.0; d])?;
    for (&entry, constant) in entries.iter().zip(constants.chunks_exact(d)) {
        let offset = &mut tables.offsets[entry * d..][..d];
        offset.iter_mut().zip(constant).for_each(|(offset, x)| *offset = -x);
    }
    for column in 0..d {
        let mut unit = vec![0.0; d];
        unit[column] = 1.0;
        let fields = fields_at(problem, &records, &unit)?;
        for (place, &entry) in entries.iter().enumerate() {
            for i in 0..d {
                let at = place * d + i;
                tables.matrices[(entry * d + i) * d + column] = fields[at] - constants[at];
            }
        }
    }
    if !is_reproduced(problem, &records, &entries, &tables)? {
        return Ok(None);
    }
    // Without a root there is no θ*, and no theory.
    Ok(Atoms::from_tables(n, d, tables).ok())
}

/// The fields of these records at θ, d numbers each.
fn fields_at(
    problem: &FunctionProblem,
    records: &[ClientRecord],
    theta: &[f64],
) -> Result<Vec<f64>, FunctionError> {
    let d = theta.len();
    let mut all = vec![0.0; records.len() * d];
    let rows = rows_of_call(d);
    for (records, fields) in records.chunks(rows).zip(all.chunks_mut(rows * d)) {
        let clients: Vec<usize> = records.iter().map(|record| record.client).collect();
        let draws: Vec<u64> = records.iter().map(|record| record.draw).collect();
        let thetas = theta.repeat(records.len());
        let rows = FieldRows { thetas: &thetas, clients: &clients, draws: &draws };
        problem.functions.fields(rows, fields)?;
    }
    Ok(all)
}

/// A point with Gaussian coordinates of this scale.
fn point(d: usize, scale: f64, rng: &mut Stream) -> Vec<f64> {
    (0..d).map(|_| scale * rng.gaussian()).collect()
}

/// Whether F(x + y) − F(x) − F(y) + F(0) is 0 for these records, up to rounding, at points x and y of several sizes, as
/// it is of an affine field.
fn is_additive(problem: &FunctionProblem, records: &[ClientRecord]) -> Result<bool, FunctionError> {
    let d = problem.sizes.dimension;
    let mut rng = Stream::shared_instance(1);
    let constant = fields_at(problem, records, &vec![0.0; d])?;
    for scale in SCALES {
        let x = point(d, scale, &mut rng);
        let y = point(d, scale, &mut rng);
        let sum: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        let at_x = fields_at(problem, records, &x)?;
        let at_y = fields_at(problem, records, &y)?;
        let at_sum = fields_at(problem, records, &sum)?;
        for row in 0..records.len() {
            let fields = [&at_sum, &at_x, &at_y, &constant].map(|all| &all[row * d..][..d]);
            let size = fields.iter().fold(0.0, |size, field| size + norm(field));
            let [at_sum, at_x, at_y, constant] = fields;
            let apart: Vec<f64> =
                (0..d).map(|i| at_sum[i] - at_x[i] - at_y[i] + constant[i]).collect();
            let is_within = norm(&apart) <= ROUNDING * size;
            if !is_within {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether the coefficients give the fields of all records at further points, up to rounding.
fn is_reproduced(
    problem: &FunctionProblem,
    records: &[ClientRecord],
    entries: &[usize],
    tables: &AtomTables,
) -> Result<bool, FunctionError> {
    let d = problem.sizes.dimension;
    let mut rng = Stream::shared_instance(2);
    for scale in SCALES {
        let theta = point(d, scale, &mut rng);
        let fields = fields_at(problem, records, &theta)?;
        for (&entry, field) in entries.iter().zip(fields.chunks_exact(d)) {
            let offset = &tables.offsets[entry * d..][..d];
            let matrix = &tables.matrices[entry * d * d..][..d * d];
            let size = norm(matrix) * norm(&theta) + norm(offset);
            let apart: Vec<f64> =
                (0..d).map(|i| dot(&matrix[i * d..][..d], &theta) - offset[i] - field[i]).collect();
            let is_within = norm(&apart) <= ROUNDING * size;
            if !is_within {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn norm(x: &[f64]) -> f64 {
    libm::sqrt(dot(x, x))
}
