//! Why a server elsewhere cannot be read, and what to do about it.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum RemoteError {
    #[error(
        "{address:?} is no address of a server; give the one that `unspool serve` prints, such as \
         http://127.0.0.1:7787/?token=…"
    )]
    Address { address: String },
    #[error(
        "{address} is encrypted, which is not spoken here; ssh -L 7787:127.0.0.1:7787 MACHINE \
         brings the server to http://127.0.0.1:7787, encrypted on its way"
    )]
    Encrypted { address: String },
    #[error(
        "nothing answers at {name} ({error}); start `unspool serve` there, or mend the address"
    )]
    Silent { name: String, error: String },
    #[error(
        "{name} wants to know who you are; use the address that `unspool serve` printed there, or \
         put the content of the file `token` of its data folder into UNSPOOL_TOKEN, or its password \
         into UNSPOOL_PASSWORD where it has one"
    )]
    Unknown { name: String },
    #[error(
        "{name} does not take this token; use the address that `unspool serve` printed there last, \
         or put the content of the file `token` of its data folder into UNSPOOL_TOKEN"
    )]
    WrongToken { name: String },
    #[error("{name} does not take this password; mend UNSPOOL_PASSWORD, or use its token")]
    WrongPassword { name: String },
    #[error(
        "{name} has no password; use the address that `unspool serve` printed there, with its token"
    )]
    NoPassword { name: String },
    #[error("{name} was told too many wrong passwords; wait {seconds} s and try again")]
    Wait { name: String, seconds: String },
    #[error("{name} refuses: {detail}")]
    Refused { name: String, detail: String },
    #[error(
        "what answers at {name} is no unspool server ({what}); mend the address, or start \
         `unspool serve` there"
    )]
    NotOurs { name: String, what: String },
    #[error(
        "{name} runs {theirs} of unspool, and this is {ours}; they must be the same: install one of \
         them on both machines"
    )]
    OtherVersion { name: String, theirs: String, ours: String },
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
}
