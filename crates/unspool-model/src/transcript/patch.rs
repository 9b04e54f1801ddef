//! What a change does to one turn or one part: patches, deltas and the fields that a merge takes.
//! No function here looks at another turn or part; `TranscriptBuilder` finds them and keeps their
//! order.

use crate::change::{
    DeltaField, PartMergeField, PartPatch, ToolPatch, TurnMergeField, TurnPatch, replace_leading,
};
use crate::part::{Body, Part, Tool};
use crate::session::Turn;

pub(super) fn patch_turn(turn: &mut Turn, patch: TurnPatch) {
    set(&mut turn.number, patch.number);
    set(&mut turn.trigger, patch.trigger);
    set(&mut turn.user, patch.user);
    if let Some(leading) = patch.user_replayed {
        replace_leading(&mut turn.user, leading);
    }
    turn.user.extend(patch.user_added);
    set(&mut turn.thinking_mode, patch.thinking_mode);
    set(&mut turn.state, patch.state);
    set(&mut turn.abandoned, patch.abandoned);
    set(&mut turn.inherited, patch.inherited);
    set_option(&mut turn.started, patch.started);
    set(&mut turn.ended, patch.ended);
    set(&mut turn.origin, patch.origin);
}

/// Applies a patch to a part. Fields that the part's kind does not have are left alone.
pub fn patch_part(part: &mut Part, patch: PartPatch) {
    set(&mut part.place, patch.place);
    set_option(&mut part.step, patch.step);
    set_option(&mut part.started, patch.started);
    set_option(&mut part.ended, patch.ended);
    for evidence in patch.evidence {
        // Kept sorted, so that arrival order leaves no trace.
        if let Err(at) = part.evidence.binary_search(&evidence) {
            part.evidence.insert(at, evidence);
        }
    }
    set(&mut part.origin, patch.origin);
    set(&mut part.body, patch.body);
    match &mut part.body {
        Body::Text(text) => {
            set(&mut text.text, patch.text);
            set(&mut text.open, patch.open);
            set(&mut text.citations, patch.citations);
        }
        Body::Reasoning(reasoning) => {
            set(&mut reasoning.text, patch.text);
            set(&mut reasoning.open, patch.open);
            set(&mut reasoning.redacted, patch.redacted);
            // The signer always changes with the signature.
            if patch.signature.is_some() {
                (reasoning.signature, reasoning.signer) = (patch.signature, patch.signer);
            }
            set_option(&mut reasoning.duration_ms, patch.duration_ms);
        }
        Body::Tool(tool) => {
            if let Some(patch) = patch.tool {
                patch_tool(tool, *patch);
            }
        }
        Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => {}
    }
}

fn patch_tool(tool: &mut Tool, patch: ToolPatch) {
    set(&mut tool.call_id, patch.call_id);
    set_option(&mut tool.parent_call_id, patch.parent_call_id);
    set(&mut tool.name, patch.name);
    set_option(&mut tool.input, patch.input);
    set(&mut tool.input_text, patch.input_text);
    set(&mut tool.state, patch.state);
    set_option(&mut tool.reported_state, patch.reported_state);
    set_option(&mut tool.output, patch.output);
    set_option(&mut tool.result, patch.result);
    set_option(&mut tool.exit_code, patch.exit_code);
    set_option(&mut tool.duration_ms, patch.duration_ms);
    set_option(&mut tool.question, patch.question);
    if patch.earlier.is_some() {
        tool.answer = None;
    }
    set_option(&mut tool.answer, patch.answer);
    set(&mut tool.earlier, patch.earlier);
    set(&mut tool.provider_executed, patch.provider_executed);
    set_option(&mut tool.title, patch.title);
}

pub(super) fn grow(part: &mut Part, field: DeltaField, text: &str) {
    match (&mut part.body, field) {
        (Body::Text(part), DeltaField::Text) => part.text.push_str(text),
        (Body::Reasoning(part), DeltaField::Text) => part.text.push_str(text),
        (Body::Tool(part), DeltaField::Input) => part.input_text.push_str(text),
        (Body::Tool(part), DeltaField::Output) => {
            part.output.get_or_insert_default().push_str(text);
        }
        (
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Tool(_)
            | Body::Agent(_)
            | Body::Interjection(_)
            | Body::TaskList(_)
            | Body::SkillLoad(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::File(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_),
            DeltaField::Text | DeltaField::Input | DeltaField::Output,
        ) => {}
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn set_option<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

/// Copies the fields that the change names.
pub(super) fn merge_parts(kept: &mut Part, gone: Part, take: &[PartMergeField]) {
    let takes = |field| take.contains(&field);
    let mut patch = PartPatch {
        step: gone.step.filter(|_| takes(PartMergeField::Step)),
        started: gone.started.filter(|_| takes(PartMergeField::Started)),
        ended: gone.ended.filter(|_| takes(PartMergeField::Ended)),
        evidence: gone.evidence,
        ..PartPatch::default()
    };
    if let Body::Tool(tool) = gone.body {
        // Set here, because a patch with earlier questions takes the answer back.
        if let Body::Tool(kept) = &mut kept.body
            && takes(PartMergeField::Question)
        {
            kept.earlier = tool.earlier;
        }
        patch.tool = Some(Box::new(ToolPatch {
            call_id: Some(tool.call_id).filter(|_| takes(PartMergeField::CallId)),
            parent_call_id: tool.parent_call_id.filter(|_| takes(PartMergeField::ParentCallId)),
            name: Some(tool.name).filter(|_| takes(PartMergeField::Name)),
            input: tool.input.filter(|_| takes(PartMergeField::Input)),
            input_text: None,
            state: Some(tool.state).filter(|_| takes(PartMergeField::State)),
            reported_state: tool.reported_state.filter(|_| takes(PartMergeField::State)),
            output: tool.output.filter(|_| takes(PartMergeField::Output)),
            result: tool.result.filter(|_| takes(PartMergeField::Result)),
            exit_code: tool.exit_code.filter(|_| takes(PartMergeField::ExitCode)),
            duration_ms: tool.duration_ms.filter(|_| takes(PartMergeField::DurationMs)),
            question: tool.question.filter(|_| takes(PartMergeField::Question)),
            answer: tool.answer.filter(|_| takes(PartMergeField::Answer)),
            earlier: None,
            provider_executed: takes(PartMergeField::ProviderExecuted)
                .then_some(tool.provider_executed),
            title: tool.title.filter(|_| takes(PartMergeField::Title)),
        }));
    } else if takes(PartMergeField::Body) {
        patch.body = Some(gone.body);
    }
    patch_part(kept, patch);
}

pub(super) fn merge_turn_fields(kept: &mut Turn, gone: &mut Turn, take: &[TurnMergeField]) {
    for field in take {
        match field {
            TurnMergeField::User => kept.user = std::mem::take(&mut gone.user),
            TurnMergeField::Trigger => kept.trigger = gone.trigger,
            TurnMergeField::Started => kept.started = gone.started,
            TurnMergeField::Abandoned => kept.abandoned = gone.abandoned,
            TurnMergeField::Inherited => kept.inherited = gone.inherited,
        }
    }
}
