//! Session metadata: the first line of a session's text from the database, and `session.*` events.
//! Emits project, version, cost, parent and title when they change.

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::id::SessionId;
use unspool_model::price::ReportedCost;
use unspool_model::session::{Parent, Title, TitleOrigin};

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::time_of;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// When it was created, in milliseconds. Older messages were copied from another session.
    pub created: Option<u64>,
    project: Option<String>,
    version: Option<String>,
    /// Its cost, as written in the source.
    cost: Option<String>,
    /// The cost of its model calls so far.
    #[serde(default)]
    calls_cost: f64,
    title: Option<String>,
    parent: Option<String>,
}

impl Head {
    /// True for the session of a sub-agent.
    pub fn is_agent(&self) -> bool {
        self.parent.is_some()
    }

    /// Adds the cost of a model call. The session's own report of the last call is not in the
    /// database if the program ended right after it: Kilo 7.7.9 writes it some milliseconds later.
    pub fn add_cost(&mut self, emit: &mut Emitter<'_>, step: &Fields<'_>) {
        let Some(usd) = step.raw("cost").and_then(|cost| cost.parse::<f64>().ok()) else { return };
        self.calls_cost += usd;
        let reported = self.cost.as_ref().and_then(|cost| cost.parse().ok()).unwrap_or(0.0);
        // The same sum may differ in its last digit.
        if self.calls_cost > reported + 1e-9 {
            let cost = Some(ReportedCost::of_all(self.calls_cost));
            let (project, branch, version) = (None, None, None);
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        }
    }
}

impl OpenCodeDecoder {
    pub(super) fn session(&mut self, emit: &mut Emitter<'_>, info: &Fields<'_>) -> RecordOutcome {
        let head = &mut self.head;
        let time = info.fields("time");
        head.created = head.created.or_else(|| time.number("created"));
        emit.turn = None;
        emit.at = time_of(&time, "created");
        let (project, version) = (info.string("directory"), info.string("version"));
        // A new session reports a cost of 0.
        let cost = info.raw("cost").filter(|cost| *cost != "0").map(str::to_owned);
        let is_new =
            |value: &Option<String>, held: &Option<String>| value.is_some() && value != held;
        if is_new(&project, &head.project)
            || is_new(&version, &head.version)
            || is_new(&cost, &head.cost)
        {
            emit.push(EventKind::SessionUpdated {
                project: project.clone(),
                branch: None,
                version: version.clone(),
                cost: cost.as_ref().and_then(|cost| cost.parse().ok()).map(ReportedCost::of_all),
            });
            head.project = project.or(head.project.take());
            head.version = version.or(head.version.take());
            head.cost = cost.or(head.cost.take());
        }
        if let Some(parent) = info.string("parentID").filter(|id| head.parent.as_ref() != Some(id))
        {
            let session = SessionId::of(self.product.agent(), &parent);
            let kind = info.string("agent").filter(|kind| !kind.is_empty());
            emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind }));
            head.parent = Some(parent);
        }
        let title = info.string("title").filter(|title| !is_default(title));
        if let Some(title) = title.filter(|title| head.title.as_ref() != Some(title)) {
            head.title = Some(title.clone());
            let origin = TitleOrigin::Generated;
            emit.push(EventKind::TitleSet(Title { text: title, origin }));
        }
        RecordOutcome::Metadata
    }
}

/// True for the placeholder title of a new session: `New session - 2026-11-15T00:26:50.755Z`.
fn is_default(title: &str) -> bool {
    let since = title.strip_prefix("New session - ");
    let since = since.or_else(|| title.strip_prefix("Child session - "));
    since.is_some_and(|since| since.parse::<jiff::Timestamp>().is_ok())
}
