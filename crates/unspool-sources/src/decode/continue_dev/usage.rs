//! Tokens of the model calls of a document. A fork copies the history of its origin, with the tokens
//! of each call, and does not name it. But the sum of the document begins at zero then, so the calls
//! that do not fit into it are copied: their turns count in the origin.

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields};

/// The tokens of each model call, until the sum of the document has been read.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallUsage {
    calls: Vec<Call>,
    /// The prompt tokens of the session, if the document has them.
    session_prompt: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    turn: Option<Name>,
    step: Name,
    usage: Usage,
    prompt: u64,
}

impl CallUsage {
    pub fn add(&mut self, turn: Option<Name>, step: Name, fields: &Fields<'_>) {
        let prompt = fields.number("prompt_tokens").unwrap_or(0);
        self.calls.push(Call { turn, step, usage: usage(fields), prompt });
    }

    pub fn set_session(&mut self, fields: &Fields<'_>) {
        self.session_prompt = fields.number("promptTokens").or(self.session_prompt);
    }

    /// Reports the tokens of all calls that are not copied, and which turns are.
    pub fn report(&mut self, emit: &mut Emitter<'_>) {
        let calls = std::mem::take(&mut self.calls);
        let mut rest = self.session_prompt.unwrap_or(u64::MAX);
        // From the last call on: the session's own calls come after the copied ones.
        let is_own = |call: &&Call| {
            let fits = call.prompt <= rest;
            rest = rest.saturating_sub(call.prompt);
            fits
        };
        let own = calls.iter().rev().take_while(is_own).count();
        let (copied, own) = calls.split_at(calls.len() - own);
        // A call is copied with its whole turn.
        let last_copied = copied.last().and_then(|call| call.turn.as_ref());
        for call in copied {
            if let Some(turn) = &call.turn {
                emit.turn = Some(turn.clone());
                emit.push(EventKind::TurnInherited);
            }
        }
        for call in own.iter().filter(|call| call.turn.as_ref() != last_copied || copied.is_empty())
        {
            emit.turn.clone_from(&call.turn);
            let (step, usage) = (call.step.clone(), call.usage);
            emit.push(EventKind::UsageUpdated { step, usage });
        }
    }
}

/// Token usage. The prompt tokens of OpenAI include cached ones, those of Anthropic do not: these
/// have the tokens that were written to the cache beside them.
fn usage(fields: &Fields<'_>) -> Usage {
    let details = fields.fields("prompt_tokens_details");
    let prompt = fields.number("prompt_tokens").unwrap_or(0);
    let cached = details.number("cached_tokens").or_else(|| details.number("cache_read_tokens"));
    let cached = cached.unwrap_or(0);
    let is_separate = details.has("cache_write_tokens") || details.has("cache_read_tokens");
    let thoughts = fields.fields("completion_tokens_details").number("reasoning_tokens");
    Usage {
        input: if is_separate { prompt } else { prompt.saturating_sub(cached) },
        output: fields.number("completion_tokens").unwrap_or(0),
        cache_read: cached,
        cache_write: details.number("cache_write_tokens").unwrap_or(0),
        reasoning: thoughts.unwrap_or(0),
        ..Usage::default()
    }
}
