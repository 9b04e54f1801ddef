//! Tool steps: calls, their state, and their outputs. Extends `ConversationDecoder`.

use unspool_model::event::{CallRef, EventKind, ToolEnd};
use unspool_model::part::ToolState;

use super::super::{Emitter, Fields};
use super::conversation::ConversationDecoder;
use super::steps::Step;
use super::{call, kinds};

impl ConversationDecoder<'_, '_> {
    pub(super) fn tool_call(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>) -> bool {
        let (started, completed) = (&step.started, &step.completed);
        let call = self.steps.call(step);
        let state = call::state(completed);
        call::emit_call(emit, &call, started, state != Some(ToolState::Pending));
        let mut known = call::mapped_call_fields(started);
        let mut came = call::mapped_outcome_fields(completed);
        let mut whole = started.raw("earlier").is_some();
        for earlier in started.list("earlier") {
            let question = call::question(&earlier.fields("question"));
            let Some((question, answer)) = question.zip(call::answer(&earlier.fields("answer")))
            else {
                whole = false;
                continue;
            };
            let tool = started.string("name").unwrap_or_default();
            let asked = call.clone();
            emit.push(EventKind::QuestionAsked {
                call: asked,
                tool,
                question,
                requested: true,
                inferred: false,
            });
            emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
        }
        known.extend(whole.then_some("earlier"));
        let request = started.fields("question");
        if let Some(question) = call::question(&request) {
            let (tool, call) = (started.string("name").unwrap_or_default(), call.clone());
            emit.push(EventKind::QuestionAsked {
                call,
                tool,
                question,
                requested: true,
                inferred: false,
            });
            let whole = kinds::has_only(&request, &["request_id", "items"]);
            known.extend(whole.then_some("question"));
        }
        let reported = completed.fields("answer");
        if let Some(answer) = call::answer(&reported) {
            emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
            let whole = kinds::has_only(&reported, &["decision", "text", "choices", "observed"]);
            came.extend(whole.then_some("answer"));
        }
        came.extend(state.map(|_| "state"));
        self.rest.keep_except(step.index, "payload_started", started, &known);
        self.rest.keep_except(step.index, "payload_completed", completed, &came);
        let outcome = call::outcome(completed);
        if outcome.is_some() {
            self.with_output.insert(call.clone());
        }
        let end = match (state, &outcome) {
            (Some(state), _) => call::end(state),
            (None, Some(_)) if call::says_error(completed) => Some(ToolEnd::Failed),
            (None, Some(_)) => Some(ToolEnd::Completed),
            (None, None) => None,
        };
        if let Some(end) = end {
            emit.at = step.ended();
            emit.push(EventKind::ToolEnded { call, end, outcome: outcome.unwrap_or_default() });
        }
        true
    }

    /// The output of a call. An output without a call becomes a call at its own place (R-002-44).
    pub(super) fn tool_output(
        &mut self,
        emit: &mut Emitter<'_>,
        step: &Step<'_>,
        payload: &Fields<'_>,
    ) -> bool {
        let steps = self.steps;
        let known = steps.called(step);
        let id = payload.text("call_id").filter(|id| !id.is_empty());
        let call = match (known, &id) {
            (Some((called, _)), _) => called.call.clone(),
            (None, Some(id)) => CallRef::Id((&**id).into()),
            (None, None) => steps.call(step),
        };
        if !self.with_output.insert(call.clone()) {
            return false;
        }
        let elsewhere = id.as_ref().is_some_and(|id| self.calls.has(id));
        if known.is_none() && !elsewhere {
            call::emit_call(emit, &call, payload, true);
        }
        let outcome = call::outcome(payload).unwrap_or_default();
        let failed = step.label == "tool_error" || call::says_error(payload);
        let usual = if failed { ToolState::Failed } else { ToolState::Completed };
        let state = call::state(payload);
        let mut fields = call::mapped_outcome_fields(payload);
        fields.extend(state.map(|_| "state"));
        // Fields that repeat those of the call.
        let said = |name: &&str| {
            payload.is_text(name)
                && known
                    .is_none_or(|(_, of)| of.text(name).is_none_or(|own| payload.is(name, &own)))
        };
        fields.extend(["name", "call_id"].into_iter().filter(said));
        self.rest.keep_except(step.index, "payload", payload, &fields);
        emit.at = step.ended().or(step.began());
        let reported = known.is_some_and(|(called, _)| called.ended);
        match call::end(state.unwrap_or(usual)).filter(|_| !reported) {
            Some(end) => emit.push(EventKind::ToolEnded { call, end, outcome }),
            // The call's own step has its end, or the call has not ended.
            None => emit.push(EventKind::ToolRefined { call, outcome }),
        }
        true
    }
}
