//! Algorithms in Python: a callable that returns an iterator of estimates, one of each round.

use super::clients::PythonClients;
use super::code::{hash_source, keyword_values, traceback};
use super::numbers::{floats, tuple};
use super::watch::RoundClock;
use exactfed::algorithm::custom::{CustomDefinition, CustomRun, FailedRun, StartCustom};
use exactfed::federated::{Conditions, Cost, RoundClients, Run};
use exactfed::registered::register;
use exactfed::round_program::{Program, ProgramError, Traced};
use numpy::{PyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use std::marker::PhantomData;
use std::sync::Arc;
use thiserror::Error;

/// An algorithm whose runs are iterators in Python.
struct PythonAlgorithm {
    /// A callable that gets the clients, θ_0, γ, H and the keys of the algorithm, and returns an iterator of estimates.
    start: Py<PyAny>,
    /// A callable that follows the rounds symbolically: it gets the same clients twice, θ_0, γ, H, the keys and T, and
    /// returns (true, the program of the rounds as JSON) or (false, why there is none).
    trace: Py<PyAny>,
    /// The most seconds of a round in Python.
    patience: u64,
}

/// A run of an algorithm in Python.
struct PythonRun<'p> {
    clients: Py<PythonClients>,
    /// What the algorithm returned, which does a round whenever it is asked for the next estimate.
    iterator: Py<PyIterator>,
    clock: Arc<RoundClock>,
    /// The estimate that the last round yielded, θ_0 before the first; d numbers.
    estimate: Vec<f64>,
    /// The cost of the rounds so far.
    cost: Cost,
    /// The number of rounds that were begun.
    round: u64,
    /// Why the run has failed, if it has: no further round is done then.
    failure: Option<String>,
    /// The clients refer to the problem.
    problem: PhantomData<&'p ()>,
}

impl Drop for PythonRun<'_> {
    /// The clients must not be used when the problem is gone.
    fn drop(&mut self) {
        self.clients.get().end();
    }
}

impl StartCustom for PythonAlgorithm {
    /// Calls the algorithm's code up to its first round. If that fails, the result is a run that has failed, which the
    /// engine reports with the traceback.
    fn start<'p>(
        &self,
        settings: &CustomRun<'_>,
        clients: RoundClients<'p>,
        from: &Conditions<'_>,
    ) -> Box<dyn Run + 'p> {
        let estimate = from.start.to_vec();
        let clock = RoundClock::new(self.patience);
        let begun = Python::attach(|py| {
            // SAFETY: the run below ends its clients when it is dropped, within 'p; without a run
            // they are ended here.
            let clients = unsafe { PythonClients::new(clients, None, from.rounds, clock.clone()) };
            let clients = Py::new(py, clients).map_err(|e| traceback(py, &e))?;
            let begin = || -> PyResult<Py<PyIterator>> {
                let (theta, gamma, steps, values) = arguments(py, settings, from)?;
                let made = self.start.bind(py).call1((&clients, theta, gamma, steps, values))?;
                Ok(made.try_iter()?.unbind())
            };
            match clock.during(begin) {
                Ok(iterator) => Ok((clients, iterator)),
                Err(e) => {
                    clients.get().end();
                    Err(ended_by(py, &e, &clock))
                }
            }
        });
        let (clients, iterator) = match begun {
            Ok(begun) => begun,
            Err(reason) => return Box::new(FailedRun { estimate, reason }),
        };
        let cost = Cost::default();
        let round = 0;
        let failure = None;
        let problem = PhantomData;
        Box::new(PythonRun { clients, iterator, clock, estimate, cost, round, failure, problem })
    }

    /// Follows the rounds of the algorithm symbolically, on two values of the same clients, since what is traced is
    /// compared with a run.
    fn program(
        &self,
        settings: &CustomRun<'_>,
        clients: [RoundClients<'_>; 2],
        from: &Conditions<'_>,
    ) -> Traced {
        let clock = RoundClock::new(self.patience);
        let traced = Python::attach(|py| -> PyResult<(bool, String)> {
            // SAFETY: both are ended below, before what they refer to is gone.
            let [first, second] = clients.map(|clients| {
                let own = unsafe { PythonClients::new(clients, None, from.rounds, clock.clone()) };
                Py::new(py, own)
            });
            let first = first?;
            let second = second?;
            let call = || -> PyResult<(bool, String)> {
                let (theta, gamma, steps, values) = arguments(py, settings, from)?;
                let all = (&first, &second, theta, gamma, steps, values, from.rounds);
                self.trace.bind(py).call1(all)?.extract()
            };
            let found = clock.during(call);
            [first, second].iter().for_each(|clients| clients.get().end());
            found
        });
        let (known, text) =
            traced.map_err(|e| ProgramError::Refused(format!("it could not be traced: {e}")))?;
        if !known {
            return Err(ProgramError::Refused(text));
        }
        let program: Program =
            serde_json::from_str(&text).map_err(|e| ProgramError::Refused(e.to_string()))?;
        program.check().map(|()| program)
    }
}

