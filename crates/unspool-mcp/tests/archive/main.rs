//! The tools over real archives in SQLite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fuzz;
mod machine;
mod scopes;
mod secrets;
mod tools;
