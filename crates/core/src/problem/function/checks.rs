//! Checks of functions that a user gives, at drawn points, before the first run.

use super::functions::{DrawSpace, FunctionError, FunctionSizes, rows_of_call};
use super::instance::FunctionProblem;
use super::rows::FieldRows;
use crate::kernel::{axpy, dot};
use crate::problem::facts::Facts as _;
use crate::rng::{MAX_CLIENTS, Stream};
use thiserror::Error;

/// What is wrong with the functions of a problem, with the numbers that show it.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FunctionFault {
    /// A function has no value.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The number of clients is 0, or there are more than have a stream.
    #[error("clients is {0}; it must be from 1 to {MAX_CLIENTS}")]
    Clients(usize),
    /// There is no coordinate.
    #[error("dim is 0; it must be 1 or more")]
    Dimension,
    /// The list of records has another length than there are clients.
    #[error("records has {found} numbers; expected one for each of the {clients} clients")]
    RecordCounts {
        /// The length of the list.
        found: usize,
        /// N.
        clients: usize,
    },
    /// A client has nothing to draw.
    #[error("client {client} has no records")]
    NoRecords {
        /// The index of the client.
        client: usize,
    },
    /// The shares are no N positive numbers.
    #[error("shares must be {clients} positive numbers, one for each client")]
    Shares {
        /// N.
        clients: usize,
    },
    /// Draws are seeds, and no function computes their mean.
    #[error(
        "without records the mean of grad cannot be computed: give mean_grad(theta, k), or state how many records each client has"
    )]
    NoMean,
    /// A row has another field when it is evaluated again.
    #[error(
        "grad is no function of its arguments: for client {client} and draw {draw} it gave {first:e} and then {second:e} in coordinate {coordinate} at the same theta. Everything random must come from the draw"
    )]
    NotRepeatable {
        /// The index of the client.
        client: usize,
        /// The draw.
        draw: u64,
        /// The first coordinate that differs.
        coordinate: usize,
        /// What the first call gave.
        first: f64,
        /// What the second call gave.
        second: f64,
    },
    /// A row has another field alone than with other rows.
    #[error(
        "grad must treat rows independently: row {row} of {rows} (client {client}, draw {draw}) is {together:e} in coordinate {coordinate} if all rows are evaluated together, and {alone:e} alone. Matrix products and sums over the first axis depend on the number of rows: np.einsum(\"md,md->m\", x, theta) does not"
    )]
    RowsDepend {
        /// The place of the row.
        row: usize,
        /// How many rows were evaluated together.
        rows: usize,
        /// The index of the client of the row.
        client: usize,
        /// The draw of the row.
        draw: u64,
        /// The first coordinate that differs.
        coordinate: usize,
        /// Its value together with the other rows.
        together: f64,
        /// Its value alone.
        alone: f64,
    },
    /// The function of the mean is not the mean over all records.
    #[error(
        "mean_grad and grad disagree: in coordinate {coordinate} of client {client}, mean_grad is {stated:e}, and the mean of grad over all its records is {computed:e}, at a drawn theta"
    )]
    Mean {
        /// The index of the client.
        client: usize,
        /// The coordinate that differs most.
        coordinate: usize,
        /// What the function of the mean gives.
        stated: f64,
        /// The mean over the records.
        computed: f64,
    },
    /// The function of the mean is not the mean over all draws, which are seeds.
    #[error(
        "mean_grad and grad disagree: in coordinate {coordinate} of client {client}, mean_grad is {stated:e}, and the mean of grad over {draws} draws is {computed:e}, with a standard error of {error:e}, at a drawn theta"
    )]
    MeanOfDraws {
        /// The index of the client.
        client: usize,
        /// The first coordinate in which they disagree.
        coordinate: usize,
        /// What the function of the mean gives.
        stated: f64,
        /// The mean over the draws.
        computed: f64,
        /// The standard error of this mean.
        error: f64,
        /// How many draws there were.
        draws: usize,
    },
    /// The derivative of the loss is not the field.
    #[error(
        "value and grad disagree: the derivative of value along a drawn direction is {difference:e} for client {client}, by differences, and that of the mean gradient is {slope:e}, at a drawn theta. value(theta, k) is the mean loss of client k, with everything that grad is the gradient of"
    )]
    Derivative {
        /// The index of the client.
        client: usize,
        /// The difference quotient of the loss.
        difference: f64,
        /// The product of the mean field and the direction.
        slope: f64,
    },
    /// The stated θ* does not have d finite numbers.
    #[error("optimum must be {dimension} finite numbers")]
    OptimumShape {
        /// d.
        dimension: usize,
    },
    /// The mean field at the stated θ* is not 0.
    #[error(
        "optimum is not the optimum: the norm of the mean gradient is {norm:e} there, and {scale:e} at a distance of 1 from it"
    )]
    NoOptimum {
        /// The norm of the mean field at the stated θ*.
        norm: f64,
        /// Its norm at another point.
        scale: f64,
    },
}

