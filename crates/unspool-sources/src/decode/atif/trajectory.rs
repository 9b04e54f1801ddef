//! The decoder of trajectories: the fields around the steps, and the steps one by one (`steps.rs`). A
//! trajectory inside another one is decoded as one record.
//!
//! Programs rewrite the document in place after each step. Steps that were written do not change, so
//! their numbers name what is made of them; `step_id` is not used, because nothing makes it unique.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::{SessionId, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Parent, Title, TitleOrigin};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, SideChain};
use super::calls::CallIndex;
use super::check;
use super::metrics::Metrics;
use super::subagents::{self, Starts};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TrajectoryDecoder {
    pub(super) session: Arc<str>,
    /// The trajectory is of a sub-agent that was not reported yet.
    chain: Option<SideChain>,
    /// The number of the latest step, from one.
    pub(super) step: u32,
    /// How many records were not steps.
    around: u32,
    pub(super) model: Option<String>,
    pub(super) turn: CurrentTurn,
    /// The latest model call.
    pub(super) model_call: Option<Arc<str>>,
    pub(super) metrics: Metrics,
    pub(super) calls: CallIndex,
    pub(super) starts: Starts,
}

/// The turn of the latest step.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CurrentTurn {
    pub name: Option<Arc<str>>,
    /// Its number and its state in the session that was exported.
    pub number: Option<u64>,
    pub state: Option<String>,
    pub abandoned: bool,
    /// Calls have no result. That the next turn follows must then not mean that they were
    /// interrupted: programs leave results out.
    pub has_open_calls: bool,
}

impl Decoder for TrajectoryDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        if let Some(chain) = self.chain.take() {
            report_chain(&mut emit, chain);
        }
        if is_list(fields, "steps") {
            self.report_fields(&mut emit, fields);
            for step in fields.list("steps") {
                self.decode_step(&mut emit, &step);
            }
            self.finish(&mut emit, fields);
            return RecordOutcome::InParts;
        }
        if !check::is_root(fields) {
            return self.decode_step(&mut emit, fields);
        }
        self.around = self.around.saturating_add(1);
        self.report_fields(&mut emit, fields);
        if self.around > 1 || self.step > 0 {
            self.finish(&mut emit, fields);
        }
        RecordOutcome::Metadata
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        let problems = if check::is_root(fields) || is_list(fields, "steps") {
            check::trajectory(fields)
        } else {
            check::step(fields, self.step, &self.calls)
        };
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn_name()
    }

    /// A record of a trajectory is never of another one; this is where the decoder learns its
    /// session, which names the sessions of its sub-agents.
    fn side_chain(&mut self, session: &str, _fields: &Fields<'_>) -> Option<SideChain> {
        if *self.session != *session {
            self.session = session.into();
        }
        None
    }

    fn nested<'a>(&self, session: &str, fields: &Fields<'a>) -> Vec<(SideChain, Fields<'a>)> {
        let mut chains = Vec::new();
        subagents::collect(session, fields, &self.starts, 0, &mut chains);
        chains
    }

    fn begin_side_chain(&mut self, chain: &SideChain) {
        self.session = chain.id.clone();
        self.chain = Some(chain.clone());
    }
}

impl TrajectoryDecoder {
    pub(super) fn turn_name(&self) -> Option<Name> {
        self.turn.name.clone().map(Name::Prompt)
    }

    /// The fields of the document, before or after the steps.
    fn report_fields(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let agent = fields.fields("agent");
        self.model = agent.string("model_name").or_else(|| self.model.take());
        let own = fields.fields("extra").fields("unspool");
        let (project, branch) = (own.string("project"), own.string("branch"));
        let version = agent_version(&agent);
        if project.is_some() || branch.is_some() || version.is_some() {
            emit.at = own.time("started_at");
            emit.push(EventKind::SessionUpdated { project, branch, version, cost: None });
            emit.at = None;
        }
        if let Some(text) = own.string("title").filter(|text| !text.is_empty()) {
            emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
        }
        if let Some(content) = agent.json("tool_definitions") {
            let (kind, sha256) = ("tool-schemas".to_owned(), sha256(content.text().as_bytes()));
            emit.push(EventKind::SnapshotTaken { kind, sha256, content });
        }
        self.report_notes(emit, fields);
        self.metrics.note_totals(fields);
    }

