//! Notes: what the user writes about a session, a turn or a part. A note without text is a bookmark.
//! Notes are beside the transcript and never change it: the store keeps them, and `unspool-view`
//! joins them in where they are shown.

use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::id::{PartId, TurnId};
use crate::part::Place;

/// The longest text of a note.
pub const MAX_NOTE_BYTES: usize = 16 * 1024;

/// What a note is about. Each target has at most one note.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteTarget {
    Session,
    Turn(TurnId),
    Part(PartId),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Note {
    pub target: NoteTarget,
    /// Empty for a bookmark.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

impl Note {
    pub fn is_bookmark(&self) -> bool {
        self.text.is_empty()
    }
}

/// A note and where its target is now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlacedNote {
    pub note: Note,
    /// The number of its turn. `None` for the session as a whole and for a target that is gone.
    pub turn: Option<u32>,
    /// The place of its part.
    pub place: Option<Place>,
    /// The first words of its turn or part, or the call that it is on. Empty if there are none.
    #[serde(default)]
    pub about: String,
}

impl PlacedNote {
    /// True if the target is no longer in the transcript.
    pub fn is_lost(&self) -> bool {
        self.note.target != NoteTarget::Session && self.turn.is_none()
    }

    /// In the order of the transcript: the session, its turns and parts, targets that are gone.
    pub fn position(&self) -> (bool, Option<u32>, Option<Place>) {
        (self.is_lost(), self.turn, self.place)
    }
}

/// A note as JSON: in REST answers, `note --json` and exports. The field names are a stable
/// interface for scripts.
pub struct NoteDocument<'a>(pub &'a PlacedNote);

impl Serialize for NoteDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PlacedNote { note, turn, .. } = self.0;
        let (on, turn_id, part) = match note.target {
            NoteTarget::Session => ("session", None, None),
            NoteTarget::Turn(id) => ("turn", Some(id), None),
            NoteTarget::Part(id) => ("part", None, Some(id)),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("on", on)?;
        map.serialize_entry("turn", turn)?;
        map.serialize_entry("turn_id", &turn_id)?;
        map.serialize_entry("part", &part)?;
        map.serialize_entry("bookmark", &note.is_bookmark())?;
        map.serialize_entry("text", &note.text)?;
        map.serialize_entry("at", &format!("{:.3}", note.at))?;
        map.serialize_entry("lost", &self.0.is_lost())?;
        map.end()
    }
}