/// Why what an algorithm yielded is no estimate.
#[derive(Debug, Error)]
enum YieldError {
    #[error("it yielded nothing: write `yield theta`")]
    Nothing,
    #[error("{0}")]
    NoNumbers(String),
    #[error("it yielded an array of shape {shape}, and θ has the shape ({dimension},)")]
    OtherShape { shape: String, dimension: usize },
}

/// θ_0, γ, H, and the values of the algorithm's keys by name.
type Arguments<'py> = (Bound<'py, PyArray1<f64>>, f64, u64, Bound<'py, PyDict>);

/// The arguments of an algorithm after the clients.
fn arguments<'py>(
    py: Python<'py>,
    settings: &CustomRun<'_>,
    from: &Conditions<'_>,
) -> PyResult<Arguments<'py>> {
    let theta = PyArray1::from_slice(py, from.start);
    let values = keyword_values(py, settings.values)?;
    Ok((theta, settings.step_size, settings.local_steps, values))
}

impl PythonRun<'_> {
    /// Takes what a round yielded as the estimate: an array of d numbers.
    fn take(&mut self, value: &Bound<'_, PyAny>) -> Result<(), YieldError> {
        if value.is_none() {
            return Err(YieldError::Nothing);
        }
        let array = floats(value, "what it yielded")
            .map_err(|e| YieldError::NoNumbers(e.value(value.py()).to_string()))?;
        if array.shape() != [self.estimate.len()] {
            return Err(YieldError::OtherShape {
                shape: tuple(array.shape()),
                dimension: self.estimate.len(),
            });
        }
        let rows = array.as_array();
        self.estimate.iter_mut().zip(rows.iter()).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

impl Run for PythonRun<'_> {
    /// Asks the iterator for the next estimate, which does a round. Nothing is done once the run has failed.
    fn round(&mut self) {
        if self.failure.is_some() {
            return;
        }
        self.round += 1;
        let ended = Python::attach(|py| {
            let mut iterator = self.iterator.bind(py).clone();
            let taken = match self.clock.during(|| iterator.next()) {
                Some(Ok(value)) => self.take(&value).map_err(|error| error.to_string()),
                Some(Err(e)) => Err(ended_by(py, &e, &self.clock)),
                None => {
                    return Err(format!(
                        "it ended before round {}: an algorithm yields an estimate after every round, as often as it is asked to",
                        self.round
                    ));
                }
            };
            taken.map_err(|why| format!("round {}: {why}", self.round))
        });
        self.cost = self.clients.get().end_round();
        self.failure = ended.err();
    }

    fn estimate(&self) -> &[f64] {
        &self.estimate
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// The text on what ended the code of an algorithm: the exception with its traceback and, before it, why the clock
/// sent it, if it did.
fn ended_by(py: Python<'_>, error: &PyErr, clock: &RoundClock) -> String {
    let why = clock.ended().map_or(String::new(), |why| format!("{why}\n"));
    why + &traceback(py, error)
}

/// Registers an algorithm, for the decorator in Python: its definition as JSON, to which the hash of its source is
/// added here; the callables that start a run and that trace its rounds ([`PythonAlgorithm`]); and the most seconds of
/// a round in Python. It is an error if the definition is wrong, or the name is taken.
#[pyfunction]
pub fn register_algorithm(
    definition: &str,
    start: Py<PyAny>,
    trace: Py<PyAny>,
    patience: u64,
) -> PyResult<()> {
    let known: Result<CustomDefinition, _> = serde_json::from_str(definition);
    let mut known = known.map_err(|e| PyValueError::new_err(e.to_string()))?;
    hash_source(&mut known.definition);
    let algorithm = PythonAlgorithm { start, trace, patience };
    register(|registry| registry.add_algorithm(known, algorithm))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
