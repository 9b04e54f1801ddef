//! Keeps the screens up to date: takes what the backend reports, schedules what has to be reloaded,
//! and sends the queries whose time has come.

use std::time::Duration;

use jiff::Timestamp;
use unspool_model::change::Urgency;
use unspool_model::id::SessionId;
use unspool_model::live::MAX_SILENCE;
use unspool_query::attention::{Alert, Seen};
use unspool_query::live::{Update, WriteNotice};
use unspool_query::reader::Query;

use super::{Effect, PendingQuery, Screen, State};
use crate::backend::BackendEvent;
use crate::transcript::{LoadReason, TranscriptPane};

/// The shortest interval between two refreshes of the open session: for growing text (C-20), and
/// for changes of state, which should show at once but never more than once a frame.
const TEXT_REFRESH_INTERVAL: Duration = Duration::from_millis(100);
const STATE_REFRESH_INTERVAL: Duration = Duration::from_millis(33);
/// The delay before a changed row of the list is reloaded.
const ROW_REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// What a session changed is computed from all its edits: not for each write.
const CHANGES_REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// How often budgets are compared with what was spent.
const BUDGET_INTERVAL: Duration = Duration::from_secs(60);
/// Live rows are reloaded this often: a session falls silent or waits without a write.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(2);

impl State {
    pub(super) fn handle_backend_event(&mut self, event: BackendEvent) -> Vec<Effect> {
        match event {
            BackendEvent::Response(number, response) => self.handle_response(number, response),
            BackendEvent::Update(Update::Written(write)) => {
                self.handle_write(write);
                Vec::new()
            }
            BackendEvent::Update(Update::Lagged) => self.refresh_all(),
            BackendEvent::Connected => {
                self.lost = None;
                self.refresh_all()
            }
            BackendEvent::Lost(reason) => {
                self.lost = Some(reason);
                self.pending.clear();
                for screen in &mut self.screens {
                    if let Screen::Session(transcript) = screen {
                        transcript.forget_pending();
                    }
                }
                Vec::new()
            }
            BackendEvent::Synced => {
                self.reading = false;
                Vec::new()
            }
            BackendEvent::ChangeDone(done) => {
                if done.is_ok()
                    && let Some(transcript) = self.transcript_mut()
                {
                    transcript.unsaved_note = None;
                }
                self.set_status(match done {
                    Ok(what) => what,
                    Err(what) => format!("✕ {what}"),
                });
                let mut effects = self.refresh_all();
                for id in std::mem::take(&mut self.changing) {
                    effects.push(
                        self.send_query(
                            PendingQuery::Row(id),
                            Query::Session { id: id.to_string() },
                        ),
                    );
                }
                effects
            }
        }
    }

    fn handle_write(&mut self, WriteNotice { session, urgency }: WriteNotice) {
        let now = self.now;
        let due = now + ROW_REFRESH_INTERVAL;
        self.rows_due.entry(session).and_modify(|held| *held = due.min(*held)).or_insert(due);
        // A sub-agent has no row: what it does shows in the row of a session that was active lately.
        if self.list.all.iter().all(|row| row.id != session) {
            let lately = Timestamp::now() - MAX_SILENCE;
            let rows = self.list.all.iter();
            for row in rows.filter(|row| row.last_heard.is_some_and(|heard| heard >= lately)) {
                self.rows_due.entry(row.id).or_insert(due);
            }
        }
        if self.preview.as_ref().is_some_and(|preview| preview.session == session) {
            self.preview_due.get_or_insert(now + TEXT_REFRESH_INTERVAL);
        }
        if matches!(self.screens.last(), Some(Screen::Changes(pane)) if pane.session == session) {
            self.changes_due.get_or_insert(now + CHANGES_REFRESH_INTERVAL);
        }
        if self.transcript().is_some_and(|transcript| transcript.has_inline(session)) {
            self.inlines_due.entry(session).or_insert(now + TEXT_REFRESH_INTERVAL);
        }
        if self.transcript().is_some_and(|transcript| transcript.session == session) {
            let pace = match urgency {
                Urgency::Text => TEXT_REFRESH_INTERVAL,
                Urgency::State => STATE_REFRESH_INTERVAL,
            };
            let due = (self.refreshed + pace).max(now);
            self.refresh_due = Some(self.refresh_due.map_or(due, |held| held.min(due)));
        }
    }

