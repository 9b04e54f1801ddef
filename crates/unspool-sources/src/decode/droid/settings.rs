//! The settings file beside a session file (`settings_file.rs`): the model, and the tokens of
//! the session as a whole. Droid writes no tokens per model call.

use unspool_model::event::EventKind;
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields, RecordOutcome};

/// The field `droid` of the record.
pub(super) const RECORD: &str = "settings";

pub(super) fn settings(emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
    let settings = fields.fields("settings");
    // A session that continues a compacted one begins with the tokens of that one, which counts
    // them itself. Without its settings nobody can tell the two apart.
    if fields.has("continues") && !fields.has("inheritedUsage") {
        return RecordOutcome::left_out("tokens of a continued session");
    }
    let tokens = settings.fields("tokenUsage");
    let inherited = usage(&fields.fields("inheritedUsage"));
    let usage = without(usage(&tokens), inherited);
    if usage == Usage::default() {
        return RecordOutcome::Metadata;
    }
    // The file says nothing about single turns.
    emit.turn = Some(Name::Session);
    let step = super::session_step();
    emit.push(EventKind::StepStarted { step: step.clone(), model: settings.string("model") });
    emit.push(EventKind::UsageUpdated { step, usage });
    RecordOutcome::Metadata
}

/// Token usage. `inputTokens` excludes cached tokens.
fn usage(tokens: &Fields<'_>) -> Usage {
    let count = |name: &str| tokens.number(name).unwrap_or(0);
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheCreationTokens"),
        reasoning: count("thinkingTokens"),
        ..Usage::default()
    }
}

fn without(total: Usage, inherited: Usage) -> Usage {
    Usage {
        input: total.input.saturating_sub(inherited.input),
        output: total.output.saturating_sub(inherited.output),
        cache_read: total.cache_read.saturating_sub(inherited.cache_read),
        cache_write: total.cache_write.saturating_sub(inherited.cache_write),
        reasoning: total.reasoning.saturating_sub(inherited.reasoning),
        ..Usage::default()
    }
}
