//! Positions in a session, and the anchors of windows. Clients send both.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unspool_model::part::Place;

/// A position in a session: a turn and a place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Position {
    pub turn: u32,
    pub place: Place,
}

impl Position {
    /// Before every part of a turn.
    pub fn start_of(turn: u32) -> Position {
        Position { turn, place: Place(0) }
    }

    /// After every part of a turn.
    pub fn end_of(turn: u32) -> Position {
        Position { turn, place: Place(i64::MAX) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.place.0)
    }
}

impl FromStr for Position {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Position, Self::Err> {
        let read = |text: &str| {
            let (turn, place) = text.split_once('.')?;
            Some(Position { turn: turn.parse().ok()?, place: Place(place.parse().ok()?) })
        };
        read(text).ok_or("invalid position: expected a turn and a place, such as 12.4000000")
    }
}

/// The position that a window is loaded around.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anchor {
    /// The end of the session.
    End,
    /// The parts around this position.
    Around(Position),
    /// The parts from this position on.
    From(Position),
    /// The parts before this position.
    Before(Position),
    /// The parts after this position.
    After(Position),
    /// The parts before this position in the same reasoning block.
    Inside(Position),
    /// The parts between two positions, both inclusive.
    Between(Position, Position),
}
