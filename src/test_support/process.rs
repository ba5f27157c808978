//! Programs that tests start. Each has a deadline; a program that misses it is killed with
//! all the processes of its group, and the test fails with what was printed so far.
//!
//! Tests start programs in no other way, so that no test waits for ever.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time that any program may take, on a machine that is busy with other things too.
pub const DEADLINE: Duration = Duration::from_secs(300);
/// The time between two looks at something that gives no notice when it changes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// The time that a killed process may take to be gone.
const AFTER_KILL: Duration = Duration::from_secs(20);

/// Calls `look` again and again until it returns something, and returns that; `None` if it has returned nothing by the
/// deadline.
pub fn wait_until<T>(deadline: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        // The clock is read before the look, so that one look follows the deadline.
        let late = Instant::now() >= deadline;
        let found = look();
        if found.is_some() || late {
            return found;
        }
        sleep(BETWEEN_LOOKS);
    }
}

/// A program that is to be started, and its arguments. It reads nothing, and what it prints is kept.
pub struct Program {
    command: Command,
    deadline: Duration,
}

impl Program {
    /// The program of this path or name, without arguments, in a group of processes of its own.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Self { command, deadline: DEADLINE }
    }

    /// The same program with these arguments after those that it has.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// The same program, started in this folder.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// The same program with this variable in its environment, in addition to those of the test.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The same program, which may take this time from its start in place of [`DEADLINE`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same program, whose standard output is a pipe that nobody reads any more: what it writes there fails.
    pub fn without_reader(mut self) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        self.command.stdout(writer);
        self
    }

    /// Starts the program, which the machine may lack: for tests that are skipped without it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn try_start(mut self) -> std::io::Result<Running> {
        let mut child = self.command.spawn()?;
        Ok(Running {
            name: self.command.get_program().to_string_lossy().into_owned(),
            begin: Instant::now(),
            deadline: self.deadline,
            out: Stream::new(child.stdout.take()),
            err: Stream::new(child.stderr.take()),
            child,
        })
    }

    /// Starts the program; the test fails if it cannot be started.
    #[track_caller]
    pub fn start(self) -> Running {
        let name = self.command.get_program().to_owned();
        self.try_start().unwrap_or_else(|e| panic!("{name:?} cannot be started: {e}"))
    }

    /// Starts the program, waits for its end, and returns what it printed; the test fails if it misses its deadline.
    #[track_caller]
    pub fn run(self) -> Output {
        self.start().finish()
    }
}

/// What a program has printed on one of its streams so far, which a thread reads, so that the program never waits.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when there is no more to read: all processes that hold the stream have ended.
    ended: Receiver<()>,
}

impl Stream {
    /// Begins to read a pipe; without a pipe the stream is empty and has ended.
    fn new(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel::<()>();
        if let Some(mut pipe) = pipe {
            let bytes = bytes.clone();
            std::thread::spawn(move || {
                let _end = end;
                let mut some = [0; 8192];
                while let Ok(count @ 1..) = pipe.read(&mut some) {
                    bytes.lock().unwrap_or_else(PoisonError::into_inner).extend(&some[..count]);
                }
            });
        }
        Self { bytes, ended }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Waits until there is no more to read, at most this time; returns whether there is no more. While a process that
    /// the program started still holds the stream, there may be more.
    fn ends_within(&self, time: Duration) -> bool {
        matches!(self.ended.recv_timeout(time), Err(RecvTimeoutError::Disconnected))
    }
}

/// A program that runs. It is killed if it is dropped before it ended.
pub struct Running {
    child: Child,
    name: String,
    begin: Instant,
    deadline: Duration,
    out: Stream,
    err: Stream,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the program has printed on standard output so far.
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// What the program has printed on standard error so far.
    pub fn err(&self) -> String {
        self.err.text()
    }

    /// Sends the program a signal, such as `TERM`; the test fails if it cannot be sent.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let sent = Program::new("kill").args(["-s", name, &self.id().to_string()]).run();
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    }

    /// Whether the program has ended; processes that it started may go on.
    #[track_caller]
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Calls `look` again and again until it returns something, such as what a file contains that the program writes,
    /// and returns that. The test fails, naming `what`, if the program ends before, or if its deadline, which is
    /// counted from its start, passes.
    #[track_caller]
    pub fn wait_for<T>(&mut self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        // Looked at after the end too: it may have come true just before.
        let found = wait_until(self.begin + self.deadline, || {
            let ended = self.has_ended();
            look(self).map(Ok).or(ended.then_some(Err(())))
        });
        match found {
            Some(Ok(found)) => found,
            Some(Err(())) => self.fail(format!("ended before there was {what}")),
            None => self.fail(format!("there was no {what} in time")),
        }
    }

    /// Waits for the end of the program and of what it started, and returns what it printed; the test fails if it
    /// misses its deadline.
    #[track_caller]
    pub fn finish(mut self) -> Output {
        let left = || self.deadline.saturating_sub(self.begin.elapsed());
        if ![&self.out, &self.err].iter().all(|stream| stream.ends_within(left())) {
            self.fail("did not end, or what it started did not");
        }
        let status = wait_until(self.begin + self.deadline, || self.child.try_wait().unwrap());
        let Some(status) = status else { self.fail("did not end") };
        Output { status, stdout: self.out.bytes(), stderr: self.err.bytes() }
    }

    /// Kills the program and all the processes of its group, unless all have ended: processes that the program started
    /// count as ended when they no longer hold its streams.
    pub fn kill(&mut self) {
        let silent = [&self.out, &self.err].iter().all(|s| s.ends_within(Duration::ZERO));
        if silent && matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        #[cfg(unix)]
        {
            // The shell's own: programs named `kill` differ in how they take a group.
            let script = ["-c", "kill -s KILL -- \"-$1\"", "sh", &self.id().to_string()];
            let killer = Command::new("sh").args(script).stderr(Stdio::null()).spawn();
            let _ = killer.map(|mut killer| reap(&mut killer));
        }
        let _ = self.child.kill();
        reap(&mut self.child);
    }

    /// Kills the program at once, as `kill -9` does; processes that it started go on. Then waits at most
    /// [`AFTER_KILL`] for each stream to end, so that what the program printed is complete.
    pub fn kill_alone(&mut self) {
        let _ = self.child.kill();
        reap(&mut self.child);
        for stream in [&self.out, &self.err] {
            stream.ends_within(AFTER_KILL);
        }
    }

    /// Kills the program and fails the test with the message and what was printed.
    #[track_caller]
    fn fail(&mut self, what: impl Display) -> ! {
        self.kill();
        let name = &self.name;
        let seconds = self.begin.elapsed().as_secs_f64();
        let out = self.out.text();
        let err = self.err.text();
        panic!("{name}: {what}; killed after {seconds:.1} s\nstdout:\n{out}\nstderr:\n{err}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a killed process is gone, at most [`AFTER_KILL`], so that none is left as a zombie.
fn reap(child: &mut Child) {
    wait_until(Instant::now() + AFTER_KILL, || child.try_wait().ok().flatten());
}
