//! Whose hook payloads these are: other agents took over the hooks of Claude Code, with other ids.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::provenance::Name;

use super::super::super::{Emitter, Fields, droid, qwen};
use super::super::message::started;

#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::decode) enum HookDialect {
    #[default]
    ClaudeCode,
    QwenCode,
    Droid,
}

impl HookDialect {
    pub fn is_default(&self) -> bool {
        *self == HookDialect::default()
    }

    pub fn agent(self) -> &'static str {
        match self {
            HookDialect::ClaudeCode => super::super::NAME,
            HookDialect::QwenCode => qwen::NAME,
            HookDialect::Droid => droid::NAME,
        }
    }

    /// The field with the id that the log has for a call. Qwen Code makes up a `tool_use_id`; Droid
    /// has no ids of calls.
    pub fn call_id(self) -> &'static str {
        match self {
            HookDialect::ClaudeCode | HookDialect::Droid => "tool_use_id",
            HookDialect::QwenCode => "tool_call_id",
        }
    }

    /// The id of the prompt that an event belongs to. Droid names a prompt by its message, and only
    /// in the event of the prompt.
    pub fn prompt_id(self, fields: &Fields<'_>, event: &str) -> Option<Arc<str>> {
        let field = match self {
            HookDialect::Droid if event == "UserPromptSubmit" => "message_id",
            HookDialect::ClaudeCode | HookDialect::QwenCode | HookDialect::Droid => "prompt_id",
        };
        fields.text(field).map(|id| id.into())
    }

    /// The name of the turn that a prompt starts. Qwen Code's log has other ids of prompts, and two
    /// ids of prompts are two turns.
    pub fn prompt_name(self, id: Arc<str>) -> Name {
        match self {
            HookDialect::ClaudeCode | HookDialect::Droid => Name::Prompt(id),
            HookDialect::QwenCode => Name::Record(id),
        }
    }

    pub fn agent_id(self, fields: &Fields<'_>) -> Option<Arc<str>> {
        let id = fields.text("agent_id")?;
        Some(match self {
            HookDialect::ClaudeCode | HookDialect::Droid => id.into(),
            HookDialect::QwenCode => qwen::agent_session(&fields.text("session_id")?, &id).into(),
        })
    }

    /// True if the agent reports only the prompts that a person typed in its terminal: Droid has no
    /// such event for `droid exec`, for editors and for reports of background tasks. Its session
    /// file has the calls of these turns.
    pub fn hides_prompts(self) -> bool {
        match self {
            HookDialect::Droid => true,
            HookDialect::ClaudeCode | HookDialect::QwenCode => false,
        }
    }

    /// True if the agent asks for permission with a notification, which names no call.
    pub fn asks_by_notification(self) -> bool {
        match self {
            HookDialect::Droid => true,
            HookDialect::ClaudeCode | HookDialect::QwenCode => false,
        }
    }

    pub fn started(self, emit: &mut Emitter<'_>, id: &Arc<str>, tool: &str, fields: &Fields<'_>) {
        let input = fields.fields("tool_input");
        match self {
            HookDialect::ClaudeCode | HookDialect::Droid => started(emit, id, tool, &input),
            HookDialect::QwenCode => {
                let session = fields.text("session_id").unwrap_or_default();
                qwen::started(emit, &session, id, tool, &input);
            }
        }
    }
}
