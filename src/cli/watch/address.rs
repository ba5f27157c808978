//! The address that a server listens on, and the names by which requests may mean it.

use crate::cli::Failure;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};

/// The port, if none is given and it is free.
const USUAL_PORT: u16 = 8642;

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
                "error: --port {port}: another program listens on this port of {host}; without --port, exactfed takes a free one"
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
