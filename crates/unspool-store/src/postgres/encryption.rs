//! Whether a connection to a server is encrypted, and which certificates it trusts. The server's
//! certificate is always checked: an encrypted connection to whoever answers protects nothing.

use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::{StoreError, StoreErrorKind};

/// How a connection is made.
#[derive(Clone)]
pub(crate) enum Encryption {
    Off,
    On(MakeRustlsConnect),
}

/// What an address says about it. The driver does not know all of these options.
#[derive(Default)]
pub(super) struct Options {
    mode: Option<String>,
    root_file: Option<PathBuf>,
}

/// Splits an address into what the driver reads and the options for encryption.
pub(super) fn take_options(address: &str) -> Result<(String, Options), StoreError> {
    let mut options = Options::default();
    let Some((start, query)) = address.rsplit_once('?') else {
        return Ok((address.to_owned(), options));
    };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => options.mode = Some(decode(mode)?),
            Some(("sslrootcert", file)) => options.root_file = Some(decode(file)?.into()),
            Some(_) | None => rest.push(pair),
        }
    }
    let rest = rest.join("&");
    let mark = if rest.is_empty() { "" } else { "?" };
    Ok((format!("{start}{mark}{rest}"), options))
}

fn decode(text: &str) -> Result<String, StoreError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| wrong("a value in it is not UTF-8"))
}

impl Encryption {
    /// Without an option, connections that leave the machine are encrypted.
    pub(super) fn new(options: Options, hosts: &[Host]) -> Result<Encryption, StoreError> {
        let stays_here = hosts.iter().all(is_local);
        let is_socket = hosts.iter().all(|host| !matches!(host, Host::Tcp(_)));
        let is_on = match options.mode.as_deref() {
            Some("disable") => false,
            // As in PostgreSQL's own programs, nothing is encrypted on a socket.
            Some("require" | "verify-ca" | "verify-full") => !is_socket,
            Some(mode @ ("allow" | "prefer")) => {
                return Err(wrong(format!(
                    "sslmode={mode} would connect without encryption if the server has none; \
                     choose sslmode=require or sslmode=disable"
                )));
            }
            Some(_) => return Err(wrong("sslmode is one of disable, require, verify-full")),
            None => !stays_here,
        };
        match is_on {
            true => Ok(Encryption::On(MakeRustlsConnect::new(config(options.root_file)?))),
            false => Ok(Encryption::Off),
        }
    }

    pub(super) fn mode(&self) -> SslMode {
        match self {
            Encryption::Off => SslMode::Disable,
            Encryption::On(_) => SslMode::Require,
        }
    }
}

/// True for a socket and for addresses of this machine.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let address = name.trim_start_matches('[').trim_end_matches(']');
            let is_loopback = |address: std::net::IpAddr| address.is_loopback();
            name == "localhost" || address.parse().is_ok_and(is_loopback)
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Trusts the certificates of a file, or those that the system trusts.
fn config(root_file: Option<PathBuf>) -> Result<ClientConfig, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(format!("TLS cannot be used: {error}")))?;
    let Some(file) = root_file else {
        let builder = builder.with_platform_verifier().map_err(|error| {
            wrong(format!("the system's trusted certificates cannot be read: {error}"))
        })?;
        return Ok(builder.with_no_client_auth());
    };
    let unreadable = |what: String| wrong(format!("sslrootcert={}: {what}", file.display()));
    let mut roots = RootCertStore::empty();
    let found =
        CertificateDer::pem_file_iter(&file).map_err(|error| unreadable(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("it has no certificate in PEM format".to_owned()));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn wrong(what: impl Into<String>) -> StoreError {
    StoreError::because(StoreErrorKind::Address, what.into())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::super::Address;
    use super::Encryption;

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_its_address_says_otherwise() {
        let is_encrypted = |text: &str| {
            let address = Address::from_str(text).unwrap();
            matches!(address.encryption, Encryption::On(_))
        };
        for plain in [
            "postgres://ann@localhost/team",
            "postgres://ann@127.0.0.1:5433/team",
            "postgres://ann@[::1]:5433/team",
            "postgres://ann@%2Frun%2Fpostgresql/team",
            "postgres://ann@%2Frun%2Fpostgresql/team?sslmode=require",
            "postgres://ann@db.example.org/team?sslmode=disable",
            "postgres://ann@db.example.org/team?connect_timeout=5&sslmode=disable",
        ] {
            assert!(!is_encrypted(plain), "{plain}");
        }
        for encrypted in [
            "postgres://ann@db.example.org/team",
            "postgres://ann@10.0.0.7/team?connect_timeout=5",
            "postgres://ann@localhost/team?sslmode=require",
            "postgres://ann@localhost,db.example.org/team",
            "postgres://ann@db.example.org/team?sslmode=verify-full&application_name=x",
        ] {
            assert!(is_encrypted(encrypted), "{encrypted}");
        }
    }

    #[test]
    fn options_that_promise_less_are_refused() {
        let error = |text: &str| Address::from_str(text).err().unwrap().to_string();
        let weak = error("postgres://ann@db.example.org/team?sslmode=prefer");
        assert!(weak.contains("sslmode=require or sslmode=disable"), "{weak}");
        let unknown = error("postgres://ann@db.example.org/team?sslmode=none");
        assert!(unknown.contains("is one of"), "{unknown}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots.pem");
        std::fs::write(&file, "no certificate").unwrap();
        let address = format!("postgres://ann@db.example.org/team?sslrootcert={}", file.display());
        let empty = error(&address);
        assert!(empty.contains("no certificate in PEM format"), "{empty}");
    }
}
