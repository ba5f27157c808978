//! The HTTP server: the only user of hyper and tokio.
//!
//! *Invariant*: only requests that name this server by its address, by a name of this machine's
//! loopback or by the given name are answered with more than a refusal.

use super::site::{Answer, HTML, Site};
use crate::cli::Failure;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// The port, if none is given and it is free.
const USUAL_PORT: u16 = 8642;
/// Time that a browser has to send a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time until the next attempt to accept a connection.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Headers of every answer: nothing is kept, guessed or embedded elsewhere.
const HEADERS: [(&str, &str); 4] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
];
/// The policy of everything but pages, which state their own.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Where a server listens.
pub struct Address {
    /// As the user wrote it.
    host: String,
    bound: SocketAddr,
}

impl Address {
    /// Listens on a port of a host; on the usual one or any free one if none is given.
    pub fn listen(host: &str, port: Option<u16>) -> Result<(TcpListener, Self), Failure> {
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        let bind = |port: u16| -> std::io::Result<TcpListener> {
            let addresses: Vec<SocketAddr> = (plain, port).to_socket_addrs()?.collect();
            TcpListener::bind(&*addresses)
        };
        let bound = match port {
            Some(port) => bind(port),
            None => bind(USUAL_PORT).or_else(|_| bind(0)),
        };
        let refused = |e: std::io::Error| match (e.kind(), port) {
            (std::io::ErrorKind::AddrInUse, Some(port)) => Failure::input(format!(
                "error: --port {port}: another program listens on this port of {host}; without --port, driftbench takes a free one"
            )),
            _ => Failure::input(format!("error: --host {host}: {e}")),
        };
        let listener = bound.map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        Ok((listener, Self { host: plain.to_ascii_lowercase(), bound }))
    }

    /// The address that listens.
    pub fn bound(&self) -> SocketAddr {
        self.bound
    }

    /// Whether only this machine can connect.
    pub fn is_loopback(&self) -> bool {
        self.bound.ip().is_loopback()
    }

    /// The address of the index.
    pub fn url(&self) -> String {
        let ip = self.bound.ip();
        let is_name = self.host.parse::<IpAddr>().is_err();
        let port = self.bound.port();
        match (is_name, ip) {
            (true, _) => format!("http://{}:{port}/", self.host),
            (_, IpAddr::V4(ip)) if ip.is_unspecified() => format!("http://127.0.0.1:{port}/"),
            (_, IpAddr::V6(ip)) if ip.is_unspecified() => format!("http://[::1]:{port}/"),
            _ => format!("http://{}/", self.bound),
        }
    }

    /// Whether a `Host` header means this server. Names that an attacker chose and that lead to
    /// this machine (DNS rebinding) do not; a numeric address cannot be chosen so.
    pub fn is_addressed_by(&self, header: &str) -> bool {
        let name = match header.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => header.split(':').next().unwrap_or_default(),
        };
        let name = name.to_ascii_lowercase();
        let bound = self.bound.ip();
        match name.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == bound || bound.is_unspecified(),
            Err(_) => name == "localhost" || name == self.host,
        }
    }
}

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
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
            continue;
        };
        let site = site.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let response = respond(&site, &request);
            async move { Ok::<_, Infallible>(response) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        // A connection that breaks concerns its browser alone.
        let connection = http.serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(async move { drop(connection.await) });
    }
}

fn respond(site: &Site, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let is_reading = [Method::GET, Method::HEAD].contains(request.method());
    let Answer { code, media, body } = site.answer(is_reading, host, request.uri().path());
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
