//! Turns rows into events. `row.rs` reads the fields; `unspool_model::legacy` has the turn rule.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ToolEnd, ToolOutcome};
use unspool_model::id::digest;
use unspool_model::legacy::{
    self, LegacyBlock, LegacyCall, LegacyMessage, LegacyRow, LegacyRowKind,
};
use unspool_model::part::{Body, ContextInfo, Data, Failure, ToolState};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Title, TitleOrigin};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::blocks;
use super::row::{self, RowRole};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsDecoder {
    /// Occurrences of each prompt, and of each other content in this turn. Rows without ids are
    /// named by content, so that reading a row again gives the same name.
    prompts: BTreeMap<u64, u32>,
    alike: BTreeMap<u64, u32>,
    /// A user row has come.
    begun: bool,
    /// All rows so far are prompts with their results; `None` before the first row.
    outcomes_only: Option<bool>,
}

impl Decoder for RowsDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        emit.at = row::time(fields);
        let kind = row::kind(fields).unwrap_or(RowRole::Other);
        self.begun |= matches!(kind, RowRole::User | RowRole::Pair);
        // The same rows in another file must also go before the first turn.
        emit.turn = (!self.begun).then_some(Name::Preamble);
        self.emit_outcomes_only(&mut emit, kind == RowRole::Pair);
        if let Some(text) = fields.string("title").filter(|title| !title.trim().is_empty()) {
            emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
        }
        let said = match kind {
            RowRole::Pair => return self.pair(&mut emit, fields),
            RowRole::System => {
                let text = row::text(fields, &row::TEXT_FIELDS);
                let name = self.name(fields, &format!("system {text}"));
                let info = ContextInfo { title: "System message".to_owned(), text };
                emit.push(EventKind::Part(Some(name), Body::ContextInfo(info)));
                return RecordOutcome::InParts;
            }
            RowRole::ToolResult => {
                self.result(&mut emit, row::call(fields), fields);
                return RecordOutcome::InParts;
            }
            RowRole::Other => {
                let kind = row::any_text(fields, &["type", "role", "kind"]);
                let kind = kind.map_or_else(|| "row".to_owned(), |kind| kind.into_owned());
                let name = self.name(fields, fields.whole().text());
                let data = Data { kind, payload: fields.whole() };
                emit.push(EventKind::Part(Some(name), Body::Data(data)));
                return RecordOutcome::InParts;
            }
            RowRole::User => {
                let text = || row::text(fields, &row::TEXT_FIELDS);
                LegacyRowKind::User(blocks::text(fields).unwrap_or_else(text))
            }
            RowRole::Think => {
                let thought = row::thinking(fields);
                let text = row::text(fields, &row::TEXT_FIELDS);
                LegacyRowKind::Think(if thought.is_empty() { text } else { thought })
            }
            RowRole::Tool => LegacyRowKind::Tool(self.call(fields, row::call(fields))),
            RowRole::Assistant if blocks::has_blocks(fields) => {
                let all = blocks::blocks(fields).unwrap_or_default().into_iter();
                let named = all.map(|block| match block {
                    LegacyBlock::Call(call) => LegacyBlock::Call(self.call(fields, call)),
                    LegacyBlock::Text(_)
                    | LegacyBlock::Think(_)
                    | LegacyBlock::Result(_)
                    | LegacyBlock::Data(_) => block,
                });
                LegacyRowKind::Blocks(named.collect())
            }
            RowRole::Assistant => {
                let LegacyMessage { calls, thinking, content, agents } = row::message(fields);
                let error = row::error_reply(fields, &content).filter(|_| calls.is_empty());
                if let Some(error) = error {
                    self.model(&mut emit, fields);
                    self.emit_row(&mut emit, fields, LegacyRowKind::Think(thinking));
                    self.emit_error(&mut emit, fields, &error);
                    self.keep_unmapped(&mut emit, fields);
                    emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
                    return RecordOutcome::InParts;
                }
                let calls = calls.into_iter().map(|call| self.call(fields, call)).collect();
                LegacyRowKind::Message(LegacyMessage { calls, thinking, content, agents })
            }
        };
        if kind != RowRole::User {
            self.model(&mut emit, fields);
        }
        let reported = self.emit_row(&mut emit, fields, said);
        self.keep_unmapped(&mut emit, fields);
        if reported { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl RowsDecoder {
    fn emit_outcomes_only(&mut self, emit: &mut Emitter<'_>, pair: bool) {
        let only = self.outcomes_only.unwrap_or(true) && pair;
        if self.outcomes_only != Some(only) {
            self.outcomes_only = Some(only);
            emit.push(EventKind::OutcomesOnly(only));
        }
    }

    /// Emits a row by the legacy rule, with names of our own. Returns true if it made a part.
    pub(super) fn emit_row(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        said: LegacyRowKind,
    ) -> bool {
        let open = match &said {
            LegacyRowKind::Tool(call) => call.state == ToolState::Running,
            LegacyRowKind::Message(message) => {
                message.calls.iter().any(|call| call.state == ToolState::Running)
            }
            LegacyRowKind::Blocks(blocks) => has_open_call(blocks),
            LegacyRowKind::User(_) | LegacyRowKind::Text(_) | LegacyRowKind::Think(_) => false,
        };
        let row = LegacyRow { id: row::id(fields), at: emit.at, said };
        let mut reported = false;
        for event in legacy::events(&[row], 0) {
            let kind = event.kind;
            if let EventKind::TurnStarted { names, trigger, user } = kind {
                let names = match names.is_empty() {
                    true => vec![self.prompt(emit, &format!("{user:?}"))],
                    false => names,
                };
                self.alike.clear();
                emit.push(EventKind::TurnStarted { names, trigger, user });
                reported = true;
                continue;
            }
            if let EventKind::ProseCompleted { prose_kind, text, detail, .. } = kind {
                if !text.trim().is_empty() {
                    let name = self.name(fields, &format!("{prose_kind:?} {text}"));
                    emit.push(EventKind::ProseCompleted {
                        prose_kind,
                        block: Some(name),
                        text,
                        detail,
                    });
                    reported = true;
                }
                continue;
            }
            if let EventKind::Part(None, body) = kind {
                let name = self.name(fields, &format!("{body:?}"));
                emit.push(EventKind::Part(Some(name), body));
                reported = true;
                continue;
            }
            // The result of an open call is a later row, so the turn has not ended.
            if !(open && matches!(kind, EventKind::TurnEnded(_))) {
                reported |= matches!(kind, EventKind::ToolCalled(_) | EventKind::ToolEnded { .. });
                emit.push(kind);
            }
        }
        reported
    }

    /// Starts a step if the row names its model.
    fn model(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let model = fields.string("model").filter(|model| !model.is_empty());
        if model.is_some() {
            self.start_step(emit, fields, model);
        }
    }

    pub(super) fn emit_error(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, error: &str) {
        let name = self.name(fields, &format!("error {error}"));
        let failure = Failure { text: error.to_owned(), ..Failure::default() };
        emit.push(EventKind::Part(Some(name), Body::Error(failure)));
    }

    /// Ends the call of a result row, which may come many rows later.
    fn result(&mut self, emit: &mut Emitter<'_>, reported: LegacyCall, fields: &Fields<'_>) {
        let output = reported.output.or_else(|| Some(row::text(fields, &row::TEXT_FIELDS)));
        let end = match reported.state {
            ToolState::Failed => ToolEnd::Failed,
            ToolState::Denied => ToolEnd::Denied,
            ToolState::Interrupted => ToolEnd::Interrupted,
            ToolState::Pending | ToolState::Running | ToolState::Completed => ToolEnd::Completed,
        };
        let outcome = ToolOutcome { output, ..ToolOutcome::default() };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(reported.id.into()), end, outcome });
    }

    /// Gives a call without an id one made from its content.
    fn call(&mut self, fields: &Fields<'_>, call: LegacyCall) -> LegacyCall {
        if !call.id.is_empty() {
            return call;
        }
        let input = call.input.as_ref().map(|input| input.text().to_owned()).unwrap_or_default();
        let id = row::id(fields).map(|id| format!("row {id}"));
        let id = id.unwrap_or_else(|| {
            let content =
                digest(format!("{:?} {} {input}", row::time(fields), call.name).as_bytes());
            format!("row {content:016x} {}", count(&mut self.alike, content))
        });
        LegacyCall { id, ..call }
    }

    fn prompt(&mut self, emit: &Emitter<'_>, said: &str) -> Name {
        let content = digest(format!("{:?} {said}", emit.at).as_bytes());
        Name::ByContent(content, count(&mut self.prompts, content))
    }

    /// The name of a part: the row's id and the number of the part in the row, or its content.
    pub(super) fn name(&mut self, fields: &Fields<'_>, said: &str) -> Name {
        match row::id(fields) {
            Some(id) => {
                let nth = count(&mut self.alike, digest(id.as_bytes()));
                Name::Record(format!("{id} {nth}").into())
            }
            None => {
                let content = digest(format!("{:?} {said}", row::time(fields)).as_bytes());
                Name::ByContent(content, count(&mut self.alike, content))
            }
        }
    }

    /// Keeps unmapped fields as a data part after the row.
    pub(super) fn keep_unmapped(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let rest = row::unmapped(fields);
        if rest.is_empty() {
            return;
        }
        let fields_of: BTreeMap<_, _> = rest.into_iter().collect();
        let mut text = String::from("{");
        for (name, value) in fields_of {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(unspool_model::json::Json::string(&name).text());
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        let Some(payload) = unspool_model::json::Json::parse(&text) else { return };
        let name = self.name(fields, &format!("rest {text}"));
        emit.push(EventKind::Part(
            Some(name),
            Body::Data(Data { kind: "row".to_owned(), payload }),
        ));
    }
}

/// True if the result of a call is not among the blocks.
fn has_open_call(blocks: &[LegacyBlock]) -> bool {
    let ends = |id: &str| {
        blocks.iter().any(|block| matches!(block, LegacyBlock::Result(end) if end.id == id))
    };
    blocks.iter().any(|block| {
        matches!(block, LegacyBlock::Call(call)
            if call.state == ToolState::Running && !ends(&call.id))
    })
}

/// Counts a content; returns its earlier occurrences.
fn count(counts: &mut BTreeMap<u64, u32>, content: u64) -> u32 {
    let count = counts.entry(content).or_default();
    *count = count.saturating_add(1);
    *count - 1
}
