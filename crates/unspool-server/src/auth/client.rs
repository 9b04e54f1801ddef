//! Who sends a login: the network of the client, and the browser that it uses. Several people can
//! share a network, behind a proxy or a router, so the login page marks each browser with a cookie.
//! The cookie proves nothing about the person. It tells failures of one browser from those of
//! others (`throttle.rs`).

use std::net::{IpAddr, Ipv6Addr};

use axum::http::HeaderMap;
use unspool_model::id::sha256;

use super::{constant_time_eq, random_secret};

/// The header in which a proxy adds the address of its client, after those that it received.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The sender of a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Client {
    pub network: IpAddr,
    pub browser: Option<Browser>,
}

/// A browser that was marked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Browser {
    pub id: String,
    pub history: LoginHistory,
}

/// Whether a browser has logged in before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginHistory {
    New,
    LoggedIn,
}

impl LoginHistory {
    fn name(self) -> &'static str {
        match self {
            LoginHistory::New => "new",
            LoginHistory::LoggedIn => "old",
        }
    }
}

/// Makes and verifies the marks of browsers.
pub struct BrowserMarks {
    key: String,
}

impl BrowserMarks {
    /// Derived from the token, so that marks stay valid after a restart.
    pub fn new(token: &str) -> BrowserMarks {
        BrowserMarks { key: sha256(format!("unspool browser {token}").as_bytes()) }
    }

    /// The cookie value for a browser that has none. None if the system has no random bytes.
    pub fn issue(&self) -> Option<String> {
        Some(self.sign(&random_secret()?, LoginHistory::New))
    }

    /// The cookie value of a browser that logged in.
    pub fn sign(&self, id: &str, history: LoginHistory) -> String {
        let history = history.name();
        // All three have a fixed length, so that nothing can be appended to a signed text.
        let signature = sha256(format!("{} {history} {id}", self.key).as_bytes());
        format!("{history}.{id}.{signature}")
    }

    pub fn verify(&self, value: &str) -> Option<Browser> {
        let id = value.split('.').nth(1)?;
        let histories = [LoginHistory::New, LoginHistory::LoggedIn];
        let history =
            histories.into_iter().find(|one| constant_time_eq(value, &self.sign(id, *one)))?;
        Some(Browser { id: id.to_owned(), history })
    }
}

/// The network of the client: of the connection, or, if that is a proxy that we trust, the last
/// address in `X-Forwarded-For` that is not such a proxy. Addresses before it are what the client
/// claims.
pub fn client_network(peer: IpAddr, trusted_proxies: &[IpAddr], headers: &HeaderMap) -> IpAddr {
    let is_trusted = |address: IpAddr| {
        trusted_proxies.iter().any(|proxy| proxy.to_canonical() == address.to_canonical())
    };
    let mut client = peer;
    let values: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
    let mut forwarded = values.iter().rev().flat_map(|value| value.rsplit(','));
    while is_trusted(client) {
        let Some(address) = forwarded.next().and_then(parse_address) else { break };
        client = address;
    }
    network_of(client)
}

/// An address, which some proxies write with a port.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let with_port = || text.parse::<std::net::SocketAddr>().ok().map(|at| at.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(with_port).or_else(bracketed)
}

/// An IPv6 client usually controls its whole /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(four) => four.into(),
        IpAddr::V6(six) => {
            let bits = u128::from_be_bytes(six.octets()) >> 64 << 64;
            Ipv6Addr::from(bits).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(peer: &str, proxies: &[&str], forwarded: &[&str]) -> String {
        let proxies: Vec<IpAddr> = proxies.iter().map(|one| one.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        client_network(peer.parse().unwrap(), &proxies, &headers).to_string()
    }

    #[test]
    fn a_network_is_one() {
        let of = |text: &str| network(text, &[], &[]);
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client() {
        let of = |forwarded: &[&str]| network("127.0.0.1", &["127.0.0.1"], forwarded);
        assert_eq!(network("127.0.0.1", &[], &["192.0.2.7"]), "127.0.0.1", "none is trusted");
        assert_eq!(network("192.0.2.1", &["127.0.0.1"], &["192.0.2.7"]), "192.0.2.1");
        assert_eq!(network("::ffff:127.0.0.1", &["127.0.0.1"], &["192.0.2.7"]), "192.0.2.7");
        assert_eq!(of(&[]), "127.0.0.1");
        assert_eq!(of(&["192.0.2.7"]), "192.0.2.7");
        // The client sent the first address itself.
        assert_eq!(of(&["198.51.100.1, 192.0.2.7"]), "192.0.2.7");
        assert_eq!(of(&["198.51.100.1", "192.0.2.7"]), "192.0.2.7");
        assert_eq!(of(&["198.51.100.1, 127.0.0.1"]), "198.51.100.1", "two proxies");
        for (text, address) in [
            ("192.0.2.7:5000", "192.0.2.7"),
            ("[2001:db8::1]:5000", "2001:db8::"),
            ("[2001:db8::1]", "2001:db8::"),
            ("unknown", "127.0.0.1"),
            ("192.0.2.7, ", "127.0.0.1"),
        ] {
            assert_eq!(of(&[text]), address, "{text}");
        }
    }

    #[test]
    fn marks_are_verified() {
        let (marks, others) = (BrowserMarks::new("token"), BrowserMarks::new("another"));
        let mark = marks.issue().unwrap();
        let browser = marks.verify(&mark).unwrap();
        assert_eq!(browser.history, LoginHistory::New);
        assert_eq!(others.verify(&mark), None);
        let trusted = marks.sign(&browser.id, LoginHistory::LoggedIn);
        assert_eq!(marks.verify(&trusted).unwrap().history, LoginHistory::LoggedIn);
        for wrong in ["", "..", "new.x.y", &mark.replace("new", "old"), &format!("{mark}0")] {
            assert_eq!(marks.verify(wrong), None, "{wrong}");
        }
    }
}
