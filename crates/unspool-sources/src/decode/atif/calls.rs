//! Tool calls and their results. Programs number calls anew in each step, so that ids repeat: a call
//! is named by its step and its place there (`CallIds::WithMessage`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::assemble::content_hash;
use unspool_model::event::{CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::id::digest;
use unspool_model::part::{Body, ContextInfo, ToolState};
use unspool_model::provenance::Name;

use super::super::thoughtflow::{call_answer, call_end, call_question};
use super::super::{Emitter, Fields, json_of};
use super::content;

/// Where each call id was used last, by its digest: the step and the place in it.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct CallIndex(BTreeMap<u64, (u32, usize)>);

impl CallIndex {
    /// The name of the call that an id refers to.
    pub fn find(&self, id: &str) -> Option<Arc<str>> {
        let (step, nth) = self.0.get(&digest(id.as_bytes()))?;
        Some(call_name(*step, *nth, id))
    }

    /// The name of a call that may not be recorded.
    pub fn name(&self, id: &str) -> Arc<str> {
        self.find(id).unwrap_or_else(|| format!("-/{id}").into())
    }

    /// Adds the calls of a step.
    pub fn add_step(&mut self, step: u32, fields: &Fields<'_>) {
        for (nth, call) in fields.list("tool_calls").enumerate() {
            let id = call.text("tool_call_id").unwrap_or_default();
            // Of two calls with one id in a step, results go to the first.
            let held = self.0.entry(digest(id.as_bytes())).or_default();
            if held.0 != step {
                *held = (step, nth);
            }
        }
    }
}

/// The name of a call. Steps count from one.
pub(super) fn call_name(step: u32, nth: usize, id: &str) -> Arc<str> {
    format!("{step}.{nth}/{id}").into()
}

/// The fields that our exports add to a call.
fn own_fields<'a>(call: &Fields<'a>) -> Fields<'a> {
    call.fields("extra").fields("unspool")
}

/// Emits a call with its questions.
pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    index: &CallIndex,
    step: u32,
    nth: usize,
    call: &Fields<'_>,
) {
    let own = own_fields(call);
    let id = call.text("tool_call_id").unwrap_or_default();
    let of_call = CallRef::Id(call_name(step, nth, &id));
    let name = call.string("function_name").unwrap_or_default();
    let input = match own.text("input").as_deref() {
        Some("not told") => None,
        Some("wrapped") => call.fields("arguments").raw_or_null("input").and_then(json_of),
        Some(_) | None => call.json("arguments"),
    };
    let parent = own.text("parent_call_id").map(|id| index.name(&id).to_string());
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: of_call.clone(),
        parent_call_id: parent,
        content_hash: content_hash(&name, input.as_ref()),
        name: name.clone(),
        input,
        provider_executed: own.flag("provider_executed"),
        title: own.string("title"),
        running: !own.is("state", ToolState::Pending.name()),
    })));
    for earlier in own.list("earlier") {
        emit_question(emit, &of_call, &name, &earlier);
    }
    emit_question(emit, &of_call, &name, &own);
}

/// Emits a question about a call and its answer.
fn emit_question(emit: &mut Emitter<'_>, call: &CallRef, tool: &str, fields: &Fields<'_>) {
    if let Some(question) = call_question(&fields.fields("question")) {
        let (call, tool) = (call.clone(), tool.to_owned());
        emit.push(EventKind::QuestionAsked {
            call,
            tool,
            question,
            requested: true,
            inferred: false,
        });
    }
    if let Some(answer) = call_answer(&fields.fields("answer")) {
        emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
    }
}

