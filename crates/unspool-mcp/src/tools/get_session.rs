//! `get_session`: the outline of one session, a line per turn.

use rustc_hash::FxHashMap;
use unspool_model::document;
use unspool_store::blocking::block_on;
use unspool_store::store::{StoredSession, View};

use super::list_sessions::session_fields;
use crate::answer::{Answer, AnswerBuilder};
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::parts::{Detail, texts};
use crate::reader::Reader;
use crate::tool::{AFTER, Parameter, SESSION, Tool, ToolError};

/// The beginning of a prompt, in an outline.
const PROMPT_CHARS: usize = 300;
/// Sub-agents that the head names.
const MAX_SUB_AGENTS: usize = 12;

const PARAMETERS: &[Parameter] = &[SESSION, AFTER];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_session",
        title: "Outline of a session",
        description: "One session: its figures and, for each turn, what the user asked, how it \
                      ended, and how many parts and errors it has. Read a turn with get_turn. Call \
                      it without `session` for the session that you are in.",
        parameters: PARAMETERS,
        run: |reader, arguments| {
            let stored = reader.session(arguments)?;
            let after = arguments.after(|cursor| cursor.parse::<u32>().ok())?;
            outline(reader, &stored, after, arguments.limit())
        },
    }
}

/// The head of a session and its turns after one.
pub fn outline<V: View>(
    reader: &Reader<V>,
    stored: &StoredSession,
    after: Option<u32>,
    limit: usize,
) -> Result<Answer, ToolError> {
    let mut exit = reader.exit(stored)?;
    let sizes = block_on(reader.view.sizes(stored.row))?;
    let prompts = block_on(reader.view.prompts(stored.row))?;
    let errors: FxHashMap<u32, u64> =
        prompts.iter().map(|prompt| (prompt.number, prompt.errors)).collect();
    let mut answer = AnswerBuilder::new(limit, head(reader, &mut exit, stored)?, "turns");
    let mut last = after;
    for size in sizes {
        let is_before = after.is_some_and(|after| size.number <= after);
        if is_before || size.number == 0 && size.parts == 0 {
            continue;
        }
        // The prompt as it is stored is cut, perhaps inside a secret.
        let Some(turn) = block_on(reader.view.head(stored.row, size.number))? else { continue };
        let mut turns = [turn];
        stored.summary.settle(&mut turns, jiff::Timestamp::now());
        let [turn] = turns;
        let turn = exit.turn(turn);
        let mut item = Item::new();
        item.number("turn", turn.number).word("trigger", turn.trigger.name());
        item.word("state", turn.state.name()).time("started_at", turn.started);
        if document::time(turn.started) != document::time(turn.ended) {
            item.time("ended_at", turn.ended);
        }
        item.flag("abandoned", turn.abandoned);
        item.number("parts", size.parts);
        item.count("errors", errors.get(&size.number).copied().unwrap_or(0));
        let said = turn.user.iter().find_map(|body| texts(body, Detail::Brief).into_iter().next());
        if let Some((_, said)) = said {
            item.text(&mut exit, "user", &said, PROMPT_CHARS);
        }
        if !answer.push(item.done()) {
            return Ok(answer.finish(last.map(|last| last.to_string())));
        }
        last = Some(size.number);
    }
    Ok(answer.finish(None))
}

fn head<V: View>(
    reader: &Reader<V>,
    exit: &mut Exit<'_>,
    stored: &StoredSession,
) -> Result<SafeValue, ToolError> {
    let mut item = Item::new();
    session_fields(&mut item, exit, stored);
    item.field(exit, "version", stored.summary.session.facts.version.as_deref());
    item.word("completeness", stored.summary.completeness.name());
    if let Some(from) = &stored.summary.session.forked_from {
        item.id("forked_from", &from.session);
    }
    let sub_agents = block_on(reader.view.subagents(stored.row))?;
    item.count("sub_agent_count", sub_agents.len() as u64);
    let told = sub_agents.iter().take(MAX_SUB_AGENTS).map(|sub_agent| {
        Item::new().id("session", &sub_agent.session).number("turn", sub_agent.turn).done()
    });
    item.list("sub_agents", told.collect());
    Ok(item.done())
}
