//! The HTTP server. It and its connections are the only users of hyper and tokio.
//!
//! *Invariant*: clients take little from the run. At most [`MOST_CONNECTIONS`] connections are
//! open, no more than a quarter of the files that the process may open, and no more than leave the
//! run the files that it needs; while there are as many,
//! each further one is accepted after a pause and takes the place of the oldest, so that neither
//! half a request nor an answer that is not read keeps a browser out (`tests/suite/watch/clients.rs`).

use super::connection::{Connection, PATIENCE};
use super::site::{Answer, HTML, Site};
use crate::cli::memory;
use crate::cli::outcome::Failure;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioTimer;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::sleep;

/// Time until the next attempt to accept a connection.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);
/// Connections that are open at a time, at most.
const MOST_CONNECTIONS: usize = 64;
/// Files that the process has open without connections, at most, and two connections more: one that is
/// accepted before it takes the place of another, and the other while it closes.
const OTHER_FILES: usize = 12;
/// Time that a connection waits before it takes the place of another.
const BETWEEN_REPLACEMENTS: Duration = Duration::from_millis(10);

/// Headers of every answer: nothing is kept, guessed or embedded elsewhere.
const HEADERS: [(&str, &str); 4] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
];
/// The policy of everything but pages, which state their own.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Serves a site, in a thread of its own, until the process ends.
pub fn serve(listener: TcpListener, site: Site) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::input(format!("error: the server: {e}"));
    listener.set_nonblocking(true).map_err(cannot)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(cannot)?;
    let listener = {
        let _context = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(cannot)?
    };
    let work = move || runtime.block_on(accept(listener, Arc::new(site)));
    std::thread::Builder::new().name("server".to_owned()).spawn(work).map_err(cannot)?;
    Ok(())
}

/// Accepts connections for ever.
async fn accept(listener: tokio::net::TcpListener, site: Arc<Site>) {
    // The run keeps the files that it needs.
    let files = memory::limit_of_process("Max open files").map(|files| files as usize);
    let most = files.map_or(MOST_CONNECTIONS, |files| {
        (files / 4).min(files.saturating_sub(OTHER_FILES)).clamp(1, MOST_CONNECTIONS)
    });
    // The oldest connection is the first.
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(BETWEEN_ATTEMPTS).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= most {
            sleep(BETWEEN_REPLACEMENTS).await;
            open.retain(|connection| !connection.is_finished());
        }
        if open.len() >= most
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(tokio::spawn(answer(stream, site.clone())).abort_handle());
        // A request that has arrived is answered before the next connection is accepted.
        yield_now().await;
    }
}

/// Answers the one request of a connection.
async fn answer(stream: TcpStream, site: Arc<Site>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response = respond(&site, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    // Without a further request, a connection never waits for one.
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
    // A connection that breaks concerns its browser alone.
    let _ = http.serve_connection(Connection::new(stream), answer).await;
}

fn respond(site: &Site, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let hosts: Vec<&HeaderValue> = request.headers().get_all(HOST).iter().collect();
    let is_reading = [Method::GET, Method::HEAD].contains(request.method());
    let path = request.uri().path();
    let Answer { code, media, body } = match hosts[..] {
        // RFC 9112, section 3.2: two such headers could mean two servers.
        [_, _, ..] => Answer::text(400, "The request has more than one Host header.\n"),
        [host] => site.answer(is_reading, host.to_str().ok(), path),
        [] => site.answer(is_reading, None, path),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(media));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if code == 405 {
        headers.insert("allow", HeaderValue::from_static("GET, HEAD"));
    }
    if media != HTML {
        headers.insert("content-security-policy", HeaderValue::from_static(POLICY));
    }
    response
}
