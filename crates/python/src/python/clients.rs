//! The clients of a run, as an algorithm in Python receives them.

use super::compressor::compressor;
use super::draw::{PythonDraw, RecordSource, indices, record_table};
use super::numbers::{
    counts, counts_per_client, flat, float, floats, floats_per_client, tuple, wrong_shape,
};
use super::participants::{
    CohortSize, client_indices, cohort_size, has_mean, no_mean, scheme, weights_of_clients,
};
use super::watch::RoundClock;
use exactfed::algorithm::Instance;
use exactfed::compression::Compressor;
use exactfed::federated::{ControlVariates, Cost, Draw, ErrorFeedback, LocalWork, RoundClients};
use exactfed::kernel::{Members, Proximal};
use exactfed_runner::panics::lock;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::{Arc, Mutex};

/// The clients of a run: an algorithm receives them, and does its rounds with them.
///
/// In a round, an algorithm calls :meth:`local_steps` (or :meth:`fields`) and :meth:`mean`, and
/// yields θ. Draws are those of every algorithm on the same replicate; what is done is counted as
/// the cost of the run.
#[pyclass(frozen, module = "exactfed", name = "Clients")]
pub struct PythonClients {
    /// The clients themselves; `None` once the run has ended.
    inner: Mutex<Option<RoundClients<'static>>>,
    /// The instance to which the clients refer, where no run keeps it.
    _instance: Option<Arc<dyn Instance>>,
    /// N, the number of clients.
    #[pyo3(get)]
    n: usize,
    /// d, the dimension of θ.
    #[pyo3(get, name = "dim")]
    d: usize,
    /// π_k, N numbers, if they are not equal.
    shares: Option<Vec<f64>>,
    /// T of the run.
    #[pyo3(get)]
    rounds: u64,
    /// Counts the time of rounds in Python, without that of the methods below that leave Python.
    clock: Arc<RoundClock>,
    /// The generator of [`Self::rng`], made at its first use.
    generator: PyOnceLock<Py<PyAny>>,
}

impl PythonClients {
    /// The clients of a run of this number of rounds, for Python.
    ///
    /// # Safety
    /// What they refer to must exist until [`Self::end`] has returned, or be `instance`.
    pub unsafe fn new(
        clients: RoundClients<'_>,
        instance: Option<Arc<dyn Instance>>,
        rounds: u64,
        clock: Arc<RoundClock>,
    ) -> Self {
        // SAFETY: the lifetime alone changes, and nothing is read after it.
        //
        // Where the clients refer to `instance`, this value keeps it, and `inner`, which is declared before it, is
        // dropped before it. Otherwise what they refer to exists until `end` has returned, by the caller's promise.
        // `end` takes the lock, so that it waits for calls of other threads, and leaves `None`.
        //
        // No reference to what the clients refer to leaves `locked`: its closure has to work for clients of any
        // lifetime, so that the type of what it returns cannot have that lifetime.
        let clients: RoundClients<'static> =
            unsafe { std::mem::transmute::<RoundClients<'_>, RoundClients<'static>>(clients) };
        Self {
            n: clients.count(),
            d: clients.dim(),
            shares: clients.unequal_shares().map(<[f64]>::to_vec),
            inner: Mutex::new(Some(clients)),
            _instance: instance,
            rounds,
            clock,
            generator: PyOnceLock::new(),
        }
    }

    /// Ends the run: from now on every call is an error.
    pub fn end(&self) {
        *lock(&self.inner) = None;
    }

    /// Ends a round and returns what the rounds so far have cost; no cost once the run has ended.
    pub fn end_round(&self) -> Cost {
        self.locked(|clients| {
            clients.end_round();
            clients.cost()
        })
        .unwrap_or_default()
    }

