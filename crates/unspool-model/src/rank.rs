//! Ranks: for each field of a session, a turn, a part or an agent, which feed has set it. Each has
//! keys of its own. Ranks are stored as one digit per field, so the keys' numbers are part of the
//! stored format.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::provenance::Feed;

/// The digits that stored ranks may have.
const DIGITS: usize = 20;

/// A field that feeds may report differently.
pub trait RankKey: Copy {
    /// Its digit in stored ranks, less than 20. Numbers are never reused or changed.
    fn digit(self) -> usize;
}

/// The ranked fields of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionField {
    Project = 0,
    Branch = 1,
    Parent = 3,
    Version = 4,
    ForkedFrom = 16,
}

/// The ranked fields of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnField {
    User = 0,
    Trigger = 1,
    Started = 16,
}

/// The ranked fields of a sub-agent in its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentField {
    Name = 1,
    Task = 4,
    State = 6,
    Activity = 7,
}

/// The ranked fields of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartField {
    /// Prose, or the whole of a part that has no finer fields.
    Body = 0,
    Name = 1,
    Input = 2,
    ParentCall = 3,
    Title = 4,
    State = 6,
    Output = 7,
    Result = 8,
    ExitCode = 9,
    Duration = 10,
    Question = 11,
    Answer = 12,
    Signature = 13,
    Citations = 14,
    Step = 15,
    Started = 16,
    Ended = 17,
    /// The input as it streams.
    InputText = 18,
    /// The output as it streams.
    OutputText = 19,
}

macro_rules! rank_keys {
    ($($key:ty),*) => {
        $(impl RankKey for $key {
            fn digit(self) -> usize {
                self as usize
            }
        })*
    };
}

rank_keys!(SessionField, TurnField, AgentField, PartField);

/// For each field, the rank of the strongest feed that has set it, or 0. A weaker feed never
/// overrides a stronger one, whichever came first, and may always set a field that is still unset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ranks<F> {
    digits: [u8; DIGITS],
    keys: PhantomData<F>,
}

impl<F> Default for Ranks<F> {
    fn default() -> Ranks<F> {
        Ranks { digits: [0; DIGITS], keys: PhantomData }
    }
}

/// One digit per field, without trailing zeros: `33003`.
impl<F> fmt::Display for Ranks<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.digits.iter().rposition(|rank| *rank > 0).map_or(0, |last| last + 1);
        self.digits[..used].iter().try_for_each(|rank| write!(f, "{rank}"))
    }
}

impl<F> fmt::Debug for Ranks<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranks({self})")
    }
}

impl<F> Serialize for Ranks<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, F> Deserialize<'de> for Ranks<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ranks<F>, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let mut ranks = Ranks::default();
        // A newer version may have written more fields than this one knows.
        for (held, digit) in ranks.digits.iter_mut().zip(text.bytes()) {
            *held = digit.wrapping_sub(b'0').min(Feed::ALL.len() as u8);
        }
        Ok(ranks)
    }
}

impl<F: RankKey> Ranks<F> {
    /// Claims the field for `feed`. Returns false if a stronger feed has set it.
    pub fn claim(&mut self, field: F, feed: Feed) -> bool {
        let rank = feed.index() as u8 + 1;
        let held = &mut self.digits[field.digit()];
        let claimed = rank >= *held;
        if claimed {
            *held = rank;
        }
        claimed
    }

    /// Notes that `feed` has set the field, whichever feed had set it before.
    pub fn set(&mut self, field: F, feed: Feed) {
        self.digits[field.digit()] = feed.index() as u8 + 1;
    }

    /// Returns `value` if `feed` may set the field, claiming it.
    pub fn take<T>(&mut self, field: F, feed: Feed, value: Option<T>) -> Option<T> {
        value.filter(|_| self.claim(field, feed))
    }

    /// Clears the rank of a streamed field once the complete value is known. Returns whether the
    /// field was set.
    pub fn drop(&mut self, field: F) -> bool {
        std::mem::take(&mut self.digits[field.digit()]) > 0
    }

    /// Takes the maximum of both ranks per field, for merged parts or turns.
    pub fn join(&mut self, other: Ranks<F>) {
        for (held, used) in self.digits.iter_mut().zip(other.digits) {
            *held = (*held).max(used);
        }
    }

    /// The strongest feed that has set this field.
    pub fn holder(self, field: F) -> Option<Feed> {
        Feed::ALL.into_iter().find(|feed| feed.index() as u8 + 1 == self.digits[field.digit()])
    }
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