/// Emits the results of a step, and the ends of calls that have no result of their own: our exports
/// have their states, and a result that names no call is of all of them. Returns true if calls are
/// left without an end.
pub(super) fn emit_results(
    emit: &mut Emitter<'_>,
    index: &CallIndex,
    step: u32,
    fields: &Fields<'_>,
) -> bool {
    let calls: Vec<Fields<'_>> = fields.list("tool_calls").collect();
    let (mut is_open, mut has_common_result) = (vec![true; calls.len()], false);
    for (nth, result) in fields.fields("observation").list("results").enumerate() {
        let place = place_of(&calls, fields, &result);
        if let Some(open) = place.and_then(|place| is_open.get_mut(place)) {
            // A second result of a call is not another end of it, and its text is not lost.
            if !std::mem::replace(open, false) {
                emit_observation(emit, step, nth, &result);
                continue;
            }
        }
        let id = result.text("source_call_id").filter(|id| !id.is_empty());
        match (place, id) {
            (Some(place), _) => {
                let id = calls[place].text("tool_call_id").unwrap_or_default();
                emit_end(emit, call_name(step, place, &id), &result, Some(&calls[place]));
            }
            // Of a call in an earlier step, or of none, whose result then stands by itself.
            (None, Some(id)) => {
                let call = index.find(&id);
                let call = call.unwrap_or_else(|| format!("{step}.result-{nth}/{id}").into());
                emit_end(emit, call, &result, None);
            }
            (None, None) => {
                has_common_result |= result.has("content");
                emit_observation(emit, step, nth, &result);
            }
        }
    }
    let mut is_left_open = false;
    for (nth, call) in calls.iter().enumerate().filter(|(nth, _)| is_open[*nth]) {
        let is_over = has_common_result && !own_fields(call).has("state");
        if let Some(end) = end_of(call).or_else(|| is_over.then_some(ToolEnd::Completed)) {
            let id = call.text("tool_call_id").unwrap_or_default();
            let outcome = ToolOutcome { output: None, ..outcome(call) };
            let call = CallRef::Id(call_name(step, nth, &id));
            emit.push(EventKind::ToolEnded { call, end, outcome });
        } else {
            is_left_open = true;
        }
    }
    is_left_open
}

/// The call of its step that a result is of.
pub(super) fn place_of(
    calls: &[Fields<'_>],
    step: &Fields<'_>,
    result: &Fields<'_>,
) -> Option<usize> {
    match result.text("source_call_id").filter(|id| !id.is_empty()) {
        Some(id) => calls.iter().position(|call| call.is("tool_call_id", &id)),
        // Older converters of Harbor do not name the only call of a step.
        None => {
            let results = step.fields("observation").list("results").count();
            (calls.len() == 1 && results == 1).then_some(0)
        }
    }
}

/// How a call ended, as our exports say.
fn end_of(call: &Fields<'_>) -> Option<ToolEnd> {
    call_end(ToolState::of_name(&own_fields(call).text("state")?)?)
}

fn outcome(call: &Fields<'_>) -> ToolOutcome {
    let own = own_fields(call);
    let (exit_code, duration_ms) = (own.read("exit_code"), own.number("duration_ms"));
    ToolOutcome { exit_code, duration_ms, ..ToolOutcome::default() }
}

fn emit_end(
    emit: &mut Emitter<'_>,
    name: Arc<str>,
    result: &Fields<'_>,
    call: Option<&Fields<'_>>,
) {
    // A call of ours that still runs has its output so far.
    let is_ours = call.is_some_and(|call| own_fields(call).has("state"));
    let end = call.and_then(end_of);
    // Harbor's converter for Claude Code keeps the flag of a failed call.
    let has_failed = result.fields("extra").flag("tool_result_is_error");
    let other = if has_failed { ToolEnd::Failed } else { ToolEnd::Completed };
    let outcome = ToolOutcome {
        output: content::text(result, "content"),
        result: result.json("content").filter(|_| content::has_files(result, "content")),
        ..call.map(outcome).unwrap_or_default()
    };
    let call = CallRef::Id(name);
    match end.or_else(|| (!is_ours).then_some(other)) {
        Some(end) => emit.push(EventKind::ToolEnded { call, end, outcome }),
        None => emit.push(EventKind::ToolRefined { call, outcome }),
    }
}

/// A result that is of no call: what an environment or a program reports to the model.
fn emit_observation(emit: &mut Emitter<'_>, step: u32, nth: usize, result: &Fields<'_>) {
    let is_plain = !content::has_files(result, "content");
    let text = content::text(result, "content").filter(|_| is_plain);
    let text = text.or_else(|| result.raw("content").map(str::to_owned));
    let Some(text) = text.filter(|text| !text.is_empty()) else { return };
    let info = ContextInfo { title: "Observation".to_owned(), text };
    let name = Name::Record(format!("{step}/result-{nth}").into());
    emit.push(EventKind::Part(Some(name), Body::ContextInfo(info)));
}
