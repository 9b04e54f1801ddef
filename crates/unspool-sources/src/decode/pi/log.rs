//! Pi's session file: `sessions/<folder>/<time>_<session>.jsonl`. It is a tree of entries that is
//! only appended to: the order of the file is the order of events, and `parentId` says to which
//! branch an entry belongs. An entry whose parent is not the entry before it is a jump to another
//! branch. A file of an older version is rewritten once, with new entry ids; times of messages stay.
//!
//! The same decoder reads the conversation of a sub-agent, which is inside an entry.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::{SessionId, digest};
use unspool_model::part::{Body, Compaction, Data, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{ForkedFrom, Parent, Title, TitleOrigin, Trigger};

use super::super::claude::Tree;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, SessionContext, SideChain};
use super::conversation::Conversation;
use super::reply::usage;
use super::result::{nested, text_of};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogDecoder {
    conversation: Conversation,
    /// When the file was made. Older entries of a fork were copied.
    created: Option<Timestamp>,
    is_fork: bool,
    project: Option<String>,
    tree: Tree,
    /// The digest of the last entry's id.
    last: Option<u64>,
    /// The side chain of this decoder, until it is reported.
    follows: Option<SideChain>,
}

impl Decoder for LogDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let id = fields.text("id");
        let mut emit = Emitter::new(Feed::Log, record, id.as_deref(), out);
        emit.at = fields.time("timestamp");
        if let Some(chain) = self.follows.take() {
            self.report_chain(&mut emit, chain);
        }
        if self.conversation.is_agent {
            return self.conversation.messages(&mut emit, fields);
        }
        if super::is_head(fields) {
            return self.head(&mut emit, fields);
        }
        self.jump(&mut emit, fields);
        let outcome = self.entry(&mut emit, fields, id.as_deref().unwrap_or_default());
        if let Some(id) = id {
            self.tree.note(digest(id.as_bytes()));
            self.last = Some(digest(id.as_bytes()));
        }
        outcome
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.tree.current().cloned()
    }

    fn nested<'a>(&self, session: &str, fields: &Fields<'a>) -> Vec<(SideChain, Fields<'a>)> {
        nested(session, &fields.fields("message"))
    }

    fn session_context(&self) -> Option<SessionContext> {
        Some(SessionContext { project: self.project.clone(), branch: None, version: None })
    }

    fn inherit_context(&mut self, context: SessionContext) {
        self.project = context.project;
    }

    fn begin_side_chain(&mut self, chain: &SideChain) {
        self.conversation.is_agent = true;
        self.conversation.session = chain.id.clone();
        self.follows = Some(chain.clone());
    }
}

impl LogDecoder {
    fn head(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.conversation.session = fields.text("id").unwrap_or_default().into();
        self.created = emit.at;
        self.project = fields.string("cwd");
        let (branch, version, cost) = (None, None, None);
        let project = self.project.clone();
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        if let Some(path) = fields.text("parentSession") {
            self.is_fork = true;
            if let Some(origin) = session_of_path(&path) {
                let session = SessionId::of(super::NAME, origin);
                emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
            }
        }
        RecordOutcome::Metadata
    }