    /// Calls `f` with the clients under their lock; an error once the run has ended.
    fn locked<T>(&self, f: impl FnOnce(&mut RoundClients<'_>) -> T) -> PyResult<T> {
        let done = lock(&self.inner).as_mut().map(f);
        done.ok_or_else(|| PyRuntimeError::new_err("the run of these clients has ended"))
    }

    /// As [`locked`](Self::locked), but without holding the interpreter, whose other threads go on. The time of the
    /// call does not count as time of the round's code ([`RoundClock::outside`]).
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut RoundClients<'_>) -> T + Send,
    ) -> PyResult<T> {
        self.clock.outside(|| py.detach(|| self.locked(f)))
    }

    /// Whether an argument, called `what` in errors, has a row of d numbers for each client, shape (N, d), rather than
    /// one row for all clients, shape (d,).
    ///
    /// # Errors
    /// If it has another shape.
    fn has_row_per_client(
        &self,
        what: &str,
        array: &PyReadonlyArrayDyn<'_, f64>,
    ) -> PyResult<bool> {
        match array.shape() {
            [d] if *d == self.d => Ok(false),
            [n, d] if (*n, *d) == (self.n, self.d) => Ok(true),
            shape => {
                let n = self.n;
                let d = self.d;
                Err(wrong_shape(what, shape, &format!("({d},) or ({n}, {d})")))
            }
        }
    }

    /// N and d.
    pub fn sizes(&self) -> (usize, usize) {
        (self.n, self.d)
    }

    /// Checks that an argument, called `what` in errors, has a row for each client.
    ///
    /// # Errors
    /// If its shape is not (N, d).
    pub fn check_rows(&self, what: &str, array: &PyReadonlyArrayDyn<'_, f64>) -> PyResult<()> {
        if array.shape() == [self.n, self.d] {
            return Ok(());
        }
        Err(wrong_shape(what, array.shape(), &tuple(&[self.n, self.d])))
    }

    /// Checks that an argument, called `what` in errors, is one vector.
    ///
    /// # Errors
    /// If its shape is not (d,).
    pub fn check_vector(&self, what: &str, array: &PyReadonlyArrayDyn<'_, f64>) -> PyResult<()> {
        if array.shape() == [self.d] {
            return Ok(());
        }
        Err(wrong_shape(what, array.shape(), &tuple(&[self.d])))
    }

    /// The array of shape (N, d) into which results are written: `out`, or a new one of zeros.
    ///
    /// # Errors
    /// If `out` has another shape, or is not contiguous.
    fn output<'py>(
        &self,
        py: Python<'py>,
        out: Option<Bound<'py, PyArray2<f64>>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let Some(out) = out else { return Ok(PyArray2::zeros(py, [self.n, self.d], false)) };
        if out.shape() != [self.n, self.d] {
            return Err(wrong_shape("out", out.shape(), &tuple(&[self.n, self.d])));
        }
        if !out.is_c_contiguous() {
            return Err(PyValueError::new_err("out must be contiguous, in C order"));
        }
        Ok(out)
    }

    /// Calls `write` with the points `theta`, of shape (d,) or (N, d), and the N rows of d numbers of `out`, or of a
    /// new array, which is returned.
    ///
    /// # Errors
    /// If an array has another shape, or why `write` cannot evaluate fields.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyArray2<f64>>>,
        write: impl FnOnce(&mut RoundClients<'_>, &[f64], &mut [f64]) -> Result<(), String> + Send,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let theta = floats(theta, "theta")?;
        self.has_row_per_client("theta", &theta)?;
        let points = flat(&theta);
        let out = self.output(py, out)?;
        let mut writing = out.try_readwrite().map_err(|_| not_writable())?;
        let fields = writing.as_slice_mut()?;
        let written = self.with(py, |clients| write(clients, &points, fields))?;
        drop(writing);
        written.map_err(PyValueError::new_err)?;
        Ok(out)
    }
}

impl RecordSource for Py<PythonClients> {
    fn records_of_draw<'py>(
        &self,
        py: Python<'py>,
        draw: &Draw,
    ) -> PyResult<Option<Bound<'py, PyArray2<i64>>>> {
        let clients = self.get();
        let table = clients.with(py, |all| record_table(all, draw))?;
        let Some((numbers, places)) = table.map_err(PyValueError::new_err)? else {
            return Ok(None);
        };
        Ok(Some(PyArray1::from_vec(py, numbers).reshape([clients.n, places])?))
    }
}

