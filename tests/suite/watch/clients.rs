//! Clients of `watch` that would take files, time or answers from the run and from browsers.

use super::{PAGE, TINY, bench, edited, finished, interrupt};
use crate::served::{SOME_FAIL, Served};
use crate::support::process::{Program, wait_until};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What any of these clients waits for at most.
const LIMIT: Duration = Duration::from_secs(60);
/// Connections that `watch` has open at a time, at most.
const MOST: usize = 64;

impl Served {
    /// A connection on which this was sent.
    fn send(&self, bytes: &[u8]) -> std::io::Result<TcpStream> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.write_all(bytes)?;
        Ok(stream)
    }

    fn send_half(&self) -> std::io::Result<TcpStream> {
        self.send(b"GET /.watch/status/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
    }
}

/// Whether a connection is open, and nothing was answered on it.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    matches!(seen, Err(e) if e.kind() == ErrorKind::WouldBlock)
}

/// The number of bytes that are left to be read, with pauses after so many of them.
fn read_with_pauses(stream: &mut TcpStream, bytes: usize, pauses: &[Duration]) -> usize {
    let mut some = vec![0; bytes];
    for pause in pauses {
        stream.read_exact(&mut some).unwrap();
        sleep(*pause);
    }
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    pauses.len() * bytes + rest.len()
}

/// Three times as many connections as the process may have open files, each with half a request:
/// all cells are stored, and a browser is answered meanwhile.
#[test]
fn half_requests_take_nothing_from_the_run() {
    let bench = bench(&edited(SOME_FAIL, &[(", { from = 5e199, to = 1e200 }", "")]));
    let script = ["-c", "ulimit -n 100 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_exactfed")];
    let limited = Program::new("sh").args(script);
    let mut served = Served::start_as(limited, &bench, &["m.toml", "--threads", "2"]);
    let mut half: Vec<TcpStream> = Vec::new();
    let (mut answers, mut most, mut has_ended) = (0, 0, false);
    while !has_ended {
        half.retain(is_open);
        while half.len() < 300
            && let Ok(one) = served.send_half()
        {
            half.push(one);
        }
        most = most.max(half.len());
        let status = served.wait_for("an answer", |_| true);
        answers += usize::from(status["phase"] == "running");
        has_ended = status["phase"] == "finished";
    }
    interrupt(served.run, 0);
    assert_eq!(bench.digests("results").len(), 6);
    assert!(most > 100 && answers > 0, "{most} connections, {answers} answers");
}

/// Of many connections the oldest are closed, and the newest are answered.
#[test]
fn the_oldest_connection_makes_room() {
    let bench = bench(TINY);
    let served = finished(&bench);
    let mut half: Vec<TcpStream> = (0..100).map(|_| served.send_half().unwrap()).collect();
    let (oldest, newest) = (100 - MOST, 100 - MOST / 2);
    let are_closed = |some: &[TcpStream]| some.iter().all(|stream| !is_open(stream));
    let late = Instant::now() + LIMIT;
    let closed = wait_until(late, || are_closed(&half[..oldest]).then_some(()));
    assert!(closed.is_some(), "more than {MOST} connections are open");
    for stream in &mut half[newest..] {
        stream.write_all(b"whole\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // A request that does not come is not waited for.
    assert!(wait_until(late, || are_closed(&half).then_some(())).is_some());
    interrupt(served.run, 0);
}

/// What is sent after a request is not answered: whoever wants more connects again.
#[test]
fn a_connection_has_one_answer() {
    let bench = bench(TINY);
    let served = finished(&bench);
    let request = "GET /.watch/status/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let mut stream = served.send(request.repeat(20).as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
    assert!(answers.to_lowercase().contains("connection: close"), "{answers}");
    interrupt(served.run, 0);
}

/// Of two names of the host one is not that of the server: which of them a proxy reads is not known.
#[test]
fn a_request_names_one_host() {
    let bench = bench(TINY);
    let served = finished(&bench);
    let answer = |hosts: &str| {
        let request = format!("GET /.watch/status/ HTTP/1.1\r\n{hosts}\r\n");
        let mut answer = String::new();
        served.send(request.as_bytes()).unwrap().read_to_string(&mut answer).unwrap();
        answer.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    let (own, other) = ("Host: 127.0.0.1\r\n", "Host: example.com\r\n");
    assert_eq!(answer(own), "200");
    assert_eq!(answer(other), "403");
    for two in [format!("{own}{other}"), format!("{other}{own}"), own.repeat(2)] {
        assert_eq!(answer(&two), "400", "{two}");
    }
    interrupt(served.run, 0);
}

/// A client that reads nothing is closed, and one that pauses for less than ten seconds is not.
#[test]
fn a_client_that_does_not_read_is_closed() {
    let bench = bench(TINY);
    let served = finished(&bench);
    // Much more than the buffers of a connection take.
    let size = 64 << 20;
    bench.write("reports/m/summary.csv", vec![b'1'; size]);
    let request = b"GET /m/summary.csv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let mut idle = served.send(request).unwrap();
    let mut slow = served.send(request).unwrap();
    let pauses = [Duration::from_secs(6); 2];
    let read = read_with_pauses(&mut slow, size / 4, &pauses);
    assert!(read > size, "{read} of {size} bytes");
    // Whoever writes to a connection that the other side has closed gets an error.
    let late = Instant::now() + LIMIT;
    let closed = wait_until(late, || {
        sleep(Duration::from_millis(100));
        idle.write_all(b" ").err()
    });
    assert!(closed.is_some(), "a client that reads nothing is served for ever");
    assert_eq!(served.get(&format!("/{PAGE}")).code, 200);
    interrupt(served.run, 0);
}