    fn report_chain(&mut self, emit: &mut Emitter<'_>, chain: SideChain) {
        let SideChain { parent, call, kind, title, .. } = chain;
        let session = SessionId::of(super::NAME, &parent);
        let call_id = call.map(|call| call.to_string());
        let (project, branch, version, cost) = (self.project.clone(), None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
        if let Some(text) = title {
            emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
        }
    }

    /// Reports the turns that the user left for another branch.
    fn jump(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let Some(parent) = fields.text("parentId") else { return };
        if self.last == Some(digest(parent.as_bytes())) {
            return;
        }
        let turns = self.tree.rewind(&parent);
        if !turns.is_empty() {
            emit.push(EventKind::Rewound { turns });
            self.conversation.running = false;
        }
        // What comes before the next prompt belongs to the branch that the user went to.
        emit.turn = Some(self.tree.current().cloned().unwrap_or(Name::Preamble));
    }

    fn entry(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, id: &str) -> RecordOutcome {
        let name = || Some(Name::Record(id.into()));
        match fields.text("type").as_deref() {
            Some("message") => self.message(emit, fields, id),
            Some("session_info") => {
                if let Some(text) = fields.string("name").filter(|name| !name.is_empty()) {
                    let origin = TitleOrigin::Custom;
                    emit.push(EventKind::TitleSet(Title { text, origin }));
                }
                RecordOutcome::Metadata
            }
            Some("thinking_level_change") => {
                self.conversation.thinking = Some(!fields.is("thinkingLevel", "off"));
                RecordOutcome::Metadata
            }
            // A reply names its model; a label is a bookmark.
            Some("model_change" | "label") => RecordOutcome::Metadata,
            Some("compaction") => self.summary(emit, fields, id),
            // It comes after the turns that the user left, and before the next prompt: a turn of
            // its own.
            Some("branch_summary") => {
                self.note_copied(emit.at);
                let (trigger, user) = (Trigger::Command, Vec::new());
                let turn = self.conversation.start(emit, &Arc::from(id), trigger, user);
                self.conversation.running = false;
                let outcome = self.summary(emit, fields, id);
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                self.tree.begin(turn);
                outcome
            }
            Some("custom_message") if fields.flag("display") => {
                let code = fields.string("customType").unwrap_or_default();
                let text = fields.string("content").unwrap_or_else(|| text_of(fields));
                emit.push(EventKind::Part(name(), Body::Notice(Notice { code, text })));
                RecordOutcome::InParts
            }
            // Written after each failed reply, which it takes out of what the model sees.
            Some("context_edit") if !fields.has("replacement") => RecordOutcome::Metadata,
            kind => {
                let kind = match (kind.unwrap_or("entry"), fields.text("customType")) {
                    (kind, Some(custom)) => format!("{kind}/{custom}"),
                    (kind, None) => kind.to_owned(),
                };
                let data = Data { kind, payload: fields.whole() };
                emit.push(EventKind::Part(name(), Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    fn note_copied(&mut self, at: Option<Timestamp>) {
        let copied = matches!((self.created, at), (Some(made), Some(at)) if at < made);
        self.conversation.inherited = self.is_fork && copied;
    }

    fn message(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, id: &str) -> RecordOutcome {
        self.note_copied(emit.at);
        let message = fields.fields("message");
        let (outcome, turn) = self.conversation.message(emit, &message, id);
        if let Some(turn) = turn {
            self.tree.begin(turn);
        }
        outcome
    }

    /// The summary of what the model no longer sees: older messages, or a branch that was left.
    fn summary(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, id: &str) -> RecordOutcome {
        let summary = fields.string("summary").unwrap_or_default();
        let of_branch = fields.is("type", "branch_summary");
        let compaction = Compaction {
            trigger: of_branch.then(|| "branch".to_owned()),
            tokens_before: fields.number("tokensBefore"),
            summary: summary.clone(),
            ..Compaction::default()
        };
        emit.push(EventKind::Part(Some(summary_name(&summary)), Body::Compaction(compaction)));
        let used = fields.fields("usage");
        if used.is_object() && !self.conversation.inherited {
            let (step, used) = (Name::Message(Arc::from(id)), usage(&used));
            emit.push(EventKind::UsageUpdated { step, usage: used });
            self.conversation.report_cost(emit, fields, used);
        }
        RecordOutcome::InParts
    }
}

/// The name of a compaction in the file and in the events, which share no ids.
pub(super) fn summary_name(summary: &str) -> Name {
    Name::ByContent(digest(format!("summary\n{summary}").as_bytes()), 0)
}

/// The session of a file, from its path: `<time>_<session>.jsonl`, also of Windows.
fn session_of_path(path: &str) -> Option<&str> {
    let file = path.rsplit(['/', '\\']).next()?;
    let (_, session) = file.strip_suffix(".jsonl")?.split_once('_')?;
    Some(session).filter(|session| !session.is_empty())
}