    /// Schedules the reload of all live rows.
    pub(super) fn schedule_live_rows(&mut self) {
        let due = self.now + LIVENESS_INTERVAL;
        let live = self.list.all.iter().filter(|row| row.is_live());
        for row in live {
            self.rows_due.entry(row.id).or_insert(due);
        }
    }

    /// What a person has to be told, except what this terminal shows and has the focus for.
    pub(super) fn alerts(&mut self) -> Vec<Effect> {
        let seen = self.list.all.iter().map(|row| Seen {
            session: row.id,
            agent: &row.agent,
            project: row.project.as_deref(),
            title: &row.title,
            sub_agent: row.sub_agent,
            activity: row.activity.as_ref(),
            last_turn: row.last_turn,
        });
        let alerts = self.attention.update(seen, Timestamp::now());
        let open = self.transcript().map(|transcript| transcript.session);
        let is_seen = |alert: &Alert| match self.focused {
            Some(focused) => focused && open.is_none_or(|open| open == alert.session),
            // Without focus events, only an open session is certainly looked at.
            None => open == Some(alert.session),
        };
        alerts.into_iter().filter(|alert| !is_seen(alert)).map(Effect::Alert).collect()
    }

    /// Queries for inline sub-agents that were written to.
    fn request_inlines(&mut self) -> Vec<Effect> {
        let now = self.now;
        let due = self.inlines_due.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id);
        let due: Vec<SessionId> = due.collect();
        let mut effects = Vec::new();
        for id in due {
            self.inlines_due.remove(&id);
            let Some(transcript) = self.transcript().filter(|held| held.has_inline(id)) else {
                continue;
            };
            let (session, (reason, query)) = (transcript.session, transcript.request_inline(id));
            effects.push(self.send_query(PendingQuery::Window(session, reason), query));
        }
        effects
    }

    /// Queries what the session of the visible screen changed.
    pub(super) fn request_changes(&mut self) -> Option<Effect> {
        let Some(Screen::Changes(pane)) = self.screens.last() else { return None };
        let (session, query) = (pane.session, pane.query());
        Some(self.send_query(PendingQuery::Changes(session), query))
    }

    /// Queries whose time has come.
    pub(super) fn due(&mut self) -> Vec<Effect> {
        let now = self.now;
        let mut effects = Vec::new();
        if self.refresh_due.is_some_and(|due| due <= now) {
            self.refresh_due = None;
            self.refreshed = now;
            effects.extend(self.query_from_transcript(TranscriptPane::request_refresh));
        }
        let due: Vec<SessionId> =
            self.rows_due.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.rows_due.remove(&id);
            effects.push(
                self.send_query(PendingQuery::Row(id), Query::Session { id: id.to_string() }),
            );
        }
        if self.preview_due.is_some_and(|due| due <= now) {
            self.preview_due = None;
            effects.extend(self.request_preview());
        }
        // An idle application is not woken for this.
        if self.budgets_due <= now && !self.list.all.is_empty() {
            self.budgets_due = now + BUDGET_INTERVAL;
            effects.push(self.send_query(PendingQuery::Budgets, Query::Budgets));
        }
        if self.changes_due.is_some_and(|due| due <= now) {
            self.changes_due = None;
            effects.extend(self.request_changes());
        }
        effects.extend(self.chat_due());
        effects.extend(self.request_inlines());
        effects.extend(self.query_from_transcript(TranscriptPane::request_more));
        effects
    }

    /// Sends the query that the open session builds, if it builds one.
    pub(crate) fn query_from_transcript(
        &mut self,
        build: impl FnOnce(&mut TranscriptPane) -> Option<(LoadReason, Query)>,
    ) -> Option<Effect> {
        let transcript = self.transcript_mut()?;
        let session = transcript.session;
        let (reason, query) = build(transcript)?;
        Some(self.send_query(PendingQuery::Window(session, reason), query))
    }
}
