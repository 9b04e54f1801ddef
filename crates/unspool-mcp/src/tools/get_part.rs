//! `get_part`: one part with its whole texts, a window at a time.

use unspool_model::id::{Id, PartId};
use unspool_model::session::Turn;
use unspool_store::blocking::block_on;
use unspool_store::store::View;

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::item::{Item, TextPiece};
use crate::parts::{self, Detail};
use crate::reader::Reader;
use crate::tool::{AFTER, Parameter, SESSION, Tool, ToolError};

/// Room for the fields of a piece beside its text.
const PIECE_CHARS: usize = 120;

const PARAMETERS: &[Parameter] = &[
    SESSION,
    Parameter::text("part", "The id of the part.").required(),
    Parameter::number("turn", "The number of its turn, if you know it: faster."),
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_part",
        title: "Read a part in full",
        description: "One part of a session with its whole texts: the complete output of a command, \
                      a whole diff, all reasoning. The ids of parts are in the answers of get_turn, \
                      search_sessions and list_failures. Long texts come in several answers.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let stored = reader.session(arguments)?;
    let session = stored.summary.session.id;
    let missing = || {
        ToolError::message(format!(
            "session {session} has no such part; get_turn lists the parts of a turn. `session` must \
             be the one that the part is of"
        ))
    };
    let id = arguments.text("part").and_then(|text| text.parse::<Id>().ok()).map(PartId);
    let id = id.ok_or_else(missing)?;
    let hint = arguments.small_number("turn");
    let mut found = block_on(reader.view.locate(stored.row, hint, id))?;
    if found.is_none() && hint.is_some() {
        found = block_on(reader.view.locate(stored.row, None, id))?;
    }
    let (number, place) = found.ok_or_else(missing)?;
    let turn = block_on(reader.view.head(stored.row, number))?.ok_or_else(missing)?;
    let loaded = block_on(reader.view.parts(stored.row, number, vec![place]))?;
    let mut exit = reader.exit(&stored)?;
    let turn = exit.turn(Turn { parts: loaded, ..turn });
    // The user's own messages have ids for search only: get_turn tells them.
    let part = turn.parts.iter().find(|part| part.id == id).ok_or_else(|| {
        ToolError::message(format!(
            "this is a message of the user: get_turn with session {session} and turn {number} has it"
        ))
    })?;
    let mut head = Item::new();
    head.id("session", &session).number("turn", number);
    parts::head(&mut head, &mut exit, &stored.summary.session.agent, part);
    let texts = parts::texts(&part.body, Detail::Full);
    let (first, mut from) = arguments.after(parse_cursor)?.unwrap_or((0, 0));
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "texts");
    for (at, (name, text)) in texts.iter().enumerate().skip(first) {
        let room = answer.room().saturating_sub(PIECE_CHARS);
        if room < PIECE_CHARS && !answer.is_empty() {
            return Ok(answer.finish(Some(format!("{at}.0"))));
        }
        let piece = TextPiece::of(&mut exit, text, from, room);
        let mut item = Item::new();
        item.word("name", name).count("from", piece.from as u64).piece("text", &piece);
        item.number("chars", piece.chars as u64);
        if !answer.push(item.done()) {
            return Ok(answer.finish(Some(format!("{at}.{from}"))));
        }
        if let Some(next) = piece.next {
            return Ok(answer.finish(Some(format!("{at}.{next}"))));
        }
        from = 0;
    }
    Ok(answer.finish(None))
}

/// The index of a text, and characters of it that were told.
fn parse_cursor(cursor: &str) -> Option<(usize, usize)> {
    let (text, from) = cursor.split_once('.')?;
    Some((text.parse().ok()?, from.parse().ok()?))
}