#[pymethods]
impl PythonClients {
    /// π_k, the shares of the clients, of shape (N,); their sum is 1.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        match &self.shares {
            Some(shares) => PyArray1::from_slice(py, shares),
            None => PyArray1::from_vec(py, vec![1.0 / self.n as f64; self.n]),
        }
    }

    /// The indices of the clients that take part in this round.
    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let members = self.with(py, |clients| indices(clients.members()))?;
        Ok(PyArray1::from_vec(py, members))
    }

    /// Ends a round where no run does: of clients that a user steps through by himself.
    fn _end_round(&self) {
        self.end_round();
    }

    fn __len__(&self) -> usize {
        self.n
    }

    fn __repr__(&self) -> String {
        format!("<{} clients in {} dimensions>", self.n, self.d)
    }

    /// Run the local steps of the clients that take part, and return where they end.
    ///
    /// Client k takes H times θ ← θ − γ (F_k(θ; Z) + ξ_k + μ (θ − anchor)). F_k is its field (the
    /// gradient of a loss) and Z a draw of its own stream. Other threads of Python go on meanwhile.
    ///
    /// Parameters
    /// ----------
    /// theta
    ///     Where all clients begin, of shape (d,), or where each begins, (N, d).
    /// gamma
    ///     The step size γ, or those of the clients, of shape (N,).
    /// H
    ///     The number of local steps, 1 or more, or those of the clients, of shape (N,).
    /// corrections
    ///     ξ_k, of shape (N, d), or (d,) for all; 0 by default.
    /// batch
    ///     The draws that are averaged in a local step.
    /// proximal, anchor
    ///     μ and the point to which it pulls, of shape (d,), by default ``theta``.
    /// out
    ///     The array into which the ends are written, of shape (N, d), contiguous; a new one by
    ///     default.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     θ_k, of shape (N, d). Rows of clients that take no part are where they began.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a shape or a number is not as above.
    #[pyo3(
        signature = (theta, gamma, H, corrections = None, *, batch = 1, proximal = None, anchor = None, out = None),
        text_signature = "(theta, gamma, H, corrections=None, *, batch=1, proximal=0.0, anchor=None, out=None)"
    )]
    #[allow(non_snake_case, clippy::too_many_arguments)]
    fn local_steps<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        gamma: &Bound<'py, PyAny>,
        H: &Bound<'py, PyAny>,
        corrections: Option<&Bound<'py, PyAny>>,
        batch: i64,
        proximal: Option<&Bound<'py, PyAny>>,
        anchor: Option<&Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyArray2<f64>>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let theta = floats(theta, "theta")?;
        let own = self.has_row_per_client("theta", &theta)?;
        let from = flat(&theta);
        let corrections = corrections.map(|xi| floats(xi, "corrections")).transpose()?;
        if let Some(xi) = &corrections {
            self.has_row_per_client("corrections", xi)?;
        }
        let xi = corrections.as_ref().map(flat);
        let anchor = anchor.map(|anchor| floats(anchor, "anchor")).transpose()?;
        if let Some(anchor) = &anchor {
            self.check_vector("anchor", anchor)?;
        }
        let anchor = anchor.as_ref().map(flat);
        let proximal = proximal.map_or(Ok(0.0), |mu| float(mu, "proximal"))?;
        let pulled = match (proximal, &anchor) {
            (0.0, _) => None,
            (weight, Some(anchor)) => Some(Proximal { weight, anchor }),
            (weight, None) if !own => Some(Proximal { weight, anchor: &from }),
            (_, None) => {
                let message = "a proximal term needs an anchor where theta has a row per client";
                return Err(PyValueError::new_err(message));
            }
        };
        let step_sizes = floats_per_client(gamma, "gamma", self.n)?;
        let steps = counts_per_client(H, "H", self.n)?;
        let batch = counts(&[batch as f64], "batch")?[0];
        let out = self.output(py, out)?;
        let mut writing = out.try_readwrite().map_err(|_| not_writable())?;
        let ends = writing.as_slice_mut()?;
        let corrections = xi.as_deref();
        let work = LocalWork {
            step_sizes: &step_sizes,
            steps: &steps,
            batch,
            corrections,
            proximal: pulled,
        };
        // Clients with starts of their own begin at their rows of `ends`, and clients that take no part stay there.
        self.with(py, |clients| {
            if own {
                ends.copy_from_slice(&from);
            } else if clients.members().indices().len() < clients.count() {
                ends.chunks_exact_mut(from.len()).for_each(|row| row.copy_from_slice(&from));
            }
            clients.local_steps((!own).then_some(&from[..]), &work, ends);
        })?;
        drop(writing);
        Ok(out)
    }

    /// Evaluate the gradients, or other fields, of the clients that take part.
    ///
    /// Parameters
    /// ----------
    /// theta
    ///     The point of all clients, of shape (d,), or of each, (N, d).
    /// calls
    ///     The number of draws over which each client takes the mean, or a :class:`Draw` that
    ///     :meth:`draw` has returned in this run.
    /// out
    ///     The array into which the fields are written, of shape (N, d); a new one by default.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     The mean of F_k(θ; Z) over the draws, of shape (N, d); rows of clients that take no part
    ///     are 0 in a new array.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If a shape or a number is not as above, or the draw is of another run or lacks a client
    ///     that takes part.
    #[pyo3(
        signature = (theta, calls = None, *, out = None),
        text_signature = "(theta, calls=1, *, out=None)"
    )]
    fn fields<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        calls: Option<&Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyArray2<f64>>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let draw = calls.and_then(|calls| calls.cast::<PythonDraw>().ok());
        if let Some(draw) = draw {
            let draw = draw.get().draw();
            return self.evaluate(py, theta, out, |clients, points, fields| {
                clients.fields_of_draw(points, draw, fields).map_err(|error| error.to_string())
            });
        }
        let calls = calls.map_or(Ok(1), |calls| calls.extract::<i64>())?;
        let calls = counts(&[calls as f64], "calls")?[0];
        self.evaluate(py, theta, out, |clients, points, fields| {
            clients.fields(points, calls, fields);
            Ok(())
        })
    }

    /// Evaluate the mean fields of the clients that take part, without a draw.
    ///
    /// The mean field F̄_k is the expectation of a draw: the gradient over all records of the
    /// client, where it has records. It counts as many gradients as the client has records, and as
    /// one where there are none.
    ///
    /// Parameters
    /// ----------
    /// theta
    ///     The point of all clients, of shape (d,), or of each, (N, d).
    /// out
    ///     The array into which the fields are written, of shape (N, d); a new one by default.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     F̄_k(θ), of shape (N, d); rows of clients that take no part are 0 in a new array.
    #[pyo3(signature = (theta, *, out = None))]
    fn mean_fields<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyArray2<f64>>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.evaluate(py, theta, out, |clients, points, fields| {
            clients.mean_fields(points, fields);
            Ok(())
        })
    }

    /// Return the mean losses of the clients that take part, over the records that they hold.
    ///
    /// Penalties are left out, as in the metric ``train-loss``. It counts as many gradients as
    /// :meth:`mean_fields`.
    ///
    /// Parameters
    /// ----------
    /// theta
    ///     The point, of shape (d,).
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     f_k(θ), of shape (N,); nan for clients that take no part.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If ``theta`` is not as above, or the problem has no losses of clients, such as one
    ///     without records.
    fn losses<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let theta = floats(theta, "theta")?;
        if theta.shape() != [self.d] {
            return Err(wrong_shape("theta", theta.shape(), &tuple(&[self.d])));
        }
        let point = flat(&theta).into_owned();
        let losses = self.with(py, |clients| clients.losses(&point))?;
        let losses = losses
            .ok_or_else(|| PyValueError::new_err("the clients of this problem have no losses"))?;
        Ok(PyArray1::from_vec(py, losses))
    }

    /// Draw for the clients that take part, and keep the draw: :meth:`fields` evaluates it at any
    /// number of points.
    ///
    /// The clients have then drawn as after ``fields(theta, calls)``, which equals
    /// ``fields(theta, draw(calls))`` to the last bit. A Markov chain moves once for each of the
    /// calls, however often the draw is evaluated. A draw may be kept over rounds of its run. What
    /// is evaluated counts as gradients, the draw itself does not.
    ///
    /// Parameters
    /// ----------
    /// calls
    ///     The number of draws over which each client takes the mean.
    ///
    /// Returns
    /// -------
    /// Draw
    ///     The draw, of the clients that take part now.
    #[pyo3(signature = (calls = 1))]
    fn draw(slf: &Bound<'_, Self>, py: Python<'_>, calls: i64) -> PyResult<PythonDraw> {
        let calls = counts(&[calls as f64], "calls")?[0];
        let draw = slf.get().with(py, |clients| clients.draw(calls))?;
        Ok(PythonDraw::new(draw, Box::new(slf.clone().unbind())))
    }

    /// The number of records that each client draws from, of shape (N,); ``None`` where the problem
    /// draws no records.
    #[getter]
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let counts = self.with(py, |clients| clients.record_counts())?;
        Ok(counts.map(|all| PyArray1::from_iter(py, all.into_iter().map(|count| count as i64))))
    }

    /// Return the mean of the rows of the clients that take part, by their shares, of shape (d,).
    ///
    /// ``rows`` has the shape (N, d). The sum has the order of the built-in algorithms, and so its
    /// bits. In a round whose clients have weights w_k of their own (:meth:`participate`,
    /// :meth:`cohort`) it is Σ w_k rows_k over those who take part.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If nobody takes part and no weights are given.
    fn mean<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = floats(rows, "rows")?;
        self.check_rows("rows", &rows)?;
        let out = PyArray1::zeros(py, [self.d], false);
        let mut writing = out.readwrite();
        let mean = writing.as_slice_mut()?;
        let rows = flat(&rows);
        let is_defined = self.locked(|clients| {
            let is_defined = has_mean(clients);
            if is_defined {
                clients.mean(&rows, mean);
            }
            is_defined
        })?;
        drop(writing);
        if is_defined { Ok(out) } else { Err(no_mean()) }
    }

    /// Let these clients alone take part until the round ends.
    ///
    /// Parameters
    /// ----------
    /// indices
    ///     The clients, numbered from 0, each once, in any order. There may be none: then no client
    ///     works, and the round costs nothing.
    /// weights
    ///     w_k of these clients, in the same order, by which :meth:`mean` sums their rows; by
    ///     default their shares, divided by the sum of these.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If an index is no client, or there is not one finite weight for each of them.
    #[pyo3(signature = (indices, weights = None))]
    fn participate(
        &self,
        py: Python<'_>,
        indices: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let named = client_indices(indices, self.n)?;
        let weights =
            weights.map(|weights| weights_of_clients(weights, &named, self.n)).transpose()?;
        self.with(py, |clients| clients.participate(Members::new(named), weights))
    }

    /// Select the clients that alone take part until the round ends, and return their indices in
    /// increasing order.
    ///
    /// They are those of the built-in algorithms with ``cohort = size`` and this ``participation``.
    ///
    /// Parameters
    /// ----------
    /// size
    ///     How many clients are drawn, or a fraction of all between 0 and 1.
    /// participation
    ///     The scheme, as manifests write it: ``"rescaled"``, ``{"bernoulli": 0.3}``. By default
    ///     ``size`` clients are drawn without replacement, and weigh by their shares. With a scheme
    ///     whose weights w_k are no shares divided by their sum, :meth:`mean` returns Σ w_k rows_k,
    ///     so that θ moves by ``clients.mean(ends - theta)``.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the scheme is none for these clients.
    #[pyo3(signature = (size = None, *, participation = None))]
    fn cohort<'py>(
        &self,
        py: Python<'py>,
        size: Option<CohortSize>,
        participation: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let size = size.map(|size| cohort_size(size, self.n)).transpose()?;
        let members = match (participation, size) {
            (None, None) => {
                let message = "a cohort needs a size, or `participation` with a scheme";
                return Err(PyValueError::new_err(message));
            }
            (None, Some(size)) => self.with(py, |clients| {
                clients.draw_cohort(size);
                indices(clients.members())
            })?,
            (Some(written), size) => {
                let scheme = scheme(written, size, self.n, self.shares.as_deref())?;
                self.with(py, |clients| {
                    clients.draw_by(&scheme, size);
                    indices(clients.members())
                })?
            }
        };
        Ok(PyArray1::from_vec(py, members))
    }

    /// Compress a message of each client that takes part, or one of the server, and count its bits.
    ///
    /// Draws are from streams of the clients, or of the server, that nothing else uses. A message takes
    /// the place of one of the vectors of 8 d bytes that the decorator says a round sends; where
    /// :meth:`charge` says what a round sends, it is counted in addition.
    ///
    /// Parameters
    /// ----------
    /// rows
    ///     A vector of each client, of shape (N, d), or the server's, (d,), which is sent to each client
    ///     that takes part.
    /// compressor
    ///     A :class:`Compressor`, or its text.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     What is received, of the same shape; rows of clients that take no part are 0.
    fn compress<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = compressor)] compressor: Compressor,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = floats(rows, "rows")?;
        let is_of_clients = self.has_row_per_client("rows", &rows)?;
        let rows = flat(&rows);
        if !is_of_clients {
            let out = PyArray1::zeros(py, [self.d], false);
            let mut writing = out.readwrite();
            let sent = writing.as_slice_mut()?;
            self.with(py, |clients| clients.compress_of_server(&rows, compressor, sent))?;
            drop(writing);
            return Ok(out.into_any());
        }
        let out = PyArray2::zeros(py, [self.n, self.d], false);
        let mut writing = out.readwrite();
        let sent = writing.as_slice_mut()?;
        self.with(py, |clients| clients.compress(&rows, compressor, sent))?;
        drop(writing);
        Ok(out.into_any())
    }

    /// Return memories of the clients, all 0, for messages that ``compressor`` shortens.
    fn error_feedback(
        &self,
        #[pyo3(from_py_with = compressor)] compressor: Compressor,
    ) -> PythonFeedback {
        PythonFeedback::new(self.n, self.d, compressor)
    }

    /// Count what this round sends, in place of what the decorator says of every round.
    ///
    /// Messages of :meth:`compress` are counted in addition.
    ///
    /// Parameters
    /// ----------
    /// communications
    ///     Exchanges between server and clients.
    /// vectors
    ///     Messages of all clients and the server together: ``2 * clients.n`` where the decorator
    ///     says ``vectors=2``, which are those of each client.
    /// bytes, bits
    ///     Their bytes and bits, which add up; by default 8 d bytes each. The bytes of a run are all its
    ///     bits divided by 8, rounded up.
    #[pyo3(signature = (communications = 1, *, vectors = 0, bytes = None, bits = None))]
    fn charge(
        &self,
        py: Python<'_>,
        communications: u64,
        vectors: u64,
        bytes: Option<u64>,
        bits: Option<u64>,
    ) -> PyResult<()> {
        let whole = if bits.is_some() { 0 } else { 8 * vectors * self.d as u64 };
        self.with(py, |clients| {
            clients.charge(communications, vectors, bytes.unwrap_or(whole));
            clients.charge_bits(bits.unwrap_or(0));
        })
    }

    /// A ``numpy.random.Generator`` for draws of the algorithm itself, which depend on the seed and
    /// the replicate alone.
    #[getter]
    fn rng(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.generator.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
            let seed = self.with(py, |clients| [clients.bits(), clients.bits()])?;
            let random = py.import("numpy")?.getattr("random")?;
            let bits = random.getattr("PCG64")?.call1((seed.to_vec(),))?;
            Ok(random.getattr("Generator")?.call1((bits,))?.unbind())
        })?;
        Ok(made.clone_ref(py))
    }

    /// Return control variates of the clients, all 0.
    fn control_variates(&self) -> PythonVariates {
        let shares = self.shares.as_deref();
        let variates = ControlVariates::new(self.n, self.d, shares);
        PythonVariates { inner: Mutex::new(variates), n: self.n, d: self.d }
    }
}

