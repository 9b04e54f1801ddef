//! The files that calls changed, by which `unspool blame` finds the sessions of a file.

use unspool_model::id::SessionId;
use unspool_model::part::Place;

use crate::rows::RowId;

/// Which edited files are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EditedFiles {
    /// Those with one of these names, in any folder.
    Named(Vec<String>),
    /// Those of these sessions.
    OfSessions(Vec<RowId>),
}

/// A call that changed a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EditedFile {
    pub row: RowId,
    pub session: SessionId,
    /// The project folder of the session.
    pub project: Option<String>,
    pub turn: u32,
    pub place: Place,
    /// As the log has it.
    pub path: String,
}
