//! The places of entries and windows in a session.

use unspool_model::part::Place;
use unspool_query::window::{Position, WindowView};
use unspool_view::present::{Item, TurnView};

use crate::entry::{Entry, EntryContent};

pub fn first_place(item: &Item) -> Option<Place> {
    match item {
        Item::Part(part) => Some(part.place),
        Item::Reasoning(block) => block.parts.first().map(|part| part.place),
    }
}

/// The position after which the next entry begins.
pub fn last_place(entry: &Entry) -> Option<Position> {
    match &entry.content {
        EntryContent::Item(_) => {
            let place = entry.parts().last()?.place;
            Some(Position { turn: entry.position.turn, place })
        }
        EntryContent::Foot(_) => Some(entry.position),
        EntryContent::Head(_) | EntryContent::Turn(..) | EntryContent::User(_) => None,
    }
}

/// Where the omitted parts begin, before and after a window.
pub fn edges(shown: &WindowView) -> (Option<Position>, Option<Position>) {
    let cut_before = |turn: &TurnView| {
        let first = turn.items.first()?;
        let missing = match first {
            Item::Part(part) => part.before,
            Item::Reasoning(block) => block.before,
        };
        let place = first_place(first)?;
        (missing > 0).then_some(Position { turn: turn.header.number, place })
    };
    let cut_behind = |turn: &TurnView| {
        let last = match turn.items.last()? {
            Item::Part(part) => part.place,
            Item::Reasoning(block) => block.parts.last()?.place,
        };
        (turn.after > 0).then_some(Position { turn: turn.header.number, place: last })
    };
    let earlier = shown.turns.first().and_then(cut_before).or(shown.earlier);
    let later = shown.turns.last().and_then(cut_behind).or(shown.later);
    (earlier, later)
}
