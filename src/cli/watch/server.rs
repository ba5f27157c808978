//! The HTTP server: the only user of hyper and tokio.

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
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

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
