//! A turn as HTML. Every piece that can change by itself has an id, so that a live page puts a
//! piece where a fresh page would have it, and the two are the same in the end (law 2).

use maud::{Markup, html};
use unspool_core::block::Block;
use unspool_core::part::Kind;
use unspool_core::present::{Item, PartView, ReasoningView, TurnHeader, TurnView, format};
use unspool_core::session::TurnState;

use crate::block::blocks;
use crate::text::{safe, tone_class};

/// One piece of a turn: its id in the page, and its HTML.
pub struct Piece {
    pub id: String,
    pub html: String,
}

/// The id of a turn's element.
pub fn turn_id(view: &TurnView) -> String {
    format!("t-{}", view.id)
}

/// The whole turn.
pub fn turn(view: &TurnView) -> Markup {
    html! {
        section.turn id=(turn_id(view)) aria-label=(label(&view.header)) {
            @for piece in pieces(view) { (maud::PreEscaped(piece.html)) }
        }
    }
}

/// The pieces of a turn in their order: its head, the user's words, each item, its foot.
pub fn pieces(view: &TurnView) -> Vec<Piece> {
    let mut pieces = vec![piece(format!("h-{}", view.id), |id| head(&view.header, id))];
    if !view.user.is_empty() {
        let user = |id: &str| html! { div.user id=(id) { (blocks(&view.user)) } };
        pieces.push(piece(format!("u-{}", view.id), user));
    }
    for item in &view.items {
        pieces.push(match item {
            Item::Part(view) => piece(format!("p-{}", view.id), |id| part(view, id)),
            Item::Reasoning(view) => {
                let first = view.parts.first().map(|part| part.id.to_string());
                piece(format!("g-{}", first.unwrap_or_default()), |id| reasoning(view, id))
            }
        });
    }
    pieces
}

fn piece(id: String, paint: impl FnOnce(&str) -> Markup) -> Piece {
    let html = paint(&id).into_string();
    Piece { id, html }
}

fn label(header: &TurnHeader) -> String {
    match header.number {
        0 => "Before the first prompt".to_owned(),
        number => format!("Turn {number}"),
    }
}

fn head(header: &TurnHeader, id: &str) -> Markup {
    let trigger =
        if header.number == 0 { "before the first prompt" } else { header.trigger.name() };
    let tokens = header.usage.total();
    html! {
        header.turn-head id=(id) data-state=(header.state.name()) {
            a.number href={ "#" (id.replacen('h', "t", 1)) } { "Turn " (header.number) }
            span.fact { (trigger) }
            span.fact.(tone_class(header.tone)) {
                @if header.state == TurnState::Running {
                    span.pulse aria-hidden="true" {}
                }
                (header.state.name())
            }
            @if header.abandoned { span.fact.tone-warning { "abandoned" } }
            @if header.inherited { span.fact { "from the session before" } }
            @if let Some(started) = header.started {
                time.fact datetime=(started) { (started.strftime("%H:%M:%S")) }
            }
            @if let Some(duration) = header.duration_ms {
                span.fact { (format::duration(duration)) }
            }
            @if tokens > 0 { span.fact { (format::number(tokens)) " tokens" } }
            @for model in &header.models { span.fact.model { (safe(model)) } }
        }
    }
}

fn part(view: &PartView, id: &str) -> Markup {
    html! {
        div.part.bullet[view.bullet].growing[view.open].(view.kind.name())
            id=(id) data-kind=(view.kind.name()) {
            @match (view.kind, view.blocks.split_first()) {
                // What the agents were told and what they brought is not the parent's own text.
                (Kind::Agent, Some((tree, rest))) => {
                    (blocks(std::slice::from_ref(tree)))
                    @if !rest.is_empty() { div.report { (blocks(rest)) } }
                },
                _ => (blocks(&view.blocks)),
            }
        }
    }
}

/// A part of a reasoning block. Who has opened the block wants to see what was thought, and not a
/// second fold.
fn inner(view: &PartView, id: &str) -> Markup {
    if view.kind != Kind::Reasoning {
        return part(view, id);
    }
    html! {
        div.part.growing[view.open].(view.kind.name()) id=(id) data-kind=(view.kind.name()) {
            @for block in &view.blocks {
                @if let Block::Fold(fold) = block { (blocks(&fold.blocks)) }
                @else { (blocks(std::slice::from_ref(block))) }
            }
        }
    }
}

/// Collapsed unless it is going on (R-004-13).
fn reasoning(view: &ReasoningView, id: &str) -> Markup {
    html! {
        details.reasoning.growing[view.open] id=(id) data-kind=(Kind::Reasoning.name())
            open[view.open] {
            summary {
                span.title { (view.title) }
                @if !view.summary.is_empty() { span.gist { (safe(&view.summary)) } }
            }
            div.inside {
                @for view in &view.parts { (inner(view, &format!("p-{}", view.id))) }
            }
        }
    }
}
