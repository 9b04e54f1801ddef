//! One session, a window of it at a time.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use serde::Deserialize;
use unspool_core::present::{self, TurnView};
use unspool_core::session::Session;
use unspool_engine::family::family;
use unspool_render::page;
use unspool_store::contract::{Store, StoredSession, Window};

use super::{Page, html};
use crate::App;
use crate::api::find;
use crate::problem::Problem;
use crate::room::settle;

/// So many turns does a page show at first, and so many more at a time.
const TURNS: u32 = 20;
/// And so many behind one that is looked for.
const AFTER: u32 = 6;

#[derive(Debug, Deserialize)]
pub struct Place {
    /// The turns before this one.
    before: Option<u32>,
    /// The turns around this one.
    turn: Option<u32>,
}

impl Place {
    /// The number behind the last turn that is shown.
    fn end(&self) -> Option<u32> {
        self.before.or(self.turn.map(|turn| turn.saturating_add(AFTER)))
    }
}

/// Some turns of a session, as they are shown.
struct Shown {
    views: Vec<TurnView>,
    /// The number of the turn before them.
    older: Option<u32>,
}

async fn load<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    before: Option<u32>,
) -> Result<Shown, Problem> {
    let end = before.unwrap_or(u32::MAX);
    let last = u32::try_from(stored.summary.turns).unwrap_or(u32::MAX).min(end);
    let first = last.saturating_sub(TURNS);
    let window = Window::From { number: first, count: TURNS + 1 };
    let mut turns = app.store.turns(stored.row, window).await?;
    turns.retain(|turn| turn.number < end);
    let session: &Session = &stored.summary.session;
    settle(&mut turns, stored.summary.ended);
    let family = family(&app.store, &session.agent, &turns).await?;
    let options = present::Options { family, ..present::Options::of(session) };
    let views: Vec<TurnView> = turns.iter().map(|turn| present::turn(turn, &options)).collect();
    Ok(Shown { views, older: first.checked_sub(1) })
}

pub async fn session<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Page {
    let stored = find(&app, &id).await?;
    let shown = load(&app, &stored, place.end()).await?;
    let page = page::Session {
        summary: &stored.summary,
        prices: &app.prices,
        seq: stored.seq,
        turns: &shown.views,
        older: shown.older,
        resume: resume(&stored.summary.session),
    };
    Ok(html(&page::session(&page)))
}

/// Earlier turns, for a page that is open.
pub async fn turns<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Page {
    let stored = find(&app, &id).await?;
    let shown = load(&app, &stored, place.before).await?;
    let id = stored.summary.session.id.to_string();
    Ok(html(&page::stretch(&id, &shown.views, shown.older)))
}

/// How to go on with a session in its agent.
fn resume(session: &Session) -> Option<String> {
    // An id is the agent's own text: only what no shell reads anything into is offered.
    let id = &session.agent_session_id;
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let command = match session.agent.as_str() {
        "claude-code" => format!("claude --resume {id}"),
        "codex" => format!("codex resume {id}"),
        "opencode" => format!("opencode --session {id}"),
        "copilot" => format!("copilot --resume {id}"),
        "gemini" => format!("gemini --resume {id}"),
        _ => return None,
    };
    (plain && session.parent.is_none()).then_some(command)
}
