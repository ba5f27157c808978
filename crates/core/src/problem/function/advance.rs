//! Local steps by calls of the function: of all clients of one or more runs by one call for each step, or of a client
//! by one call for each draw.

use super::functions::{fail, rows_of_call};
use super::instance::FunctionProblem;
use super::margins::{MarginRecords, margins_of};
use super::rows::FieldRows;
use crate::kernel::{Cohort, Local, MarginField, Proximal, axpy, descend, descend_along};
use crate::problem::oracle::mean_of_calls;
use crate::rng::Stream;

/// A client of a run under way through its local steps.
struct Walker<'a> {
    local: Local<'a, ()>,
    /// The proximal term of extended steps; `None` for plain steps, which have no batches either.
    extended: Option<Proximal<'a>>,
}

impl Walker<'_> {
    /// The number of draws whose mean is the field of a step.
    fn batch(&self) -> u64 {
        if self.extended.is_some() { self.local.batch } else { 1 }
    }
}

/// What calls read and write, kept from step to step.
#[derive(Default)]
struct CallBuffers {
    thetas: Vec<f64>,
    clients: Vec<usize>,
    draws: Vec<u64>,
    /// The place of the walker of each row among those that step together.
    walkers: Vec<usize>,
    /// The fields of the rows.
    fields: Vec<f64>,
    /// The field of the step of each walker: that of its row, or the mean of those of its batch.
    steps: Vec<f64>,
}

impl CallBuffers {
    /// Adds a row with a new draw of a walker, which has this place among those that step together.
    fn push_row(&mut self, problem: &FunctionProblem, place: usize, walker: &mut Walker<'_>) {
        let Local { client, theta, draws, .. } = &mut walker.local;
        self.draws.push(problem.next_draw(*client, draws.rng));
        self.clients.push(*client);
        self.thetas.extend_from_slice(theta);
        self.walkers.push(place);
    }

    /// Writes the fields of the rows, and forgets the rows but for their walkers.
    fn evaluate(&mut self, problem: &FunctionProblem) {
        self.fields.resize(self.thetas.len(), 0.0);
        let rows = FieldRows { thetas: &self.thetas, clients: &self.clients, draws: &self.draws };
        let evaluated = problem.functions.fields(rows, &mut self.fields);
        evaluated.unwrap_or_else(|error| fail(error));
        self.thetas.clear();
        self.clients.clear();
        self.draws.clear();
    }

    /// Evaluates the rows, and adds the field of each to the sum of its walker.
    fn add_fields(&mut self, problem: &FunctionProblem) {
        self.evaluate(problem);
        let d = problem.sizes.dimension;
        for (&place, field) in self.walkers.iter().zip(self.fields.chunks_exact(d)) {
            axpy(1.0, field, &mut self.steps[place * d..][..d]);
        }
        self.walkers.clear();
    }
}

/// Takes the local steps of the cohorts, which need not have the same clients. In each step all clients of all cohorts
/// that have one left take it together. The bits are those of the loop over the oracle, since a client has its own
/// stream, its draws are made in the same order, and rows do not depend on each other.
pub fn advance_by_rows(problem: &FunctionProblem, runs: Vec<Cohort<'_, ()>>) {
    let mut walkers = Vec::new();
    for run in runs {
        let extended = run.extended;
        walkers.extend(run.locals().map(|local| Walker { local, extended }));
    }
    let d = problem.sizes.dimension;
    let mut buffers = CallBuffers::default();
    let mut taken = 0;
    loop {
        walkers.retain(|walker| walker.local.steps > taken);
        if walkers.is_empty() {
            return;
        }
        for together in walkers.chunks_mut(rows_of_call(d)) {
            match problem.functions.margin_records() {
                Some(records) if together.iter().all(|walker| walker.extended.is_none()) => {
                    step_on_margins(problem, records, together);
                }
                _ => step_together(problem, together, &mut buffers),
            }
        }
        taken += 1;
    }
}

