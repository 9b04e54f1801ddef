//! The assembler's state of a stored turn, rebuilt from its row: what the turn, its steps and its
//! parts would be in memory if they had never been released.

use crate::assemble::fold::{AgentsFold, PartFold, Prose, RunFold, StepFold, ToolFold, TurnFold};
use crate::assemble::order::spine_place;
use crate::assemble::part::{body_digest, explains};
use crate::assemble::runs::{Words, whole_run};
use crate::assemble::tool::shown_answer;
use crate::id::digest;
use crate::part::{Body, Part, Tool};
use crate::provenance::{Feed, Origin};
use crate::rank::PartField;
use crate::session::{Trigger, Turn};

pub(super) fn fold_turn(turn: &Turn) -> TurnFold {
    let mut fold = TurnFold::new(turn.id);
    fold.number = turn.number;
    fold.origin = turn.origin.clone();
    fold.thinking_mode = turn.thinking_mode;
    fold.is_command = turn.trigger == Trigger::Command;
    fold.state = turn.state;
    fold.ended = turn.ended;
    fold.abandoned = turn.abandoned;
    fold.inherited = turn.inherited;
    fold.steps = turn
        .steps
        .iter()
        .map(|step| StepFold {
            id: step.id,
            gone: false,
            name: step.name.clone(),
            at: step.at,
            place: Default::default(),
            model: step.model.clone(),
            usage: step.usage,
            stop_reason: step.stop_reason.clone(),
            request: step.request.clone(),
            provenance: step.provenance.clone(),
        })
        .collect();
    place_steps(&mut fold, turn);
    (0..fold.steps.len()).for_each(|step| fold.register_step(step));
    for part in &turn.parts {
        let held = skeleton(part);
        for feed in Feed::ALL {
            if let Some(position) = held.origin.at.of(feed) {
                let placed = &mut fold.placed[feed.index()];
                *placed = (*placed).max(position + 1);
            }
        }
        let at = fold.parts.len();
        fold.has_reasoning |= matches!(part.body, Body::Reasoning(_));
        for (class, content, nth) in &held.origin.occurrences {
            let count = fold.lookups.occurrences.entry((*class, *content)).or_default();
            *count = (*count).max(nth + 1);
        }
        fold.parts.push(held);
        for name in part.origin.names.iter().filter(|name| name.is_local()) {
            fold.set_local(name.clone(), at);
        }
    }
    fold.name_by_content();
    for (placed, next) in fold.placed.iter_mut().zip(fold.origin.next_positions) {
        *placed = (*placed).max(next);
    }
    for kept in &fold.origin.reserved_places {
        let placed = &mut fold.placed[kept.feed.index()];
        *placed = (*placed).max(kept.position + 1);
    }
    for step in &fold.steps {
        for feed in Feed::ALL {
            if let Some(position) = step.at.of(feed) {
                let stepped = &mut fold.stepped[feed.index()];
                if position >= *stepped {
                    *stepped = position + 1;
                    fold.step[feed.index()] = Some(step.id);
                }
            }
        }
    }
    fold
}

fn place_steps(fold: &mut TurnFold, turn: &Turn) {
    for (step, place) in fold.steps.iter_mut().zip(turn.step_places()) {
        step.place = place;
    }
}

/// The in-memory state of a part.
pub(in crate::assemble) fn skeleton(part: &Part) -> PartFold {
    let strongest_feed = part.origin.ranks.holder(PartField::Body);
    let source = part.evidence.iter().rev().find(|evidence| Some(evidence.feed) == strongest_feed);
    let source = source.map(|evidence| evidence.source);
    let mut fold = PartFold {
        id: part.id,
        kind: part.body.kind(),
        place: if part.place == Default::default() { spine_place(0) } else { part.place },
        step: part.step,
        origin: part.origin.clone(),
        gone: false,
        noted: false,
        digest: body_digest(&part.body),
        explains: explains(&part.body),
        source,
        words: Default::default(),
        run: None,
        beside: None,
        aliases: Vec::new(),
        prose: None,
        tool: None,
        agents: None,
    };
    match &part.body {
        Body::Text(text) => restore_prose(&mut fold, &text.text, text.open),
        Body::Reasoning(reasoning) => {
            restore_prose(&mut fold, &reasoning.text, reasoning.open);
        }
        Body::Tool(tool) => {
            restore_questions(&mut fold.origin, tool);
            fold.tool = Some(Box::new(fold_tool(part, tool, &fold.origin)));
        }
        Body::Agent(agents) => {
            fold.agents = Some(Box::new(AgentsFold {
                call_id: agents.call_id.clone(),
                agents: agents.agents.clone(),
            }));
        }
        Body::Error(error) if strongest_feed == Some(Feed::Log) => {
            fold.words = Words::of(&error.text);
        }
        Body::Interjection(_)
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
    fold
}

/// Prose that can still grow keeps its text, and has no final digest yet.
fn restore_prose(fold: &mut PartFold, text: &str, open: bool) {
    let text = whole_run(text, &fold.origin.cut);
    if !open && !fold.origin.unfinished {
        fold.digest = digest(text.as_bytes());
        if fold.origin.ranks.holder(PartField::Body) == Some(Feed::Log) {
            fold.words = Words::of(&text);
        }
        if fold.is_run() {
            fold.run = Some(Box::new(RunFold { text, compared_at: 0 }));
        }
        return;
    }
    fold.digest = 0;
    fold.prose = Some(Box::new(Prose {
        owner: fold.origin.ranks.holder(PartField::Body).unwrap_or(Feed::Log),
        source: fold.source.unwrap_or_default(),
        text,
        open,
    }));
}

fn fold_tool(part: &Part, tool: &Tool, origin: &Origin) -> ToolFold {
    let observed = tool.answer.as_ref().is_some_and(|answer| answer.observed);
    ToolFold {
        call_id: tool.call_id.clone(),
        state: tool.state,
        reported_state: tool.reported_state,
        exit_code: tool.exit_code,
        provider_executed: tool.provider_executed,
        question: tool.question.clone(),
        earlier: tool.earlier.clone(),
        answer: shown_answer(origin),
        inferred: tool.answer.as_ref().filter(|_| !observed).map(|a| a.decision),
        grown_by: grown_by(part),
        content_hashes: part.origin.occurrences.iter().map(|(_, content, _)| *content).collect(),
    }
}

/// What the feeds asked, where the row is of a version that did not store it: one question at most.
fn restore_questions(origin: &mut Origin, tool: &Tool) {
    if !origin.questions.is_empty() {
        return;
    }
    let ranks = origin.ranks;
    if let (Some(feed), Some(question)) = (ranks.holder(PartField::Question), &tool.question) {
        origin.questions_of(feed).ask_unsourced(question);
    }
    if let (Some(feed), Some(answer)) = (ranks.holder(PartField::Answer), &tool.answer) {
        origin.questions_of(feed).answer(answer.clone());
    }
}

/// The source that extends a call's text: the latest source of a log, or the capture that began
/// it.
fn grown_by(part: &Part) -> Option<u16> {
    let ranks = &part.origin.ranks;
    let strongest_feed =
        ranks.holder(PartField::InputText).or(ranks.holder(PartField::OutputText))?;
    let mut sources = part
        .evidence
        .iter()
        .filter(|reported| reported.feed == strongest_feed)
        .map(|reported| reported.source);
    if strongest_feed == Feed::Log { sources.max() } else { sources.next() }
}
