//! The tool calls of a streamed message: input, approval requests and results. Extends `Message`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;

use super::{Message, Tool};
use crate::decode::ai_sdk::part_names::Calls;
use crate::decode::ai_sdk::tool::{approval_request, emit_call, emit_end, exported_end, outcome};
use crate::decode::{Emitter, Fields, RecordOutcome};

impl Message {
    pub(super) fn tool(
        &mut self,
        emit: &mut Emitter<'_>,
        calls: &mut Calls,
        kind: &str,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let id = fields.string("toolCallId").unwrap_or_default();
        let call = calls.id(&self.id, &id);
        if !self.tools.contains_key(&id) {
            self.register_call(emit, &id, &call, kind, fields);
        }
        let Some(tool) = self.tools.get_mut(&id) else { return RecordOutcome::Metadata };
        if let Some(name) = fields.string("toolName") {
            tool.name = name;
        }
        let (index, name) = (tool.index, tool.name.clone());
        match kind {
            "tool-input-start" => emit_call(emit, &call, &name, fields, None, false),
            "tool-input-delta" => {
                let text = fields.string("inputTextDelta").unwrap_or_default();
                emit.push(EventKind::ToolInputDelta { call: CallRef::Id(call), name, text });
                return RecordOutcome::InParts;
            }
            "tool-input-available" => {
                emit_call(emit, &call, &name, fields, fields.raw_or_null("input"), true);
                tool.how = exported_end(&fields.fields("providerMetadata"));
                if tool.how == Some(ToolEnd::Interrupted) {
                    tool.over = true;
                    emit_end(emit, &call, ToolEnd::Interrupted, ToolOutcome::default());
                }
                if tool.how.is_some() {
                    return RecordOutcome::InParts;
                }
            }
            "tool-input-error" => {
                emit_call(emit, &call, &name, fields, fields.raw_or_null("input"), true);
                tool.over = true;
                emit_end(emit, &call, ToolEnd::Failed, outcome(fields));
            }
            "tool-approval-request" => {
                let approval = fields.string("approvalId").unwrap_or_default();
                self.approval_request.insert(approval.clone(), id);
                if !fields.flag("isAutomatic") {
                    approval_request(emit, &call, &name, Some(approval), fields.string("reason"));
                }
                let mapped_fields = ["type", "toolCallId", "approvalId"];
                if fields.each().any(|(name, _)| !mapped_fields.contains(&&*name)) {
                    self.rest.keep(index, "approval", fields.whole());
                }
                return RecordOutcome::InParts;
            }
            "tool-output-available" if fields.flag("preliminary") => {
                let outcome = outcome(fields);
                emit.push(EventKind::ToolRefined { call: CallRef::Id(call), outcome });
            }
            "tool-output-available" => {
                tool.over = true;
                emit_end(emit, &call, ToolEnd::Completed, outcome(fields));
            }
            "tool-output-error" => {
                tool.over = true;
                let how = tool.how.unwrap_or(ToolEnd::Failed);
                emit_end(emit, &call, how, outcome(fields));
            }
            "tool-output-denied" => {
                tool.over = true;
                emit_end(emit, &call, ToolEnd::Denied, outcome(fields));
            }
            _ => return self.keep_unknown(emit, fields),
        }
        self.keep_of_tool(index, kind, fields);
        RecordOutcome::InParts
    }

    /// Adds a call that is new to the stream. If its first chunk is a result, the call was made
    /// before the stream began, and the stream continues after it.
    fn register_call(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &str,
        call: &Arc<str>,
        kind: &str,
        fields: &Fields<'_>,
    ) {
        let name = fields.string("toolName").unwrap_or_default();
        let new = kind.starts_with("tool-input-");
        if new {
            self.need_step(emit);
        } else {
            emit_call(emit, call, &name, fields, None, true);
        }
        if new || self.part_names.is_at_start() || self.parts == 0 {
            self.part_names.pass(id);
        }
        let index = if new { self.parts } else { u32::MAX };
        self.parts += u32::from(new);
        self.tools.insert(id.to_owned(), Tool { name, index, over: false, how: None });
    }

    fn keep_of_tool(&mut self, index: u32, kind: &str, fields: &Fields<'_>) {
        const TOOL_CHUNK_FIELDS: [&str; 9] = [
            "type",
            "toolCallId",
            "toolName",
            "title",
            "providerExecuted",
            "input",
            "output",
            "errorText",
            "inputTextDelta",
        ];
        self.rest.drop_field(index, "preliminary");
        self.rest.keep_non_texts(index, fields, &["toolName", "title", "errorText"]);
        if fields.has("providerExecuted") && fields.truth("providerExecuted").is_none() {
            self.rest.keep_present(index, fields, "providerExecuted");
        }
        for (name, value) in fields.each().filter(|(name, _)| !TOOL_CHUNK_FIELDS.contains(&&**name))
        {
            let result = kind.starts_with("tool-output-") || kind == "tool-input-error";
            let (name, value) = match &*name {
                "dynamic" if value == "true" => ("type", Json::string("dynamic-tool")),
                "providerMetadata" if result => ("resultProviderMetadata", Json::checked(value)),
                "providerMetadata" => ("callProviderMetadata", Json::checked(value)),
                name => (name, Json::checked(value)),
            };
            self.rest.keep(index, name, value);
        }
    }
}