/// How many rows are evaluated together and alone.
const ROWS: usize = 23;
/// How many clients are looked at one by one.
const MOST_CLIENTS: usize = 3;
/// How far a mean that a function computes may be from the mean over records, relative to the size of the fields.
const MEAN_ROUNDING: f64 = 1e-9;
/// The norm of the mean field at a stated θ*, relative to its norm at a distance of 1, that counts as 0.
const OPTIMUM_ROUNDING: f64 = 1e-6;

/// How many draws are compared with the mean field that a function computes, where draws are seeds: as many as have
/// [`DRAWN_NUMBERS`] fields' coordinates, within these limits.
const FEWEST_DRAWS: usize = 256;
const MOST_DRAWS: usize = 4096;
const DRAWN_NUMBERS: usize = 1 << 20;
/// By how many standard errors a mean over these draws may be away. The draws are always the same, so that a problem
/// without a fault must not be refused by chance.
const MOST_ERRORS: f64 = 8.0;

/// Checks what the sizes say by themselves.
pub fn check_sizes(sizes: &FunctionSizes) -> Result<(), FunctionFault> {
    let FunctionSizes { clients, dimension, draws, shares } = sizes;
    let clients = *clients;
    if clients == 0 || clients as u64 > MAX_CLIENTS {
        return Err(FunctionFault::Clients(clients));
    }
    if *dimension == 0 {
        return Err(FunctionFault::Dimension);
    }
    if let DrawSpace::Records(counts) = draws {
        if counts.len() != clients {
            return Err(FunctionFault::RecordCounts { found: counts.len(), clients });
        }
        if let Some(client) = counts.iter().position(|count| *count == 0) {
            return Err(FunctionFault::NoRecords { client });
        }
    }
    if let Some(shares) = shares {
        let are_positive = shares.iter().all(|share| share.is_finite() && *share > 0.0);
        if shares.len() != clients || !are_positive {
            return Err(FunctionFault::Shares { clients });
        }
    }
    Ok(())
}

/// Checks that the field is a function of each row alone, and that means and losses agree with it at drawn points.
pub fn check_functions(problem: &FunctionProblem) -> Result<(), FunctionFault> {
    check_rows(problem)?;
    let mut rng = Stream::shared_instance(3);
    let n = problem.sizes.clients;
    let d = problem.sizes.dimension;
    for client in spread_clients(n) {
        let theta = gaussian_point(d, &mut rng);
        let mut mean = vec![0.0; d];
        let has_mean = problem.functions.mean_fields(&theta, &[client], &mut mean)?;
        match problem.sizes.draws {
            DrawSpace::Seeds if !has_mean => return Err(FunctionFault::NoMean),
            DrawSpace::Seeds => compare_with_draws(problem, client, &theta, &mean)?,
            DrawSpace::Records(_) if has_mean => compare_means(problem, client, &theta, &mean)?,
            DrawSpace::Records(_) => problem.write_mean_field(client, &theta, &mut mean)?,
        }
        let direction = gaussian_point(d, &mut rng);
        compare_derivative(problem, client, [&theta, &direction], dot(&mean, &direction))?;
    }
    Ok(())
}

/// Up to [`MOST_CLIENTS`] of n clients: the first, the last and those between at equal distances.
fn spread_clients(n: usize) -> Vec<usize> {
    let count = n.min(MOST_CLIENTS);
    (0..count).map(|i| i * (n - 1) / (count - 1).max(1)).collect()
}

/// A point with independent standard Gaussian coordinates.
fn gaussian_point(d: usize, rng: &mut Stream) -> Vec<f64> {
    (0..d).map(|_| rng.gaussian()).collect()
}

