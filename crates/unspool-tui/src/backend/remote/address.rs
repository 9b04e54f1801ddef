//! The address of a server, parsed from what a person typed, and the credentials for it.

use super::RemoteError;

/// Credentials that are not in the address. An empty value counts as none.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The content of the file `token` in the server's data folder.
    pub token: Option<String>,
    /// The password set with `unspool serve --set-password`.
    pub password: Option<String>,
}

impl Credentials {
    /// Reads the environment, so that no secret needs to be on a command line.
    pub fn from_env() -> Credentials {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Credentials { token: variable("UNSPOOL_TOKEN"), password: variable("UNSPOOL_PASSWORD") }
    }
}

/// Host and port of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// A host name or an IP address; an IPv6 address in brackets.
    host: String,
    pub port: u16,
}

impl Address {
    /// Parses a URL as `unspool serve` prints it or as a browser shows it, and its token if it has
    /// one. The path is ignored.
    pub fn parse(text: &str) -> Result<(Address, Option<String>), RemoteError> {
        let text = text.trim();
        // The query and the fragment may hold the token: never print them.
        let shown = text.split(['?', '#']).next().unwrap_or_default();
        let wrong = || RemoteError::InvalidAddress { address: shown.to_owned() };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => return Err(RemoteError::HttpsUnsupported { address: shown.to_owned() }),
            _ => return Err(wrong()),
        }
        let at = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = match at.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            Some(_) | None => (at, 80),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match ipv6 {
            Some(ipv6) => ipv6.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(plain),
        };
        if !is_host || port == 0 {
            return Err(wrong());
        }
        let query = rest.split('#').next().and_then(|rest| rest.split_once('?'));
        let fields = query.map(|(_, query)| query).unwrap_or_default().split('&');
        let token = fields.filter_map(|field| field.strip_prefix("token=")).next();
        let token = token.filter(|token| !token.is_empty()).map(str::to_owned);
        Ok((Address { host: host.to_owned(), port }, token))
    }

    /// The host without brackets, for name resolution.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// `host` or `host:port`, as browsers write it: port 80 is left out, as a proxy expects.
    pub fn name(&self) -> String {
        match self {
            Address { host, port: 80 } => host.clone(),
            Address { host, port } => format!("{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, String, Option<String>) {
        let (address, token) = Address::parse(text).unwrap_or_else(|error| panic!("{error}"));
        (address.host().to_owned(), address.name(), token)
    }

    #[test]
    fn printed_addresses_and_browser_urls_parse() {
        let of = |host: &str, name: &str, token: Option<&str>| {
            (host.to_owned(), name.to_owned(), token.map(str::to_owned))
        };
        for (text, expected) in [
            ("http://127.0.0.1:7787/?token=abc", of("127.0.0.1", "127.0.0.1:7787", Some("abc"))),
            (" http://desk.example:7787\n", of("desk.example", "desk.example:7787", None)),
            ("http://desk/", of("desk", "desk", None)),
            (
                "HTTP://[2001:db8::5]:81/s/x?a=1&token=t#token=u",
                of("2001:db8::5", "[2001:db8::5]:81", Some("t")),
            ),
            ("http://localhost:1?token=", of("localhost", "localhost:1", None)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_without_printing_the_token() {
        for text in [
            "127.0.0.1:7787",
            "ws://127.0.0.1:7787?token=secret",
            "http://?token=secret",
            "http://:7787?token=secret",
            "http://a b:7787/?token=secret",
            "http://me:secret@desk:7787/",
            "http://desk:0/",
            "http://desk:99999/",
            "http://[::1:7787/",
            "https://desk/?token=secret",
            "",
        ] {
            let refused = Address::parse(text).map_err(|error| error.to_string());
            let message = refused.err().unwrap_or_else(|| panic!("{text}"));
            assert!(message.contains("http://127.0.0.1:7787"), "{message}");
            assert!(!message.contains("token=secret"), "{message}");
        }
    }
}
