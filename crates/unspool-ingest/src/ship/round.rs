//! One round of the collector: what it sends, and what came of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use unspool_query::ship::{Receipt, Unit};

use crate::ship::client::{Client, ShipError};

/// What one round sent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Round {
    pub files: u64,
    /// Of text, after redaction.
    pub bytes: u64,
    /// Redacted secrets by kind.
    pub secrets: BTreeMap<String, u64>,
    /// Files of projects that were not named.
    pub withheld: u64,
    /// Files of which more is there.
    #[serde(skip)]
    pub(super) unfinished: u64,
    /// What the server or this machine would not do, with the file.
    pub problems: Vec<String>,
}

impl Round {
    pub(super) fn add(&mut self, other: Round) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.withheld = other.withheld;
        self.problems.extend(other.problems);
        for (kind, count) in other.secrets {
            *self.secrets.entry(kind).or_default() += count;
        }
    }
}

/// Units that are not sent yet, with their files.
#[derive(Default)]
pub(super) struct Pending {
    pub units: Vec<(PathBuf, Unit)>,
    pub size: usize,
}

/// Sends units. One that the server does not take, for what is in it, does not hold up the others.
pub(super) fn deliver(
    client: &Client,
    units: &[(PathBuf, Unit)],
) -> Result<Vec<Receipt>, ShipError> {
    match (client.send(units.iter().map(|(_, unit)| unit)), units) {
        (Err(ShipError::Rejected { what, .. }), [(_, unit)]) => {
            let file = unit.head.file.clone();
            Ok(vec![Receipt { file, taken: None, refused: Some(what) }])
        }
        (Err(ShipError::Rejected { .. }), [_, _, ..]) => {
            let (some, others) = units.split_at(units.len() / 2);
            Ok([deliver(client, some)?, deliver(client, others)?].concat())
        }
        (outcome, _) => outcome,
    }
}
