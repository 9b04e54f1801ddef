//! Handlers for views over whole turns: message groups and the list of tool calls.

use serde::Serialize;
use unspool_model::agent::own_call_id;
use unspool_model::document::{BodyDocument, PartDocument};
use unspool_model::history::{
    MessageGroup, ToolCallEntry, message_groups, tool_calls, unfinished_calls,
};
use unspool_model::id::{PartId, TurnId};
use unspool_model::json::Json;
use unspool_store::store::{Store, TurnWindow, View};
use unspool_view::segment::{SegmentRule, TurnSegment, segment};

use super::find;
use super::parameter::DEFAULT_TURNS;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use super::sessions::TurnSelection;
use super::turns::{not_modified, session_response};
use crate::App;
use crate::problem::Problem;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
enum GroupDocument<'a> {
    User { turn: u32, turn_id: TurnId, items: Vec<BodyDocument<'a>> },
    Assistant(AssistantDocument<'a>),
}

#[derive(Serialize)]
struct AssistantDocument<'a> {
    turn: u32,
    turn_id: TurnId,
    is_thinking_mode: bool,
    items: Vec<PartDocument<'a>>,
    /// The items as reasoning blocks and single parts, in order.
    segments: Vec<SegmentDocument>,
    /// The two lists of C-09, derived from the segments: what is in blocks, and the rest.
    blocks: Vec<Vec<PartId>>,
    reply: Vec<PartId>,
}

#[derive(Serialize)]
struct SegmentDocument {
    kind: &'static str,
    tool_calls: usize,
    parts: Vec<PartId>,
}

/// For each turn the user's group and then the assistant's (R-004-15).
pub async fn groups<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let range = TurnSelection::following(params.number("after"), params.limit(DEFAULT_TURNS));
    let (turns, more) = range.load(app, &stored).await?;
    let next = turns.last().filter(|_| more).map(|last| params.next(&last.number.to_string()));
    let agent = &stored.summary.session.agent;
    let rule = match params.text("rule") {
        Some("until-text") => SegmentRule::UntilText,
        Some(_) | None => SegmentRule::Default,
    };
    let groups = message_groups(&turns).map(|group| group_document(agent, group, rule));
    session_response(params, &stored, &groups.collect::<Vec<_>>(), next)
}

fn group_document<'a>(
    agent: &'a str,
    group: MessageGroup<'a>,
    rule: SegmentRule,
) -> GroupDocument<'a> {
    match group {
        MessageGroup::User { turn, items } => {
            let items = items.iter().map(|body| BodyDocument { agent, body }).collect();
            GroupDocument::User { turn: turn.number, turn_id: turn.id, items }
        }
        MessageGroup::Assistant { turn, items, thinking_mode } => {
            let segments = segment(items, thinking_mode, rule);
            let (blocks, reply): (Vec<&TurnSegment<'_>>, Vec<&TurnSegment<'_>>) =
                segments.iter().partition(|one| matches!(one, TurnSegment::Block(_)));
            GroupDocument::Assistant(AssistantDocument {
                turn: turn.number,
                turn_id: turn.id,
                is_thinking_mode: thinking_mode,
                items: PartDocument::all(agent, turn, items).collect(),
                segments: segments.iter().map(segment_document).collect(),
                blocks: blocks.iter().map(|block| ids(block)).collect(),
                reply: reply.iter().flat_map(|one| ids(one)).collect(),
            })
        }
    }
}

fn segment_document(one: &TurnSegment<'_>) -> SegmentDocument {
    let kind = match one {
        TurnSegment::Block(_) => "block",
        TurnSegment::Part(_) => "part",
    };
    SegmentDocument { kind, tool_calls: one.tool_count(), parts: ids(one) }
}

fn ids(one: &TurnSegment<'_>) -> Vec<PartId> {
    one.parts().map(|part| part.id).collect()
}

#[derive(Serialize)]
struct CallList<'a> {
    calls: Vec<CallDocument<'a>>,
    /// The `order` of each call that has no end.
    dangling: Vec<usize>,
}

#[derive(Serialize)]
struct CallDocument<'a> {
    order: usize,
    turn: u32,
    call_id: &'a str,
    name: &'a str,
    input: Option<&'a Json>,
    output: Option<&'a str>,
    error: Option<&'a str>,
    state: &'static str,
}

/// All calls of a session in order (R-001-26), and those without an end (R-001-20).
pub async fn calls<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let turns = app.view().turns(stored.row, TurnWindow::All).await?;
    let agent = &stored.summary.session.agent;
    let list = CallList {
        calls: tool_calls(&turns).map(|call| call_document(agent, call)).collect(),
        dangling: unfinished_calls(&turns).map(|call| call.order).collect(),
    };
    session_response(params, &stored, &list, None)
}

fn call_document<'a>(agent: &str, call: ToolCallEntry<'a>) -> CallDocument<'a> {
    let ToolCallEntry { order, turn, id, name, input, output, error, state } = call;
    let (turn, state) = (turn.number, state.name());
    CallDocument { order, turn, call_id: own_call_id(agent, id), name, input, output, error, state }
}
