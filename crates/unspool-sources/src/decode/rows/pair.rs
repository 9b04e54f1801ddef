//! Rows that are a prompt with its result: one run of an agent, as applications keep it in a table
//! of agents (R-001-12). Extends `RowsDecoder`.

use jiff::SignedDuration;
use serde_json::Value;
use unspool_model::event::{EndReason, EventKind, ProseDetail, ProseKind};
use unspool_model::id::sha256;
use unspool_model::json::Json;
use unspool_model::legacy::LegacyRowKind;
use unspool_model::part::{Body, COUNTED_CALLS_KIND, Data};
use unspool_model::provenance::Name;
use unspool_model::session::{Provenance, SnapshotUse, Usage};

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::RowsDecoder;
use super::row;

pub(super) const SYSTEM_PROMPT_FIELDS: [&str; 2] = ["system_prompt", "systemPrompt"];
/// The structured form of the result.
const STRUCTURED_FIELDS: [&str; 2] = ["result_structured", "structured_result"];
/// The application's own groups: what ran together, and as which phase of it.
const GROUP_FIELDS: [&str; 4] = ["execution_id", "executionId", "phase_id", "phaseId"];
/// How many calls of tools the run made.
const CALLS_FIELDS: [&str; 3] = ["tool_calls_count", "toolCallsCount", "tool_call_count"];
const DURATION_FIELDS: [&str; 2] = ["duration_ms", "durationMs"];
const TOTAL_FIELDS: [&str; 2] = ["tokens", "total_tokens"];
const INPUT_TOKEN_FIELDS: [&str; 3] = ["input_tokens", "tokens_in", "prompt_tokens"];
const OUTPUT_TOKEN_FIELDS: [&str; 3] = ["output_tokens", "tokens_out", "completion_tokens"];

/// The fields that only such rows have.
pub(super) fn mapped_fields() -> Vec<&'static str> {
    [
        &SYSTEM_PROMPT_FIELDS[..],
        &STRUCTURED_FIELDS,
        &GROUP_FIELDS,
        &CALLS_FIELDS,
        &DURATION_FIELDS,
        &TOTAL_FIELDS,
        &INPUT_TOKEN_FIELDS,
        &OUTPUT_TOKEN_FIELDS,
        &row::END_TIME_FIELDS,
    ]
    .concat()
}

impl RowsDecoder {
    pub(super) fn pair(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let (prompt, result) =
            (row::text(fields, &row::PROMPT_FIELDS), row::text(fields, &row::RESULT_FIELDS));
        self.emit_row(emit, fields, LegacyRowKind::User(prompt));
        let begun = emit.at;
        emit.at =
            row::END_TIME_FIELDS.into_iter().find_map(|name| row::time_of(&fields.text(name)?));
        if let (None, Some(begun), Some(took)) =
            (emit.at, begun, any_number(fields, &DURATION_FIELDS))
        {
            let took = SignedDuration::from_millis(i64::try_from(took).unwrap_or(i64::MAX));
            emit.at = begun.checked_add(took).ok();
        }
        self.run_step(emit, fields);
        self.run_groups(emit, fields);
        self.counted_calls(emit, fields);
        let over = emit.at.is_some() || !result.trim().is_empty();
        let error = row::error_reply(fields, &result);
        if let Some(error) = &error {
            self.emit_error(emit, fields, error);
        } else if !result.trim().is_empty() {
            let name = self.name(fields, "result");
            let (prose_kind, block, detail) = (ProseKind::Text, Some(name), ProseDetail::default());
            emit.push(EventKind::ProseCompleted { prose_kind, block, text: result, detail });
        }
        for name in STRUCTURED_FIELDS {
            self.keep_field(emit, fields, name, "result");
        }
        self.keep_unmapped(emit, fields);
        let end = match error {
            Some(_) => Some(EndReason::Failed(None)),
            None => row::end(fields),
        };
        match end {
            Some(EndReason::Idle) if !over => {}
            Some(reason) => emit.push(EventKind::TurnEnded(reason)),
            None => {}
        }
        RecordOutcome::InParts
    }

    /// The model call of the run: its model, its system prompt and its tokens.
    fn run_step(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let system = row::any_text(fields, &SYSTEM_PROMPT_FIELDS);
        let usage = usage(fields);
        let model = fields.string("model").filter(|model| !model.is_empty());
        if model.is_none() && system.is_none() && usage == Usage::default() {
            return;
        }
        let step = self.start_step(emit, fields, model);
        if let Some(system) = system {
            let content = Json::string(&system);
            let (kind, sha256) = ("policy".to_owned(), sha256(content.text().as_bytes()));
            let snapshots = vec![SnapshotUse { kind: kind.clone(), sha256: sha256.clone() }];
            emit.push(EventKind::SnapshotTaken { kind, sha256, content });
            let provenance = Provenance { snapshots, ..Provenance::default() };
            emit.push(EventKind::ProvenanceUpdated { step: step.clone(), provenance });
        }
        if usage != Usage::default() {
            emit.push(EventKind::UsageUpdated { step, usage });
        }
    }

    /// The application's groups of a run, as one data part.
    fn run_groups(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let held = GROUP_FIELDS.into_iter().filter_map(|name| Some((name, fields.raw(name)?)));
        let mut text = String::new();
        for (name, value) in held {
            let between = if text.is_empty() { '{' } else { ',' };
            text.push_str(&format!("{between}\"{name}\":{value}"));
        }
        text.push('}');
        if let Some(payload) = Json::parse(&text) {
            let name = self.name(fields, "execution");
            let data = Data { kind: "execution".to_owned(), payload };
            emit.push(EventKind::Part(Some(name), Body::Data(data)));
        }
    }

    /// The calls of a run without a log: the application counts them and keeps none.
    fn counted_calls(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        if let Some(count) = any_number(fields, &CALLS_FIELDS).filter(|count| *count > 0) {
            let name = self.name(fields, COUNTED_CALLS_KIND);
            let (kind, payload) = (COUNTED_CALLS_KIND.to_owned(), Json::from(Value::from(count)));
            emit.push(EventKind::Part(Some(name), Body::Data(Data { kind, payload })));
        }
    }

    /// Keeps a field as a data part of this kind. A string that holds JSON is parsed.
    fn keep_field(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, name: &str, kind: &str) {
        let text = fields.text(name);
        let parsed = text.and_then(|text| Json::parse(text.trim()));
        if let Some(payload) = parsed.or_else(|| fields.json(name)) {
            let name = self.name(fields, &format!("{kind} {}", payload.text()));
            let data = Data { kind: kind.to_owned(), payload };
            emit.push(EventKind::Part(Some(name), Body::Data(data)));
        }
    }

    /// Starts the step of a row.
    pub(super) fn start_step(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        model: Option<String>,
    ) -> Name {
        let step = row::step(emit.at, fields);
        emit.push(EventKind::StepStarted { step: step.clone(), model });
        step
    }
}

/// The tokens of a run. A total without its parts counts as input: the sum is right.
fn usage(fields: &Fields<'_>) -> Usage {
    let input = any_number(fields, &INPUT_TOKEN_FIELDS);
    let output = any_number(fields, &OUTPUT_TOKEN_FIELDS);
    let total = any_number(fields, &TOTAL_FIELDS).filter(|_| input.is_none() && output.is_none());
    Usage { input: input.or(total).unwrap_or(0), output: output.unwrap_or(0), ..Usage::default() }
}

fn any_number(fields: &Fields<'_>, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| fields.number(name))
}