/// Takes one local step of each walker.
fn step_together(problem: &FunctionProblem, walkers: &mut [Walker<'_>], buffers: &mut CallBuffers) {
    let d = problem.sizes.dimension;
    if walkers.iter().all(|walker| walker.batch() == 1) {
        for (place, walker) in walkers.iter_mut().enumerate() {
            buffers.push_row(problem, place, walker);
        }
        buffers.evaluate(problem);
        buffers.walkers.clear();
        std::mem::swap(&mut buffers.fields, &mut buffers.steps);
    } else {
        average_batches(problem, walkers, buffers);
    }
    for (walker, field) in walkers.iter_mut().zip(buffers.steps.chunks_exact_mut(d)) {
        let Walker { local, extended } = walker;
        if let Some(proximal) = extended {
            proximal.add_to(local.theta, field);
        }
        descend(local.theta, field, local.correction, local.step);
    }
}

/// Takes one plain local step of each walker on a loss of margins, with the bits of [`step_together`]: θ and the field
/// are not copied.
fn step_on_margins(problem: &FunctionProblem, records: &MarginRecords, walkers: &mut [Walker<'_>]) {
    let mut drawn = Vec::with_capacity(walkers.len());
    for walker in walkers.iter_mut() {
        let Local { client, draws, .. } = &mut walker.local;
        drawn.push(records.record(*client, problem.next_draw(*client, draws.rng)));
    }
    let margins = margins_of(&drawn, walkers.iter().map(|walker| &*walker.local.theta));
    let mut slopes = vec![0.0; margins.len()];
    let evaluated = problem.functions.slopes(&margins, &mut slopes);
    evaluated.unwrap_or_else(|error| fail(error));
    for (walker, (record, slope)) in walkers.iter_mut().zip(drawn.into_iter().zip(slopes)) {
        let Local { theta, correction, step, .. } = &mut walker.local;
        let field = MarginField { record, slope, l2: records.l2() };
        descend_along(theta, field, correction, *step);
    }
}

/// Writes the mean of the fields of each walker's batch to the steps, with the bits of
/// [`mean_of_calls`](crate::problem::mean_of_calls). The batches of all walkers may be more rows than one call has.
fn average_batches(
    problem: &FunctionProblem,
    walkers: &mut [Walker<'_>],
    buffers: &mut CallBuffers,
) {
    let d = problem.sizes.dimension;
    buffers.steps.clear();
    // A single field is added to −0, which changes no bit of it, and a sum begins at 0.
    for walker in walkers.iter() {
        let begin = if walker.batch() == 1 { -0.0 } else { 0.0 };
        buffers.steps.extend(std::iter::repeat_n(begin, d));
    }
    for (place, walker) in walkers.iter_mut().enumerate() {
        for _ in 0..walker.batch() {
            if buffers.draws.len() == rows_of_call(d) {
                buffers.add_fields(problem);
            }
            buffers.push_row(problem, place, walker);
        }
    }
    buffers.add_fields(problem);
    for (walker, field) in walkers.iter().zip(buffers.steps.chunks_exact_mut(d)) {
        let batch = walker.batch();
        if batch > 1 {
            field.iter_mut().for_each(|x| *x /= batch as f64);
        }
    }
}

/// Takes the local steps of a cohort by a call for each draw, with the bits of the loop over the oracle. What a draw
/// reads is read ahead while the field of the draw before it is evaluated.
pub fn advance_by_draws(problem: &FunctionProblem, cohort: Cohort<'_, ()>) {
    let d = problem.sizes.dimension;
    let mut field = vec![0.0; d];
    let mut one = vec![0.0; d];
    let extended = cohort.extended;
    cohort.each(|local| {
        let Local { client, theta, correction, draws, step, steps, .. } = local;
        let batch = if extended.is_some() { local.batch } else { 1 };
        let mut ahead = DrawsAhead::new(problem, client, steps * batch);
        for _ in 0..steps {
            mean_of_calls(batch, &mut field, &mut one, |out| {
                let drawn = [ahead.next(draws.rng)];
                let rows = FieldRows { thetas: theta, clients: &[client], draws: &drawn };
                problem.functions.fields(rows, out).unwrap_or_else(|error| fail(error));
            });
            if let Some(proximal) = extended {
                proximal.add_to(theta, &mut field);
            }
            descend(theta, &field, correction, step);
        }
    });
}

/// The draws of a client in a round, of which one is made ahead of its use.
struct DrawsAhead<'a> {
    problem: &'a FunctionProblem,
    client: usize,
    /// The draw that is used next; `None` before the first.
    next: Option<u64>,
    /// How many draws are left to be made.
    left: u64,
}

impl<'a> DrawsAhead<'a> {
    fn new(problem: &'a FunctionProblem, client: usize, count: u64) -> Self {
        Self { problem, client, next: None, left: count }
    }

    /// Makes a draw and has read ahead what its field reads.
    fn make(&mut self, stream: &mut Stream) -> u64 {
        self.left -= 1;
        let draw = self.problem.next_draw(self.client, stream);
        self.problem.functions.read_ahead(self.client, draw);
        draw
    }

    /// The next of the draws, of which there must be one left, after the one that follows it has been made.
    fn next(&mut self, stream: &mut Stream) -> u64 {
        let draw = self.next.take().unwrap_or_else(|| self.make(stream));
        if self.left > 0 {
            self.next = Some(self.make(stream));
        }
        draw
    }
}
