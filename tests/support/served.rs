//! A `watch` that runs, and requests to it. Every read has a limit.

#![allow(dead_code)]

use crate::support::process::{DEADLINE, Program, Running, wait_until};
use crate::support::{Bench, exactfed};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// Cells that take their time. Three of them, in the middle, fail at their start: their gradient is
/// so large that its square is infinite.
pub const SOME_FAIL: &str = r#"title = "Some cells fail"
seed = 5
replicates = 2
start.offset = 1.0
budget.rounds = 100000
record.points = 4
record.metrics = ["sq-gradient"]

[problem.quadratic]
dimension = 4
clients = 8
spectrum = [{ from = 0.5, to = 0.75 }, { from = 5e199, to = 1e200 }, { from = 0.5, to = 1.0 }]
noise = 0.1

[[algorithm.fedavg]]
step-size = [0.01, 0.02, 0.03]
local-steps = 20
"#;
/// Its number of cells, and of those that fail.
pub const CELLS: u64 = 9;
pub const FAILED: u64 = 3;
/// Why they fail.
pub const REASON: &str = "sq-gradient is inf at round 0";

/// A running `exactfed watch`.
pub struct Served {
    pub run: Running,
    pub port: u16,
}

/// An answer: its status, its head in lower case, and its body.
pub struct Response {
    pub code: u16,
    pub head: String,
    pub body: String,
}

impl Served {
    /// Starts `watch` on any free port, and waits until it serves.
    #[track_caller]
    pub fn start(bench: &Bench, arguments: &[&str]) -> Self {
        Self::start_as(exactfed(), bench, arguments)
    }

    /// The same for a program that starts exactfed with the arguments that it gets.
    #[track_caller]
    pub fn start_as(program: Program, bench: &Bench, arguments: &[&str]) -> Self {
        let all = [&["watch", "--port", "0"], arguments].concat();
        let mut run = program.args(all).folder(&bench.folder).start();
        let port = run.wait_for("an address", |run| {
            let out = run.out();
            out.strip_prefix("reports: http://127.0.0.1:")?.strip_suffix("/\n")?.parse().ok()
        });
        Self { run, port }
    }

    pub fn url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/{page}", self.port)
    }

    /// A request as it is written here; its `Host` is added.
    #[track_caller]
    pub fn request(&self, line: &str, host: &str) -> Response {
        self.exchange(line, host).unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.request(&format!("GET {path}"), &format!("127.0.0.1:{}", self.port))
    }

    fn exchange(&self, line: &str, host: &str) -> std::io::Result<Response> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let host = if host.is_empty() { String::new() } else { format!("Host: {host}\r\n") };
        write!(stream, "{line} HTTP/1.1\r\n{host}Connection: close\r\n\r\n")?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let code = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        Ok(Response { code, head: head.to_lowercase(), body: body.to_owned() })
    }

    /// The progress, as the page of an experiment gets it.
    #[track_caller]
    pub fn status(&self, page: &str) -> Value {
        let answer = self.get(&format!("/.watch/status/{page}"));
        assert_eq!(answer.code, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Waits until the progress is as it should be.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        self.wait(what, |served| {
            last = served.status("");
            is_so(&last)
        });
        last
    }

    /// Waits until a file is as it should be.
    #[track_caller]
    pub fn wait_for_page(&mut self, page: &str, is_so: impl Fn(&str) -> bool) {
        self.wait(page, |served| is_so(&served.get(&format!("/{page}")).body));
    }

    #[track_caller]
    fn wait(&mut self, what: &str, mut look: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        let found = wait_until(deadline, || {
            assert!(!self.run.has_ended(), "ended before {what}: {}", self.run.err());
            look(self).then_some(())
        });
        assert!(found.is_some(), "not in time: {what}: {}", self.run.err());
    }
}
