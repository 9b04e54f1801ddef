//! `get_stats`: how much was done: sessions, calls, errors, tokens and cost, and one breakdown.

use unspool_model::id::{Id, SessionId};
use unspool_store::blocking::block_on;
use unspool_store::stats::{GroupFigures, Stats, StatsRequest, UsageFigures};
use unspool_store::store::View;

use super::search_sessions::visible;
use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::reader::{PRIVATE_TAG, Reader};
use crate::scope::Scope;
use crate::tool::{AFTER, AGENT, PROJECT, Parameter, SINCE, Tool, ToolError, UNTIL};

const BY: &[&str] =
    &["tool", "day", "week", "month", "model", "agent", "project", "failure", "error-path"];

const PARAMETERS: &[Parameter] = &[
    Parameter::one_of("by", BY, "The breakdown: tool by default."),
    AGENT,
    PROJECT,
    SINCE,
    UNTIL,
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_stats",
        title: "Statistics",
        description: "Sessions, turns, tool calls, errors, tokens and cost of this project, and a \
                      breakdown: by tool with error rates and durations, by day, week, month, model, \
                      agent or project; `failure` lists failures that repeat, `error-path` the calls \
                      that led to them.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let folder = match reader.scope() {
        Scope::All => None,
        Scope::Folder(folder) => Some(folder.clone()),
    };
    let request = StatsRequest {
        agent: arguments.owned("agent"),
        project: reader.project(arguments)?,
        folder,
        since: arguments.time("since")?,
        until: arguments.time("until")?,
        without_tag: Some(PRIVATE_TAG.to_owned()),
        prices: reader.prices().clone(),
    };
    let skipped = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let by = arguments.text("by").unwrap_or("tool");
    let stats = block_on(reader.view.stats(request))?;
    let mut exit = reader.exit_of_none();
    let mut answer = AnswerBuilder::new(arguments.limit(), totals(&stats), "rows");
    let rows = rows(reader, &mut exit, &stats, by)?;
    for (at, row) in rows.into_iter().enumerate().skip(skipped) {
        if !answer.push(row) {
            return Ok(answer.finish(Some(at.to_string())));
        }
    }
    Ok(answer.finish(None))
}

fn totals(stats: &Stats) -> SafeValue {
    let totals = &stats.totals;
    let mut item = Item::new();
    item.number("sessions", totals.sessions).count("sub_agents", totals.sub_agents);
    item.number("turns", totals.turns).number("model_calls", totals.steps);
    item.number("tool_calls", totals.tool_calls).number("errors", totals.errors);
    usage(&mut item, &totals.usage);
    item.milliseconds("first_at", totals.first).milliseconds("last_at", totals.last);
    item.done()
}

fn usage(item: &mut Item, usage: &UsageFigures) {
    item.number("input_tokens", usage.tokens.input).number("output_tokens", usage.tokens.output);
    item.count("cached_tokens", usage.tokens.cache_read);
    item.amount("spent_usd", usage.spent_usd).flag("spent_is_estimated", usage.is_estimated);
}

fn rows<V: View>(
    reader: &Reader<V>,
    exit: &mut Exit<'_>,
    stats: &Stats,
    by: &str,
) -> Result<Vec<SafeValue>, ToolError> {
    let groups = match by {
        "day" => &stats.by_day,
        "week" => &stats.by_week,
        "month" => &stats.by_month,
        "model" => &stats.by_model,
        "agent" => &stats.by_agent,
        "project" => &stats.by_project,
        "failure" => return failures(reader, exit, stats),
        "error-path" => return error_paths(reader, exit, stats),
        _ => {
            let told = stats.tools.iter().map(|tool| {
                let mut item = Item::new();
                item.field(exit, "tool", Some(&tool.name)).number("calls", tool.calls);
                item.count("failed", tool.failed).count("denied", tool.denied);
                item.count("interrupted", tool.interrupted);
                item.number_if("median_ms", tool.duration.median_ms);
                item.number_if("p95_ms", tool.duration.p95_ms);
                item.done()
            });
            return Ok(told.collect());
        }
    };
    // Periods are oldest first, which is seldom what is asked for.
    let is_period = matches!(by, "day" | "week" | "month");
    let newest_first: Box<dyn Iterator<Item = &GroupFigures>> =
        if is_period { Box::new(groups.iter().rev()) } else { Box::new(groups.iter()) };
    let told = newest_first.map(|group| {
        let mut item = Item::new();
        item.field(exit, "name", group.name.as_deref());
        item.number("sessions", group.sessions).number("turns", group.turns);
        usage(&mut item, &group.usage);
        item.done()
    });
    Ok(told.collect())
}

/// Failures that repeat, without those whose last one the client may not see.
fn failures<V: View>(
    reader: &Reader<V>,
    exit: &mut Exit<'_>,
    stats: &Stats,
) -> Result<Vec<SafeValue>, ToolError> {
    let mut told = Vec::new();
    for failure in &stats.failures {
        let Some((session, mut exit_of_last)) = last(reader, &failure.last.session)? else {
            continue;
        };
        let mut item = Item::new();
        item.field(exit, "tool", Some(&failure.tool));
        item.field(&mut exit_of_last, "error", Some(&failure.error));
        item.number("count", failure.count).number("sessions", failure.sessions);
        item.id("last_session", &session).number("last_turn", failure.last.turn);
        item.milliseconds("last_at", failure.last.at);
        told.push(item.done());
    }
    Ok(told)
}

fn error_paths<V: View>(
    reader: &Reader<V>,
    exit: &mut Exit<'_>,
    stats: &Stats,
) -> Result<Vec<SafeValue>, ToolError> {
    let mut told = Vec::new();
    for path in &stats.error_paths {
        let Some((session, _)) = last(reader, &path.last.session)? else { continue };
        let mut item = Item::new();
        let calls = path.calls.iter().map(|call| call.tool.as_str());
        item.fields(exit, "calls", calls);
        item.number("count", path.count).number("sessions", path.sessions);
        item.id("last_session", &session).number("last_turn", path.last.turn);
        told.push(item.done());
    }
    Ok(told)
}

/// The session of a call, and its way out.
fn last<'r, V: View>(
    reader: &'r Reader<V>,
    session: &str,
) -> Result<Option<(SessionId, Exit<'r>)>, ToolError> {
    let Some(id) = session.parse::<Id>().ok().map(SessionId) else { return Ok(None) };
    match visible(reader, id, None)? {
        Some(stored) => Ok(Some((id, reader.exit(&stored)?))),
        None => Ok(None),
    }
}
