//! The address that a server listens on, and the names by which requests may mean it.

use crate::cli::outcome::Failure;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};

/// The port, if none is given and it is free.
const USUAL_PORT: u16 = 8642;

/// Where a server listens.
pub struct Address {
    /// As the user wrote it.
    host: String,
    /// The address that listens.
    pub bound: SocketAddr,
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

    /// Whether a `Host` header means this server: its host, and its port if the header has one.
    /// Names that an attacker chose and that lead to this machine (DNS rebinding) do not; a numeric
    /// address cannot be chosen so.
    pub fn is_addressed_by(&self, header: &str) -> bool {
        let Some((host, port)) = host_and_port(header) else { return false };
        let (own, is_own_port) = (self.bound.ip(), port.is_none_or(|p| p == self.bound.port()));
        is_own_port
            && match host {
                Host::Ip(ip) => ip.is_loopback() || ip == own || own.is_unspecified(),
                Host::Name(name) => {
                    let is = |own: &str| name.eq_ignore_ascii_case(own);
                    is("localhost") || is(&self.host)
                }
            }
    }
}

/// The host of a `Host` header.
enum Host<'a> {
    Ip(IpAddr),
    Name(&'a str),
}

/// The parts of a `Host` header: a name, an IPv4 address or an IPv6 address in brackets, and
/// nothing else but a colon and the digits of a port. `None` for any other text.
fn host_and_port(header: &str) -> Option<(Host<'_>, Option<u16>)> {
    let (host, rest) = match header.strip_prefix('[') {
        Some(rest) => {
            let (ip, rest) = rest.split_once(']')?;
            (Host::Ip(IpAddr::V6(ip.parse().ok()?)), rest)
        }
        None => {
            let (name, rest) = header.split_at(header.find(':').unwrap_or(header.len()));
            (name.parse().map_or(Host::Name(name), |ip| Host::Ip(IpAddr::V4(ip))), rest)
        }
    };
    if rest.is_empty() {
        return Some((host, None));
    }
    let digits = rest.strip_prefix(':')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((host, Some(digits.parse().ok().filter(|_| is_number)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts that name a server on 127.0.0.1:8642.
    const OWN: [&str; 9] = [
        "localhost",
        "LOCALHOST",
        "localhost:8642",
        "127.0.0.1",
        "127.0.0.1:8642",
        "127.0.0.2:8642",
        "[::1]",
        "[::1]:8642",
        "[0:0:0:0:0:0:0:1]:8642",
    ];
    /// Hosts that do not.
    const FOREIGN: [&str; 46] = [
        "",
        ":",
        ":8642",
        "8642",
        "evil.com",
        "127.0.0.1:8642.evil.com",
        "127.0.0.1:8642:evil.com",
        "127.0.0.1:evil.com",
        "127.0.0.1.evil.com",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1 ",
        " 127.0.0.1",
        "127.0.0.1,evil.com",
        "127.0.0.1/evil.com",
        "127.0.0.1@evil.com",
        "evil.com@127.0.0.1",
        "10.0.0.1",
        "0.0.0.0",
        "localhost:evil.com",
        "localhost:8642evil",
        "localhost:",
        "localhost:+8642",
        "localhost:-1",
        "localhost:08642x",
        "localhost:65536",
        "localhost:80",
        "localhost:8643",
        "localhost.",
        "localhost.evil.com",
        "evil.com:8642",
        "::1",
        "[::1].evil.com",
        "[::1]evil.com",
        "[::1]:8642.evil.com",
        "[::1",
        "::1]",
        "[]",
        "[]:8642",
        "[127.0.0.1]",
        "[localhost]",
        "[::2]",
        "[::1%25lo]",
        "[[::1]]",
    ];

    fn address(host: &str, bound: &str) -> Address {
        Address { host: host.to_owned(), bound: bound.parse().unwrap() }
    }

    #[test]
    fn a_host_header_names_the_server_exactly() {
        let server = address("127.0.0.1", "127.0.0.1:8642");
        OWN.iter().for_each(|host| assert!(server.is_addressed_by(host), "{host}"));
        FOREIGN.iter().for_each(|host| assert!(!server.is_addressed_by(host), "{host}"));
    }

    #[test]
    fn a_host_header_may_name_what_was_listened_on() {
        let named = address("my-machine", "192.0.2.7:80");
        for own in ["my-machine", "My-Machine:80", "192.0.2.7", "192.0.2.7:80", "localhost"] {
            assert!(named.is_addressed_by(own), "{own}");
        }
        for foreign in ["192.0.2.8", "my-machine:81", "my-machine.evil.com", "my-machin"] {
            assert!(!named.is_addressed_by(foreign), "{foreign}");
        }
        // Whoever listens on all addresses has all of them, and no further names.
        let all = address("::", "[::]:8642");
        for own in ["198.51.100.1:8642", "[2001:db8::1]", "[::1]:8642"] {
            assert!(all.is_addressed_by(own), "{own}");
        }
        for foreign in ["evil.com", "[2001:db8::1]:1", "[2001:db8::1].evil.com"] {
            assert!(!all.is_addressed_by(foreign), "{foreign}");
        }
    }
}