/// Drawn rows, and their fields when all are evaluated by one call.
struct DrawnRows {
    thetas: Vec<f64>,
    clients: Vec<usize>,
    draws: Vec<u64>,
    fields: Vec<f64>,
}

impl DrawnRows {
    /// Fields of [`ROWS`] rows at Gaussian points, with the clients and draws of a run.
    fn new(problem: &FunctionProblem) -> Result<Self, FunctionError> {
        let mut rng = Stream::shared_instance(4);
        let d = problem.sizes.dimension;
        let clients: Vec<usize> = (0..ROWS).map(|row| row % problem.sizes.clients).collect();
        let draws = clients.iter().map(|&client| problem.next_draw(client, &mut rng)).collect();
        let thetas = gaussian_point(ROWS * d, &mut rng);
        let mut drawn = Self { thetas, clients, draws, fields: Vec::new() };
        drawn.fields = drawn.evaluate(problem, 0, ROWS)?;
        Ok(drawn)
    }

    /// The fields of `count` rows from row `first` on, by one call.
    fn evaluate(
        &self,
        problem: &FunctionProblem,
        first: usize,
        count: usize,
    ) -> Result<Vec<f64>, FunctionError> {
        let d = problem.sizes.dimension;
        let mut fields = vec![0.0; count * d];
        let rows = FieldRows {
            thetas: &self.thetas[first * d..][..count * d],
            clients: &self.clients[first..][..count],
            draws: &self.draws[first..][..count],
        };
        problem.functions.fields(rows, &mut fields)?;
        Ok(fields)
    }
}

/// The first place where two lists of numbers differ in a bit; NaN equals NaN.
fn first_difference(a: &[f64], b: &[f64]) -> Option<usize> {
    a.iter().zip(b).position(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()))
}

/// Checks that the same rows have the same fields in a second call, and that each row has the same field alone and with
/// one other row, bit for bit.
fn check_rows(problem: &FunctionProblem) -> Result<(), FunctionFault> {
    let d = problem.sizes.dimension;
    let drawn = DrawnRows::new(problem)?;
    let again = drawn.evaluate(problem, 0, ROWS)?;
    if let Some(place) = first_difference(&drawn.fields, &again) {
        return Err(FunctionFault::NotRepeatable {
            client: drawn.clients[place / d],
            draw: drawn.draws[place / d],
            coordinate: place % d,
            first: drawn.fields[place],
            second: again[place],
        });
    }
    for count in [1, 2] {
        for first in 0..=ROWS - count {
            let fields = drawn.evaluate(problem, first, count)?;
            let together = &drawn.fields[first * d..][..count * d];
            if let Some(place) = first_difference(together, &fields) {
                let row = first + place / d;
                return Err(FunctionFault::RowsDepend {
                    row,
                    rows: ROWS,
                    client: drawn.clients[row],
                    draw: drawn.draws[row],
                    coordinate: place % d,
                    together: together[place],
                    alone: fields[place],
                });
            }
        }
    }
    Ok(())
}

/// Compares the mean field that a function computes with the mean over all records of the client.
fn compare_means(
    problem: &FunctionProblem,
    client: usize,
    theta: &[f64],
    stated: &[f64],
) -> Result<(), FunctionFault> {
    let mut computed = vec![0.0; theta.len()];
    problem.write_mean_over_records(client, theta, &mut computed)?;
    let apart = |i: usize| (stated[i] - computed[i]).abs();
    let worst = (0..theta.len()).max_by(|&a, &b| apart(a).total_cmp(&apart(b))).unwrap_or(0);
    let size = libm::sqrt(dot(&computed, &computed)).max(libm::sqrt(dot(stated, stated)));
    if apart(worst) > MEAN_ROUNDING * size {
        let stated = stated[worst];
        let computed = computed[worst];
        return Err(FunctionFault::Mean { client, coordinate: worst, stated, computed });
    }
    Ok(())
}

