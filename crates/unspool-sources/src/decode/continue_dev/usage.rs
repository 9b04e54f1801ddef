//! Tokens of the model calls of a document. A fork copies the history of its origin, with the tokens
//! of each call, and does not name it. But the sum of the document begins at zero then, so the calls
//! that do not fit into it are copied: their turns count in the origin.
//!
//! The sum also has calls that no item has: those before a compaction, the compaction itself, and
//! those of sub-agents. What of it the items lack is reported for the session as a whole. An archive
//! that has read the document before its compaction has counted some of these in their turns, so the
//! state says what was counted, and the decoder of the next text of the file takes it over.

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields};

/// The tokens of each model call, until the sum of the document has been read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallUsage {
    calls: Vec<Call>,
    /// The prompt tokens of the session, if the document has them.
    session_prompt: Option<u64>,
    /// The sum of the document.
    #[serde(default)]
    sum: Option<Usage>,
    /// What was counted of the earlier texts of the file. `None` if nobody knows: an older version
    /// read them.
    #[serde(default)]
    before: Option<Counted>,
    /// What is counted now that this text was read.
    #[serde(default)]
    counted: Option<Counted>,
}

/// Tokens that were counted in turns, up to the end of a text of the file: prompts whole, as the sum of
/// the document has them. Of calls to OpenAI it does not say which tokens were cached.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counted {
    /// The compaction that the text begins with.
    compaction: u64,
    /// Of calls that compactions have removed.
    removed: Usage,
    /// Of the calls of the text.
    calls: Usage,
}

impl Call {
    /// Its tokens as the sum of the document has them.
    fn counted(&self) -> Usage {
        let cached = if self.is_separate { self.usage.cache_read } else { 0 };
        let Usage { output, cache_write, .. } = self.usage;
        Usage { input: self.prompt, output, cache_read: cached, cache_write, ..Usage::default() }
    }
}

impl Default for CallUsage {
    fn default() -> CallUsage {
        let before = Some(Counted::default());
        CallUsage { calls: Vec::new(), session_prompt: None, sum: None, before, counted: None }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    turn: Option<Name>,
    step: Name,
    usage: Usage,
    prompt: u64,
    /// Its prompt tokens exclude cached ones.
    #[serde(default)]
    is_separate: bool,
}

impl CallUsage {
    pub fn add(&mut self, turn: Option<Name>, step: Name, fields: &Fields<'_>) {
        let prompt = fields.number("prompt_tokens").unwrap_or(0);
        let is_separate = is_separate(fields);
        self.calls.push(Call { turn, step, usage: usage(fields), prompt, is_separate });
    }

    pub fn set_session(&mut self, fields: &Fields<'_>) {
        let Some(prompt) = fields.number("promptTokens") else { return };
        self.session_prompt = Some(prompt);
        let details = fields.fields("promptTokensDetails");
        self.sum = Some(Usage {
            input: prompt,
            output: fields.number("completionTokens").unwrap_or(0),
            cache_read: details.number("cachedTokens").unwrap_or(0),
            cache_write: details.number("cacheWriteTokens").unwrap_or(0),
            ..Usage::default()
        });
    }

    /// Takes over from the text that was in the file before; `None` if its state is unknown.
    pub fn replace(&mut self, former: Option<CallUsage>) {
        self.before = former.and_then(|former| former.counted.or(former.before));
    }

    /// Reports the tokens of all calls that are not copied, and which turns are. At rest it also
    /// reports what only the sum of the document has.
    pub fn report(&mut self, emit: &mut Emitter<'_>, compaction: u64, at_rest: bool) {
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
        let mut of_calls = Usage::default();
        for call in own.iter().filter(|call| call.turn.as_ref() != last_copied || copied.is_empty())
        {
            emit.turn.clone_from(&call.turn);
            let (step, usage) = (call.step.clone(), call.usage);
            of_calls.add(call.counted());
            emit.push(EventKind::UsageUpdated { step, usage });
        }
        let Some(before) = self.before else { return };
        let mut removed = before.removed;
        if before.compaction != compaction {
            removed.add(before.calls);
        }
        self.counted = Some(Counted { compaction, removed, calls: of_calls });
        if at_rest && copied.is_empty() {
            let is_separate = own.iter().any(|call| call.is_separate);
            let mut counted = removed;
            counted.add(of_calls);
            self.report_rest(emit, counted, is_separate);
        }
    }

    /// Reports what the sum of the document has beyond the counted tokens.
    fn report_rest(&self, emit: &mut Emitter<'_>, counted: Usage, is_separate: bool) {
        let Some(sum) = self.sum else { return };
        let separate = |tokens: u64| if is_separate { tokens } else { 0 };
        let rest = Usage {
            input: sum.input.saturating_sub(counted.input),
            output: sum.output.saturating_sub(counted.output),
            cache_read: separate(sum.cache_read.saturating_sub(counted.cache_read)),
            cache_write: separate(sum.cache_write.saturating_sub(counted.cache_write)),
            ..Usage::default()
        };
        if rest == Usage::default() {
            return;
        }
        emit.turn = Some(Name::Session);
        let step = Name::Message("session-usage".into());
        emit.push(EventKind::StepStarted { step: step.clone(), model: None });
        emit.push(EventKind::UsageUpdated { step, usage: rest });
    }
}

/// The prompt tokens of OpenAI include cached ones, those of Anthropic do not: these have the tokens
/// that were written to the cache beside them.
fn is_separate(fields: &Fields<'_>) -> bool {
    let details = fields.fields("prompt_tokens_details");
    details.has("cache_write_tokens") || details.has("cache_read_tokens")
}

/// Token usage.
fn usage(fields: &Fields<'_>) -> Usage {
    let details = fields.fields("prompt_tokens_details");
    let prompt = fields.number("prompt_tokens").unwrap_or(0);
    let cached = details.number("cached_tokens").or_else(|| details.number("cache_read_tokens"));
    let cached = cached.unwrap_or(0);
    let thoughts = fields.fields("completion_tokens_details").number("reasoning_tokens");
    Usage {
        input: if is_separate(fields) { prompt } else { prompt.saturating_sub(cached) },
        output: fields.number("completion_tokens").unwrap_or(0),
        cache_read: cached,
        cache_write: details.number("cache_write_tokens").unwrap_or(0),
        reasoning: thoughts.unwrap_or(0),
        ..Usage::default()
    }
}
