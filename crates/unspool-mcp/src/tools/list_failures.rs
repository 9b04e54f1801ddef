//! `list_failures`: failed calls and errors, newest first, or those that repeat.

use unspool_model::part::{Body, Kind, ToolState};
use unspool_model::session::Turn;
use unspool_store::blocking::block_on;
use unspool_store::search::{Hit, SearchRequest};
use unspool_store::store::{StoredSession, View};

use super::search_sessions::{brief, visible};
use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::parts::{self, Detail};
use crate::reader::Reader;
use crate::tool::{AFTER, AGENT, PROJECT, Parameter, SESSION, SINCE, Tool, ToolError, UNTIL};

/// Failures that are looked at, over all answers.
const MAX_FAILURES: usize = 500;
/// Failures loaded for one answer.
const FAILURES_PER_ANSWER: usize = 40;
/// The end of an output says why it failed.
const OUTPUT_CHARS: usize = 400;
const INPUT_CHARS: usize = 300;

const OF: &[&str] = &["failed", "denied", "interrupted", "errors"];

const PARAMETERS: &[Parameter] = &[
    Parameter::one_of(
        "of",
        OF,
        "Failed calls by default; or denied or interrupted calls, or \
                                 errors such as failed model calls.",
    ),
    Parameter { description: "Only this session: its id or a prefix.", ..SESSION },
    Parameter::text("tool", "Only calls of this tool."),
    AGENT,
    PROJECT,
    SINCE,
    UNTIL,
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "list_failures",
        title: "List what failed",
        description: "Calls that failed, were denied or were interrupted, and errors of the agent, \
                      newest first, with the command and the end of its output. Use it to learn from \
                      what went wrong before you repeat it, or to review a session.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let session = match arguments.text("session") {
        Some(text) => Some(reader.named(text)?),
        None => None,
    };
    let told = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let narrower = reader.project(arguments)?;
    let (kind, state) = match arguments.text("of") {
        Some("errors") => (Some(Kind::Error.name().to_owned()), None),
        other => (None, Some(other.unwrap_or(ToolState::Failed.name()).to_owned())),
    };
    let limit = told.saturating_add(FAILURES_PER_ANSWER).min(MAX_FAILURES);
    let request = SearchRequest {
        session: session.as_ref().map(|stored| stored.summary.session.id),
        agent: arguments.owned("agent"),
        project: reader.scope().folder_path().map(str::to_owned).or_else(|| narrower.clone()),
        kind,
        state,
        tool: arguments.owned("tool"),
        since: arguments.time("since")?,
        until: arguments.time("until")?,
        limit: limit.saturating_add(1),
        ..SearchRequest::new("")
    };
    let results = block_on(reader.view.search(request))?;
    let mut head = Item::new();
    if let Some(stored) = &session {
        head.id("session", &stored.summary.session.id);
    }
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "failures");
    let more = results.hits.len() > limit && limit < MAX_FAILURES;
    for (at, hit) in results.hits.iter().enumerate().take(limit).skip(told) {
        // To a search, a failed call is an error too.
        if arguments.text("of") == Some("errors") && hit.tool.is_some() {
            continue;
        }
        let Some(stored) = visible(reader, hit.session, narrower.as_deref())? else { continue };
        let mut exit = reader.exit(&stored)?;
        let Some(item) = failure(reader, &mut exit, &stored, hit)? else { continue };
        if !answer.push(item) {
            return Ok(answer.finish(Some(at.to_string())));
        }
    }
    Ok(answer.finish(more.then(|| limit.to_string())))
}

fn failure<V: View>(
    reader: &Reader<V>,
    exit: &mut Exit<'_>,
    stored: &StoredSession,
    hit: &Hit,
) -> Result<Option<SafeValue>, ToolError> {
    let (Some(number), Some(place)) = (hit.turn, hit.place) else { return Ok(None) };
    let Some(turn) = block_on(reader.view.head(stored.row, number))? else { return Ok(None) };
    let loaded = block_on(reader.view.parts(stored.row, number, vec![place]))?;
    let turn = exit.turn(Turn { parts: loaded, ..turn });
    let Some(part) = turn.parts.first() else { return Ok(None) };
    let mut item = Item::new();
    item.number("turn", number);
    parts::head(&mut item, exit, &stored.summary.session.agent, part);
    for (name, text) in parts::texts(&part.body, Detail::Brief) {
        match (name, &part.body) {
            ("output", Body::Tool(_)) => item.text(exit, name, end(&text), OUTPUT_CHARS),
            (_, _) => item.text(exit, name, &text, INPUT_CHARS),
        };
    }
    item.object("of", brief(exit, stored));
    Ok(Some(item.done()))
}

/// The end of an output, from the beginning of a line.
fn end(text: &str) -> &str {
    let text = text.trim_end();
    let chars = text.chars().count();
    let Some(skipped) = chars.checked_sub(OUTPUT_CHARS) else { return text };
    let at = text.char_indices().nth(skipped).map_or(0, |(at, _)| at);
    let behind = text.get(at..).unwrap_or_default();
    behind.split_once('\n').map_or(behind, |(_, lines)| lines)
}
