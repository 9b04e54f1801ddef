//! A turn as HTML. Every piece that can change by itself has an id, so that a live page puts a
//! piece where a fresh page would have it, and the two are the same in the end (law 2). What was
//! not loaded is a gap: a link that says how much is missing, and that leads there.

use maud::{Markup, PreEscaped, html};
use unspool_core::block::Block;
use unspool_core::part::{Kind, Place};
use unspool_core::present::outline::{Landmark, Mark};
use unspool_core::present::{
    Item, PartView, ReasoningView, Stands, StepFoot, TurnView, format, usage_text,
};
use unspool_core::session::TurnState;

use crate::block::blocks;
use crate::text::{safe, tone_class};

/// One piece of a turn.
pub struct Piece {
    /// Its id in the page.
    pub id: String,
    /// The block that it stands in.
    pub within: Option<String>,
    /// A block without the parts in it.
    pub is_shell: bool,
    pub html: String,
}

/// The id of a turn's element.
pub fn turn_id(view: &TurnView) -> String {
    format!("t-{}", view.id)
}

/// What is not loaded, seen from what is.
#[derive(Clone, Copy)]
pub enum Gap {
    /// What stands before a place.
    Before,
    /// The same, in one reasoning block.
    Inside,
    /// What stands behind a place.
    After,
}

/// The link in the place of parts that are not loaded.
pub fn gap(kind: Gap, session: &str, position: &str, label: &str) -> Markup {
    let (class, direction) = match kind {
        Gap::Before => ("before", "before"),
        Gap::Inside => ("inside", "before"),
        Gap::After => ("after", "after"),
    };
    html! {
        a.gap.(class) href={ "/s/" (session) "?" (direction) "=" (position) } data-gap=(class)
            data-from=(position) { (label) }
    }
}

fn missing(count: usize) -> String {
    format::count(count, "part not loaded").replace("part not loadeds", "parts not loaded")
}

/// The whole turn, as far as it is loaded.
pub fn turn(session: &str, view: &TurnView) -> Markup {
    let at = |place: Place| format!("{}.{}", view.header.number, place.0);
    let before = |count: usize, place: Place| {
        (count > 0).then(|| gap(Gap::Before, session, &at(place), &missing(count)))
    };
    let last = view.items.iter().rev().find_map(last_place);
    html! {
        section.turn id=(turn_id(view)) data-number=(view.header.number)
            aria-label=(view.header.label()) {
            (PreEscaped(lead(view).into_iter().map(|piece| piece.html).collect::<String>()))
            @for item in &view.items {
                @match item {
                    Item::Part(part) => {
                        @if let Some(gap) = before(part.before, part.place) { (gap) }
                        (paint_part(part, view.header.number))
                    },
                    Item::Reasoning(block) => {
                        @if let Some(first) = block.parts.first()
                            && let Some(gap) = before(block.before, first.place) { (gap) }
                        (shell(block, html! {
                            @for part in &block.parts {
                                @if part.before > 0 {
                                    (gap(Gap::Inside, session, &at(part.place), &missing(part.before)))
                                }
                                (inner(part, view.header.number))
                            }
                        }))
                    },
                }
            }
            @if view.after > 0 {
                // Where nothing of the turn is loaded, all of it stands behind its very start.
                (gap(Gap::After, session, &at(last.unwrap_or(Place(-1))), &missing(view.after)))
            }
        }
    }
}

fn last_place(item: &Item) -> Option<Place> {
    match item {
        Item::Part(part) => Some(part.place),
        Item::Reasoning(block) => block.parts.last().map(|part| part.place),
    }
}

/// What stands before the parts of a turn: its head, and the user's words.
fn lead(view: &TurnView) -> Vec<Piece> {
    let mut pieces = vec![piece(format!("h-{}", view.id), |id| head(view, id))];
    if !view.user.is_empty() {
        let user = |id: &str| html! { div.user id=(id) { (blocks(&view.user)) } };
        pieces.push(piece(format!("u-{}", view.id), user));
    }
    pieces
}

/// The pieces of a turn in their order: its head, the user's words, each item, what stands in
/// blocks behind its block.
pub fn pieces(view: &TurnView) -> Vec<Piece> {
    let number = view.header.number;
    let mut pieces = lead(view);
    for item in &view.items {
        match item {
            Item::Part(part) => {
                pieces.push(piece(part_id(part), |_| paint_part(part, number)));
            }
            Item::Reasoning(block) => {
                let id = block_id(block);
                let within = |part: &PartView| Piece {
                    within: Some(id.clone()),
                    ..piece(part_id(part), |_| inner(part, number))
                };
                let inside: Vec<Piece> = block.parts.iter().map(within).collect();
                let html = shell(block, Markup::default()).into_string();
                pieces.push(Piece { id, within: None, is_shell: true, html });
                pieces.extend(inside);
            }
        }
    }
    pieces
}

