//! The span of a tool call. Extends `SpanBuilder`.

use serde::Serialize;
use serde_json::{Value, json};
use unspool_model::document::{AnswerDocument, QuestionDocument, earlier_questions};
use unspool_model::json::Json;
use unspool_model::part::{Part, Tool, ToolState};

use super::{INTERNAL, SpanBuilder, TurnProgress};
use crate::project::calls;
use crate::project::otel::clock::TimeRange;
use crate::project::otel::message;
use crate::project::otel::value::of_json;

impl SpanBuilder {
    pub(super) fn tool<'a>(
        &mut self,
        progress: &mut TurnProgress<'a>,
        part: &Part,
        tool: &'a Tool,
    ) {
        let range = TimeRange::of_tool(part, tool.duration_ms, self.now);
        let parent = tool.parent_call_id.as_deref().and_then(|call| progress.tools.get(call));
        let parent = parent.map_or_else(|| progress.span.clone(), |(span, _)| span.clone());
        let span_id = self.span_id(&["part", &part.id.to_string()]);
        let ids = (span_id.clone(), Some(parent));
        let mut span = self.span(ids, INTERNAL, ("execute_tool", &tool.name), range);
        let mut all = self.attributes("execute_tool", range);
        all.text("gen_ai.tool.name", &tool.name);
        all.text("gen_ai.tool.call.id", &calls::call_id(&self.session, part.id, tool));
        all.text("gen_ai.tool.type", if tool.provider_executed { "extension" } else { "function" });
        if let Some(input) = calls::input(tool) {
            all.put("gen_ai.tool.call.arguments", of_json(&input));
        }
        if let Some(result) = message::result(&self.session, tool) {
            all.put("gen_ai.tool.call.result", result);
        }
        all.text("unspool.tool.state", tool.state.name());
        all.maybe_text("unspool.tool.title", tool.title.as_deref());
        if let Some(code) = tool.exit_code {
            all.put("unspool.tool.exit_code", json!({ "intValue": code.to_string() }));
        }
        if let Some(earlier) = earlier_questions(tool) {
            all.put("unspool.tool.earlier", structured(&earlier));
        }
        if let Some(question) = &tool.question {
            all.put("unspool.tool.question", structured(&QuestionDocument(question)));
        }
        if let Some(answer) = &tool.answer {
            all.put("unspool.tool.answer", structured(&AnswerDocument(answer)));
        }
        span.status = match tool.state {
            ToolState::Pending | ToolState::Running => None,
            ToolState::Completed => Some(json!({ "code": 1 })),
            ToolState::Failed | ToolState::Denied | ToolState::Interrupted => {
                all.text("error.type", tool.state.name());
                Some(json!({ "code": 2, "message": tool.state.name() }))
            }
        };
        span.attributes = all.into_values();
        progress.turn_spans.spans.push(span);
        progress.tools.entry(&tool.call_id).or_insert((span_id, range.start));
        self.now = self.now.max(range.start);
        progress.over = progress.over.max(range.end.min(progress.end));
    }
}

fn structured(value: &impl Serialize) -> Value {
    serde_json::to_value(value).map_or(json!({}), |value| of_json(&Json::from(value)))
}