/// The error for an array `out` that cannot be written to, or is also an argument.
fn not_writable() -> PyErr {
    PyValueError::new_err("out must be writable, and another array than the arguments")
}

/// Control variates c_k of the clients, with the arithmetic of the built-in Scaffold.
#[pyclass(frozen, module = "exactfed", name = "ControlVariates")]
pub struct PythonVariates {
    inner: Mutex<ControlVariates>,
    /// N, the number of clients.
    n: usize,
    /// d, the dimension of θ.
    d: usize,
}

#[pymethods]
impl PythonVariates {
    /// ξ_k = c̄ − c_k, of shape (N, d).
    #[getter]
    fn corrections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        PyArray1::from_slice(py, lock(&self.inner).corrections()).reshape([self.n, self.d])
    }

    /// Learn from a round, and return the mean of the ends, of shape (d,); if the clients that take
    /// part have weights w_k of their own, θ + Σ w_k (θ_k − θ).
    ///
    /// c_k ← c_k − c̄ + (θ_t − θ_k)/(γ H) for each client that takes part (Karimireddy et al. 2020,
    /// option II), then c̄ is their mean by shares.
    ///
    /// Parameters
    /// ----------
    /// clients
    ///     The clients.
    /// theta
    ///     θ_t, where the round began, of shape (d,).
    /// ends
    ///     θ_k, where it ended, of shape (N, d).
    /// length
    ///     γ H, or that of each client, of shape (N,).
    #[pyo3(signature = (clients, theta, ends, length))]
    fn learn<'py>(
        &self,
        py: Python<'py>,
        clients: &PythonClients,
        theta: &Bound<'py, PyAny>,
        ends: &Bound<'py, PyAny>,
        length: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let theta = floats(theta, "theta")?;
        let ends = floats(ends, "ends")?;
        if (clients.n, clients.d) != (self.n, self.d) {
            return Err(PyValueError::new_err("the control variates are those of other clients"));
        }
        if clients.has_row_per_client("theta", &theta)?
            || !clients.has_row_per_client("ends", &ends)?
        {
            let message = format!(
                "theta must have the shape ({},), and ends ({}, {})",
                self.d, self.n, self.d
            );
            return Err(PyValueError::new_err(message));
        }
        let mut lengths = floats_per_client(length, "length", self.n)?;
        if let Some(bad) = lengths.iter().find(|length| !(length.is_finite() && **length > 0.0)) {
            return Err(PyValueError::new_err(format!(
                "length is γ H, a finite number above 0, not {bad}"
            )));
        }
        // A single length is that of all clients.
        lengths.resize(self.n, lengths[0]);
        let out = PyArray1::zeros(py, [self.d], false);
        let mut writing = out.readwrite();
        let after = writing.as_slice_mut()?;
        let before = flat(&theta);
        let ends = flat(&ends);
        let is_defined = clients.locked(|clients| {
            let is_defined = has_mean(clients);
            if is_defined {
                let mut variates = lock(&self.inner);
                clients.average_and_learn(&mut variates, &before, &ends, &lengths, after);
            }
            is_defined
        })?;
        drop(writing);
        if is_defined { Ok(out) } else { Err(no_mean()) }
    }
}