fn piece(id: String, paint: impl FnOnce(&str) -> Markup) -> Piece {
    let html = paint(&id).into_string();
    Piece { id, within: None, is_shell: false, html }
}

/// The beginning of a turn that is written piece by piece: its head and the user's words.
pub fn opening(view: &TurnView) -> String {
    lead(view).into_iter().map(|piece| piece.html).collect()
}

/// One item of a turn, with all that stands in it.
pub fn item(view: &TurnView, item: &Item) -> Markup {
    let number = view.header.number;
    match item {
        Item::Part(part) => paint_part(part, number),
        Item::Reasoning(block) => {
            shell(block, html! { @for part in &block.parts { (inner(part, number)) } })
        }
    }
}

/// The id of a part's element.
fn part_id(view: &PartView) -> String {
    format!("p-{}", view.id)
}

/// The id of a block's element.
fn block_id(view: &ReasoningView) -> String {
    format!("g-{}", view.id)
}

fn head(view: &TurnView, id: &str) -> Markup {
    let header = &view.header;
    html! {
        header.turn-head id=(id) data-state=(header.state.name()) {
            a.number href={ "#" (id.replacen('h', "t", 1)) } { "Turn " (header.number) }
            @for fact in header.standing() {
                @let tone = fact.tone.map(|tone| format!(" {}", tone_class(tone)));
                span class={ "fact" (tone.unwrap_or_default()) } {
                    @if fact.what == Stands::State && header.state == TurnState::Running {
                        span.pulse aria-hidden="true" {}
                    }
                    (fact.text)
                }
            }
            @if let Some(started) = header.started {
                time.fact datetime=(started) { (started.strftime("%H:%M:%S")) }
            }
            @for fact in header.measures() { span.fact { (fact) } }
            @for model in &header.models { span.fact.model { (safe(model)) } }
            @if view.outline.map.len() > 3 { (map(&view.outline.map)) }
        }
    }
}

/// A map of the turn: a mark for each part, in order, that leads to it.
fn map(marks: &[Mark]) -> Markup {
    html! {
        // The outline and the keys lead to the same places.
        div.map aria-hidden="true" {
            @for mark in marks {
                a.(landmark(mark.what)) href={ "#p-" (mark.part) } title=(mark.what.name())
                    tabindex="-1" {}
            }
        }
    }
}

fn landmark(what: Landmark) -> &'static str {
    match what {
        Landmark::Other => "m-other",
        Landmark::Reasoning => "m-reasoning",
        Landmark::Tool => "m-tool",
        Landmark::Text => "m-text",
        Landmark::Edit => "m-edit",
        Landmark::Agent => "m-agent",
        Landmark::Failure => "m-failure",
    }
}

fn paint_part(view: &PartView, turn: u32) -> Markup {
    html! {
        div.part.bullet[view.bullet].growing[view.open].(view.kind.name())
            id=(part_id(view)) data-kind=(view.kind.name()) data-tool=[view.tool.as_deref().map(safe)]
            data-at={ (turn) "." (view.place.0) } {
            @match (view.kind, view.blocks.split_first()) {
                // What the agents were told and what they brought is not the parent's own text.
                (Kind::Agent, Some((tree, rest))) => {
                    (blocks(std::slice::from_ref(tree)))
                    @if !rest.is_empty() { div.report { (blocks(rest)) } }
                },
                _ => (blocks(&view.blocks)),
            }
            @if let Some(foot) = &view.step_end { (step_foot(foot)) }
        }
    }
}

/// A part of a reasoning block. Who has opened the block wants to see what was thought, and not a
/// second fold.
fn inner(view: &PartView, turn: u32) -> Markup {
    if view.kind != Kind::Reasoning {
        return paint_part(view, turn);
    }
    html! {
        div.part.growing[view.open].(view.kind.name()) id=(part_id(view))
            data-kind=(view.kind.name()) data-at={ (turn) "." (view.place.0) } {
            @for block in &view.blocks {
                @if let Block::Fold(fold) = block { (blocks(&fold.blocks)) }
                @else { (blocks(std::slice::from_ref(block))) }
            }
            @if let Some(foot) = &view.step_end { (step_foot(foot)) }
        }
    }
}

/// What the step used: seen by those who ask for it.
fn step_foot(foot: &StepFoot) -> Markup {
    html! {
        div.step-foot {
            "step " (foot.number)
            @if let Some(model) = &foot.model { " · " (safe(model)) }
            " · tokens " (usage_text(foot.usage))
        }
    }
}

/// Collapsed unless it is going on (R-004-13).
fn shell(view: &ReasoningView, inside: Markup) -> Markup {
    html! {
        details.reasoning.growing[view.open] id=(block_id(view)) data-kind=(Kind::Reasoning.name())
            open[view.open] {
            summary {
                span.title { (view.title) }
                @if !view.summary.is_empty() { span.gist { (safe(&view.summary)) } }
            }
            div.inside { (inside) }
        }
    }
}