    /// What the program says about the document itself, before the first prompt.
    fn report_notes(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        emit.turn = Some(Name::Preamble);
        if let Some(text) = fields.string("notes").filter(|text| !text.is_empty()) {
            let notice = Notice { code: "informational".to_owned(), text };
            let name = Name::Record("notes".into());
            emit.push(EventKind::Part(Some(name), Body::Notice(notice)));
        }
        if let Some(payload) = fields.json("continued_trajectory_ref") {
            let data = Data { kind: "continued-trajectory".to_owned(), payload };
            let name = Name::Record("continued-trajectory".into());
            emit.push(EventKind::Part(Some(name), Body::Data(data)));
        }
        emit.turn = None;
    }

    /// The end of the document, after its steps.
    fn finish(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        emit.at = None;
        self.end_turn(emit, false);
        self.metrics.subtract_agents(fields);
        self.metrics.report_totals(emit);
        subagents::emit_names(emit, &self.session, fields, &self.starts);
    }

    /// Ends the current turn as our exports say. The format has no ends of turns. A turn whose end is
    /// not recorded counts as running until another follows.
    pub(super) fn end_turn(&mut self, emit: &mut Emitter<'_>, another_follows: bool) {
        let reason = match self.turn.state.take().as_deref() {
            Some("completed") => Some(EndReason::Completed),
            Some("failed") => Some(EndReason::Failed(None)),
            Some("interrupted") => Some(EndReason::Interrupted),
            Some("unknown") if another_follows => Some(EndReason::Unseen),
            None if another_follows && self.turn.has_open_calls => Some(EndReason::Unseen),
            Some(_) | None => None,
        };
        let is_abandoned = std::mem::take(&mut self.turn.abandoned);
        let Some(turn) = self.turn_name() else { return };
        if let Some(reason) = reason {
            emit.turn = Some(turn.clone());
            emit.push(EventKind::TurnEnded(reason));
            emit.turn = None;
        }
        if is_abandoned {
            emit.push(EventKind::Rewound { turns: vec![turn] });
        }
    }

    /// A step of an unknown kind.
    pub(super) fn keep_whole(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let kind = fields.string("source").filter(|source| !source.is_empty());
        let kind = kind.unwrap_or_else(|| "step".to_owned());
        let data = Data { kind, payload: fields.whole() };
        let name = Name::Record(format!("step-{}", self.step).into());
        emit.push(EventKind::Part(Some(name), Body::Data(data)));
    }
}

fn is_list(fields: &Fields<'_>, name: &str) -> bool {
    fields.raw(name).is_some_and(|raw| raw.starts_with('['))
}

/// The program that ran and its version: the agent of the session is the format.
fn agent_version(agent: &Fields<'_>) -> Option<String> {
    let name = agent.string("name").filter(|name| !name.is_empty())?;
    let version = agent.text("version").filter(|version| !version.is_empty());
    Some(match version.filter(|version| version != "unknown") {
        Some(version) => format!("{name} {version}"),
        None => name,
    })
}

fn report_chain(emit: &mut Emitter<'_>, chain: SideChain) {
    let SideChain { parent, call, kind, .. } = chain;
    let session = SessionId::of(super::NAME, &parent);
    let call_id = call.map(|call| call.to_string());
    emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
}

/// The content of a step's message, for the digest that names its turn.
pub(super) fn message_source<'a>(fields: &Fields<'a>) -> &'a str {
    fields.raw("message").unwrap_or_default()
}

/// A system message as the snapshot of a prompt.
pub(super) fn snapshot(text: &str) -> EventKind {
    let content = Json::string(text);
    let (kind, sha256) = ("system-policy".to_owned(), sha256(content.text().as_bytes()));
    EventKind::SnapshotTaken { kind, sha256, content }
}
