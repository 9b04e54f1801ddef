//! Errors of connecting to a remote server, each with a next step.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum RemoteError {
    #[error(
        "invalid server address {address:?}; use the one that `unspool serve` prints, such as \
         http://127.0.0.1:7787/?token=…"
    )]
    InvalidAddress { address: String },
    #[error(
        "{address} uses https, which is not supported; forward the port with \
         ssh -L 7787:127.0.0.1:7787 MACHINE and connect to http://127.0.0.1:7787"
    )]
    HttpsUnsupported { address: String },
    #[error(
        "cannot connect to {name} ({error}); start `unspool serve` there, or correct the address"
    )]
    Unreachable { name: String, error: String },
    #[error(
        "{name} requires authentication; use the address that `unspool serve` printed there, or \
         set UNSPOOL_TOKEN to the content of the file `token` in its data folder, or \
         UNSPOOL_PASSWORD to its password if it has one"
    )]
    Unauthorised { name: String },
    #[error(
        "{name} rejects this token; use the address that `unspool serve` printed there last, \
         or set UNSPOOL_TOKEN to the content of the file `token` in its data folder"
    )]
    WrongToken { name: String },
    #[error("{name} rejects this password; correct UNSPOOL_PASSWORD, or use its token")]
    WrongPassword { name: String },
    #[error(
        "{name} has no password; use the address that `unspool serve` printed there, with its token"
    )]
    NoPassword { name: String },
    #[error("too many wrong passwords for {name}; wait {seconds} s and try again")]
    TooManyAttempts { name: String, seconds: String },
    #[error("{name} refused the request: {detail}")]
    Refused { name: String, detail: String },
    #[error(
        "there is no unspool server at {name} ({what}); correct the address, or start \
         `unspool serve` there"
    )]
    NotUnspool { name: String, what: String },
    #[error(
        "{name} has {theirs} of unspool, this machine has {ours}; install the same version on \
         both machines"
    )]
    VersionMismatch { name: String, theirs: String, ours: String },
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}
