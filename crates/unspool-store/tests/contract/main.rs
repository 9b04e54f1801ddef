//! The contract of an archive. What holds for every database is written once, generic over
//! [`home::Home`], and instantiated below for each; what only SQLite has (the file, the schema,
//! damage done behind our back) stands beside it. Then the recorder against a model that keeps
//! everything in memory, publishing, and the packing of payloads.
//!
//! `STORE_CASES` sets how many random cases each property is held against.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The scripts of the fold's own tests: what the assembler is held to there, the archive is held to
// here.
#[allow(dead_code, unused_imports)]
#[path = "../../../unspool-core/tests/fold/alphabet.rs"]
mod alphabet;
#[allow(dead_code, unused_imports)]
#[path = "../../../unspool-core/tests/fold/script.rs"]
mod script;
#[allow(dead_code, unused_imports)]
#[path = "../../../unspool-core/tests/fold/table.rs"]
mod table;

mod bodies;
mod checking;
mod deed;
mod desk;
mod dress;
mod fixtures;
mod home;
mod listing;
mod managing;
mod messages;
mod model;
mod opening;
mod operations;
mod packing;
mod publishing;
mod readers;
mod recording;
mod searching;
mod tidying;
mod writing;

/// Holds one kind of archive to the contract. Another database is one more line at the end.
macro_rules! contract {
    ($name:ident, $home:ty: $($module:ident { $($law:ident),* $(,)? })*) => {
        mod $name {
            $(mod $module {
                $(#[test]
                fn $law() {
                    crate::$module::$law::<$home>();
                })*
            })*
        }
    };
}

contract! { sqlite, crate::home::SqliteHome:
    recording {
        what_is_recorded_is_what_was_told,
        a_process_may_end_anywhere,
    }
}
