//! `get_turn`: the parts of one turn in their true order, each with the beginning of its texts.

use jiff::Timestamp;
use unspool_model::id::{Id, PartId};
use unspool_model::part::{Kind, Place};
use unspool_model::session::Turn;
use unspool_model::skeleton::{PartSkeleton, Skeleton};
use unspool_query::params::PART_KINDS;
use unspool_store::blocking::block_on;
use unspool_store::store::{StoredSession, View};

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::Item;
use crate::parts::{self, Detail};
use crate::reader::Reader;
use crate::tool::{AFTER, Parameter, SESSION, Tool, ToolError};

/// The beginning of a text, unless the client asks for another length.
const TEXT_CHARS: usize = 600;
const MAX_TEXT_CHARS: usize = 8_000;
/// Parts loaded at once: a turn may have 100,000.
const PARTS_PER_LOAD: usize = 16;

const PARAMETERS: &[Parameter] = &[
    SESSION,
    Parameter::number("turn", "The number of the turn; get_session lists them."),
    Parameter::one_of("kind", PART_KINDS, "Only parts of this kind."),
    Parameter::text("tool", "Only calls of this tool."),
    Parameter::number("text_chars", "Characters told of each text: 600 by default."),
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_turn",
        title: "Read a turn",
        description: "One turn of a session in its true order: the user's message, then reasoning, \
                      text, tool calls with input and output, sub-agents, errors. Long texts are cut \
                      to `text_chars`; get_part has them whole. Without `turn`: the last one.",
        parameters: PARAMETERS,
        run: |reader, arguments| {
            let stored = reader.session(arguments)?;
            turn_answer(reader, &stored, arguments)
        },
    }
}

/// What was told last: so many messages of the user, or a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Position {
    User(usize),
    Part(PartId),
}

impl Position {
    fn parse(cursor: &str) -> Option<Position> {
        match cursor.strip_prefix("user.") {
            Some(told) => told.parse().ok().map(Position::User),
            None => cursor.parse::<Id>().ok().map(|id| Position::Part(PartId(id))),
        }
    }

    fn cursor(self) -> String {
        match self {
            Position::User(told) => format!("user.{told}"),
            Position::Part(id) => id.to_string(),
        }
    }
}

/// A turn of a session.
pub fn turn_answer<V: View>(
    reader: &Reader<V>,
    stored: &StoredSession,
    arguments: &Arguments,
) -> Result<Answer, ToolError> {
    let number = match arguments.small_number("turn") {
        Some(number) => number,
        None => block_on(reader.view.sizes(stored.row))?.last().map_or(0, |size| size.number),
    };
    let Some(skeleton) = block_on(reader.view.skeleton(stored.row, number))? else {
        return Err(ToolError::message(format!(
            "the session has no turn {number}; get_session lists its turns"
        )));
    };
    let Skeleton { turn, parts: skeletons } = skeleton;
    let mut exit = reader.exit(stored)?;
    let after = arguments.after(Position::parse)?;
    let most = arguments.number("text_chars").map_or(TEXT_CHARS, |asked| {
        usize::try_from(asked).unwrap_or(MAX_TEXT_CHARS).clamp(40, MAX_TEXT_CHARS)
    });
    let told = user_and_head(&mut exit, stored, turn.clone());
    let agent = stored.summary.session.agent.as_str();
    let mut head = Item::new();
    head.id("session", &stored.summary.session.id).number("turn", number);
    head.word("state", told.state.name()).time("started_at", told.started);
    head.time("ended_at", told.ended).number("parts_in_turn", skeletons.len() as u64);
    head.fields(&mut exit, "models", told.models());
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "parts");
    let mut last = after;
    let is_narrow = arguments.text("kind").is_some() || arguments.text("tool").is_some();
    let skipped = match after {
        None => 0,
        Some(Position::User(told)) => told,
        Some(Position::Part(_)) => usize::MAX,
    };
    for (at, body) in told.user.iter().enumerate().skip(skipped).filter(|_| !is_narrow) {
        let mut item = Item::new();
        item.word("kind", "user");
        for (name, text) in parts::texts(body, Detail::Brief) {
            item.text(&mut exit, name, &text, most);
        }
        if !answer.push(item.done()) {
            return Ok(answer.finish(last.map(Position::cursor)));
        }
        last = Some(Position::User(at + 1));
    }
    let wanted = wanted(&skeletons, after, arguments)?;
    for places in wanted.chunks(PARTS_PER_LOAD) {
        let loaded = block_on(reader.view.parts(stored.row, number, places.to_vec()))?;
        let batch = Turn { parts: loaded, ..turn.head() };
        for part in &user_and_head(&mut exit, stored, batch).parts {
            let mut item = Item::new();
            parts::head(&mut item, &mut exit, agent, part);
            for (name, text) in parts::texts(&part.body, Detail::Brief) {
                item.text(&mut exit, name, &text, most);
            }
            if !answer.push(item.done()) {
                return Ok(answer.finish(last.map(Position::cursor)));
            }
            last = Some(Position::Part(part.id));
        }
    }
    Ok(answer.finish(None))
}

/// A turn with the state that it has now, redacted.
fn user_and_head(
    exit: &mut Exit<'_>,
    stored: &StoredSession,
    turn: Turn,
) -> unspool_redact::Redacted<Turn> {
    let mut turns = [turn];
    stored.summary.settle(&mut turns, Timestamp::now());
    let [turn] = turns;
    exit.turn(turn)
}

/// The places of the parts that are asked for.
fn wanted(
    skeletons: &[PartSkeleton],
    after: Option<Position>,
    arguments: &Arguments,
) -> Result<Vec<Place>, ToolError> {
    let first = match after {
        None | Some(Position::User(_)) => 0,
        Some(Position::Part(id)) => match skeletons.iter().position(|part| part.id == id) {
            Some(at) => at + 1,
            None => return Err(ToolError::message("the turn no longer has the part of `after`")),
        },
    };
    let kind = arguments.text("kind").and_then(Kind::of_name);
    let tool = arguments.text("tool");
    let is_wanted = |part: &&PartSkeleton| {
        kind.is_none_or(|kind| part.kind == kind)
            && tool.is_none_or(|tool| part.tool.as_deref() == Some(tool))
    };
    Ok(skeletons.iter().skip(first).filter(is_wanted).map(|part| part.place).collect())
}
