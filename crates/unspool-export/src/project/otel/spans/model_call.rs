//! The span of a model call, and what its parts add to the turn: messages, tool spans and events.
//! Extends `SpanBuilder`.

use serde_json::Value;
use unspool_model::part::Body;
use unspool_model::session::Usage;

use super::{CLIENT, Span, SpanBuilder, TurnProgress, usage};
use crate::project::calls::{self, ModelCall};
use crate::project::otel::clock::{TimeRange, nanos};
use crate::project::otel::value::{list, text};
use crate::project::otel::{message, provider};

impl SpanBuilder {
    pub(super) fn call<'a>(
        &mut self,
        progress: &mut TurnProgress<'a>,
        call: &ModelCall<'a>,
        nth: usize,
    ) {
        let range = TimeRange::of_call(&call.parts, self.now);
        self.now = self.now.max(range.start);
        // The index of the model's own span, inserted when its output is complete.
        let place = progress.turn_spans.spans.len();
        let incoming = self.incoming.len();
        let mut answer: Vec<Value> = Vec::new();
        let mut responses: Vec<Value> = Vec::new();
        let mut later: Vec<Value> = Vec::new();
        for part in &call.parts {
            progress.parts += 1;
            match &part.body {
                Body::Text(_) | Body::Reasoning(_) | Body::File(_) | Body::Source(_) => {
                    let over = part.ended.and_then(nanos).unwrap_or(0);
                    progress.over = progress.over.max(over.min(progress.end));
                    answer.push(message::spoken(&self.session, &part.body));
                }
                Body::Tool(tool) => {
                    let id = calls::call_id(&self.session, part.id, tool);
                    answer.push(message::call(&id, tool));
                    let response = message::response(&self.session, &id, tool);
                    if tool.provider_executed { &mut answer } else { &mut responses }
                        .extend(response);
                    self.tool(progress, part, tool);
                }
                Body::Agent(agents) => {
                    self.event(progress, part);
                    progress.delegate(agents, self.now);
                }
                Body::Interjection(_) => {
                    later.push(message::message(
                        "user",
                        vec![message::spoken(&self.session, &part.body)],
                    ));
                    self.event(progress, part);
                }
                Body::Compaction(_) => {
                    let parts = vec![message::spoken(&self.session, &part.body)];
                    later.push(message::message("system", parts));
                    self.event(progress, part);
                }
                Body::TaskList(_)
                | Body::SkillLoad(_)
                | Body::McpSnapshot(_)
                | Body::ContextInfo(_)
                | Body::Patch(_)
                | Body::Notice(_)
                | Body::Error(_)
                | Body::Data(_) => self.event(progress, part),
            }
        }
        let used = !call.continues && call.step.is_some_and(|step| step.usage != Usage::default());
        if !answer.is_empty() || used {
            let incoming = self.incoming.drain(..incoming).collect();
            let span_id = self.span_id(&["call", &progress.turn.id.to_string(), &nth.to_string()]);
            let ids = (span_id, Some(progress.span.clone()));
            let span = self.chat(ids, call, range, incoming, answer);
            progress.turn_spans.spans.insert(place, span);
        }
        if !responses.is_empty() {
            self.incoming.push(message::message("tool", responses));
        }
        self.incoming.extend(later);
        self.now = self.now.max(range.end);
    }

    fn chat(
        &self,
        ids: (String, Option<String>),
        call: &ModelCall<'_>,
        range: TimeRange,
        incoming: Vec<Value>,
        answer: Vec<Value>,
    ) -> Span {
        let model = call.step.and_then(|step| step.model.as_deref());
        let mut span = self.span(ids, CLIENT, ("chat", model.unwrap_or("")), range);
        let mut all = self.attributes("chat", range);
        all.text("gen_ai.provider.name", provider::of(model, &self.session.agent));
        all.maybe_text("gen_ai.request.model", model);
        all.maybe_text("gen_ai.response.model", model);
        let stop_reason = call.step.and_then(|step| step.stop_reason.as_deref());
        if let Some(step) = call.step {
            all.maybe_text("gen_ai.response.id", calls::response_id(&self.session, step));
            all.mark("unspool.call.continues", call.continues);
            if !call.continues {
                usage(&mut all, step.usage);
            }
        }
        if let Some(reason) = stop_reason {
            all.put("gen_ai.response.finish_reasons", list([text(reason)]));
        }
        if !incoming.is_empty() {
            // Not the whole history: only messages that are new since the previous call.
            all.mark("unspool.input.incremental", true);
            all.put("gen_ai.input.messages", list(incoming));
        }
        if !answer.is_empty() {
            all.put("gen_ai.output.messages", list([message::answer(answer, stop_reason)]));
        }
        span.attributes = all.into_values();
        span
    }
}