/// Compares the mean field that a function computes with the mean over drawn seeds, within the random error of this mean.
fn compare_with_draws(
    problem: &FunctionProblem,
    client: usize,
    theta: &[f64],
    stated: &[f64],
) -> Result<(), FunctionFault> {
    let d = theta.len();
    let count = (DRAWN_NUMBERS / d).clamp(FEWEST_DRAWS, MOST_DRAWS);
    let mut rng = Stream::shared_instance(6);
    let seeds: Vec<u64> = (0..count).map(|_| rng.bits()).collect();
    // Sums of the differences from the stated mean: no digits are lost where the differences are small.
    let mut sums = vec![0.0; d];
    let mut sums_of_squares = vec![0.0; d];
    for draws in seeds.chunks(rows_of_call(d)) {
        let thetas = theta.repeat(draws.len());
        let clients = vec![client; draws.len()];
        let mut fields = vec![0.0; draws.len() * d];
        let rows = FieldRows { thetas: &thetas, clients: &clients, draws };
        problem.functions.fields(rows, &mut fields)?;
        for field in fields.chunks_exact(d) {
            for i in 0..d {
                let apart = field[i] - stated[i];
                sums[i] += apart;
                sums_of_squares[i] += apart * apart;
            }
        }
    }
    let rounding = MEAN_ROUNDING * libm::sqrt(dot(stated, stated));
    for coordinate in 0..d {
        let apart = sums[coordinate] / count as f64;
        let variance = (sums_of_squares[coordinate] / count as f64 - apart * apart).max(0.0);
        let error = libm::sqrt(variance / count as f64);
        if apart.abs() > MOST_ERRORS * error + rounding {
            let stated = stated[coordinate];
            let computed = stated + apart;
            let draws = count;
            return Err(FunctionFault::MeanOfDraws {
                client,
                coordinate,
                stated,
                computed,
                error,
                draws,
            });
        }
    }
    Ok(())
}

/// Compares the slope of the mean field at a point along a direction with central differences of the loss there, at two
/// distances: how far these are from each other says how exact they are, also at a kink. Nothing is compared without a
/// loss, or where a number is not finite.
fn compare_derivative(
    problem: &FunctionProblem,
    client: usize,
    [theta, direction]: [&[f64]; 2],
    slope: f64,
) -> Result<(), FunctionFault> {
    let step = 1e-5 / libm::sqrt(dot(direction, direction)).max(1e-3);
    let mut losses = Vec::with_capacity(4);
    for along in [step, -step, 2.0 * step, -2.0 * step] {
        let mut point = theta.to_vec();
        axpy(along, direction, &mut point);
        let Some(loss) = problem.functions.losses(&point, &[client]) else { return Ok(()) };
        losses.extend(loss?);
    }
    let difference = (losses[0] - losses[1]) / (2.0 * step);
    let wide = (losses[2] - losses[3]) / (4.0 * step);
    let rounding = losses.iter().fold(0.0, |most: f64, loss| most.max(loss.abs())) * 1e-14 / step;
    let within =
        4.0 * (difference - wide).abs() + 1e-6 * (slope.abs() + difference.abs()) + rounding;
    let apart = (difference - slope).abs();
    if apart.is_finite() && apart > within {
        return Err(FunctionFault::Derivative { client, difference, slope });
    }
    Ok(())
}

/// Checks that a stated θ* has d finite numbers, and that the mean field of all clients is 0 there, up to what a search
/// for it leaves.
pub fn check_optimum(problem: &FunctionProblem, stated: &[f64]) -> Result<(), FunctionFault> {
    let dimension = problem.sizes.dimension;
    if stated.len() != dimension || stated.iter().any(|x| !x.is_finite()) {
        return Err(FunctionFault::OptimumShape { dimension });
    }
    let mut direction = gaussian_point(dimension, &mut Stream::shared_instance(5));
    let length = libm::sqrt(dot(&direction, &direction));
    direction.iter_mut().for_each(|x| *x /= length);
    let mut nearby = stated.to_vec();
    axpy(1.0, &direction, &mut nearby);
    let norm = norm_of_mean_field(problem, stated)?;
    let scale = norm_of_mean_field(problem, &nearby)?;
    let is_root = norm <= OPTIMUM_ROUNDING * scale;
    if is_root { Ok(()) } else { Err(FunctionFault::NoOptimum { norm, scale }) }
}

/// ‖Σ π_c F̄_c(θ)‖.
fn norm_of_mean_field(problem: &FunctionProblem, theta: &[f64]) -> Result<f64, FunctionError> {
    let mut mean = vec![0.0; theta.len()];
    let mut field = vec![0.0; theta.len()];
    for client in 0..problem.sizes.clients {
        problem.write_mean_field(client, theta, &mut field)?;
        axpy(problem.share(client), &field, &mut mean);
    }
    Ok(libm::sqrt(dot(&mean, &mean)))
}