/// What each client remembers of what its compressed messages left out, or what the server knows of a
/// vector of each client: a memory of d numbers for each client, made by
/// :meth:`Clients.error_feedback`.
#[pyclass(frozen, module = "exactfed", name = "ErrorFeedback")]
pub struct PythonFeedback {
    inner: Mutex<ErrorFeedback>,
    /// N, the number of clients.
    n: usize,
    /// d, the dimension of θ.
    d: usize,
}

impl PythonFeedback {
    /// Memories of 0 of these clients.
    pub fn new(n: usize, d: usize, compressor: Compressor) -> Self {
        Self { inner: Mutex::new(ErrorFeedback::new(n, d, compressor)), n, d }
    }

    /// Checks that clients are those of the memories.
    ///
    /// # Errors
    /// If their numbers or dimensions differ.
    fn check(&self, clients: &PythonClients) -> PyResult<()> {
        if clients.sizes() == (self.n, self.d) {
            return Ok(());
        }
        Err(PyValueError::new_err("the memories are those of other clients"))
    }
}

#[pymethods]
impl PythonFeedback {
    /// The memories e_k, of shape (N, d).
    #[getter]
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        PyArray1::from_slice(py, lock(&self.inner).memory()).reshape([self.n, self.d])
    }

    /// Send C(e_k + r_k) for each client that takes part, and keep what was not sent.
    ///
    /// e_k ← e_k + r_k − C(e_k + r_k): error feedback (Seide et al. 2014; Stich, Cordonnier and Jaggi
    /// 2018).
    ///
    /// Parameters
    /// ----------
    /// clients
    ///     The clients.
    /// rows
    ///     r_k, of shape (N, d).
    /// start
    ///     A vector of shape (d,) that is subtracted of each row, so that ``rows`` may be where local
    ///     steps ended and ``start`` where they began.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     What was sent, of shape (N, d); 0 for clients that take no part.
    #[pyo3(signature = (clients, rows, start = None))]
    fn send<'py>(
        &self,
        py: Python<'py>,
        clients: &PythonClients,
        rows: &Bound<'py, PyAny>,
        start: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.check(clients)?;
        let rows = floats(rows, "rows")?;
        clients.check_rows("rows", &rows)?;
        let rows = flat(&rows);
        let start = start.map(|start| floats(start, "start")).transpose()?;
        if let Some(start) = &start {
            clients.check_vector("start", start)?;
        }
        let start = start.as_ref().map(flat);
        let out = PyArray2::zeros(py, [self.n, self.d], false);
        let mut writing = out.readwrite();
        let sent = writing.as_slice_mut()?;
        clients.with(py, |clients| {
            lock(&self.inner).send(clients, &rows, start.as_deref(), sent);
        })?;
        drop(writing);
        Ok(out)
    }

    /// Send C(r_k − e_k) for each client that takes part, and return what the server then knows of r_k.
    ///
    /// The estimate of r_k is e_k + C(r_k − e_k), and e_k ← e_k + α C(r_k − e_k). With α = 1 this is
    /// EF21 (Richtárik, Sokolov and Fatkhullin 2021), and with an unbiased compressor and α of at most
    /// 1/(1 + ω) DIANA (Mishchenko et al. 2019).
    ///
    /// Parameters
    /// ----------
    /// clients
    ///     The clients.
    /// rows
    ///     r_k, of shape (N, d).
    /// rate
    ///     α.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     The estimates, of shape (N, d); e_k for clients that take no part.
    #[pyo3(signature = (clients, rows, rate = None), text_signature = "(clients, rows, rate=1.0)")]
    fn track<'py>(
        &self,
        py: Python<'py>,
        clients: &PythonClients,
        rows: &Bound<'py, PyAny>,
        rate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.check(clients)?;
        let rate = rate.map_or(Ok(1.0), |rate| float(rate, "rate"))?;
        let rows = floats(rows, "rows")?;
        clients.check_rows("rows", &rows)?;
        let rows = flat(&rows);
        let out = PyArray2::zeros(py, [self.n, self.d], false);
        let mut writing = out.readwrite();
        let estimates = writing.as_slice_mut()?;
        clients.with(py, |clients| {
            lock(&self.inner).track(clients, &rows, rate, estimates);
        })?;
        drop(writing);
        Ok(out)
    }
}
