//! Where a server is: `postgres://user:password@host:port/database`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::encryption::{Encryption, take_options};
use crate::store::{StoreError, StoreErrorKind};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection to a machine that is gone is noticed after this time.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// The address of an archive on a server. Shown without its password.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) encryption: Encryption,
    shown: String,
}

impl Address {
    /// True if a text is meant as such an address, right or wrong.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }
}

impl FromStr for Address {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Address, StoreError> {
        if !Address::is_meant(text) {
            return Err(StoreError::because(
                StoreErrorKind::Address,
                "it does not begin with postgres://",
            ));
        }
        let (driver_text, options) = take_options(text)?;
        let mut config = Config::from_str(&driver_text).map_err(|error| {
            // The text of the error may quote the address, with its password.
            let what = std::error::Error::source(&error)
                .map_or_else(String::new, |cause| cause.to_string());
            StoreError::because(StoreErrorKind::Address, without_password(&what, text))
        })?;
        if config.get_hosts().is_empty() {
            return Err(StoreError::because(StoreErrorKind::Address, "it names no host"));
        }
        let encryption = Encryption::new(options, config.get_hosts())?;
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        config.ssl_mode(encryption.mode());
        config.connect_timeout(CONNECT_TIMEOUT);
        config.keepalives_idle(KEEPALIVE);
        config.keepalives_interval(KEEPALIVE);
        config.keepalives_retries(3);
        config.application_name("unspool");
        let shown = shown(&config);
        Ok(Address { config, encryption, shown })
    }
}

/// A parser's message, without a piece of the address that may hold its password.
fn without_password(what: &str, address: &str) -> String {
    let secret = address.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let secret = secret.and_then(|(login, _)| login.split_once(':')).map(|(_, secret)| secret);
    match secret {
        Some(secret) if !secret.is_empty() => what.replace(secret, "…"),
        _ => what.to_owned(),
    }
}

fn shown(config: &Config) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let hosts = config.get_hosts().iter().enumerate().map(|(nth, host)| {
        let host = match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        let ports = config.get_ports();
        match ports.get(nth).or(ports.first()) {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
    format!("postgres://{user}{}{database}", hosts.join(","))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://ann:hunter2@db:5433/team",
            "postgresql://ann:hunter2@db/team",
            "postgres://ann:hunter2@db/team?sslmode=require",
        ] {
            let address: Address = text.parse().unwrap();
            for shown in [address.to_string(), format!("{address:?}")] {
                assert!(!shown.contains("hunter2"), "{shown}");
                assert!(shown.contains("ann@db") && shown.contains("/team"), "{shown}");
            }
        }
        let wrong = [
            "postgres://ann:hunter2@db:port/team",
            "postgres://ann:hunter2@db/team?nonsense=1",
            "postgres://ann:hunter2@/team",
            "postgres://ann:hunter2@db/team?sslmode=prefer",
            "postgres://ann:hunter2@db/team?sslrootcert=/no/such/file",
            "mysql://ann:hunter2@db/team",
        ];
        for text in wrong {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
            assert!(error.contains("--store"), "{error}");
        }
    }
}
