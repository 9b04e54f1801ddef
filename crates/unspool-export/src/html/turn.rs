//! Paints a turn as HTML. Every fragment that can change on its own has an id, so that a live page
//! can place updates exactly where a fresh page has them (law 2). Unloaded parts are painted as a
//! gap: a link with the number of missing parts.

use maud::{Markup, PreEscaped, html};
use unspool_model::part::{Kind, Place};
use unspool_model::session::TurnState;
use unspool_view::block::{Block, Span};
use unspool_view::present::outline::{Mark, MarkKind};
use unspool_view::present::{
    HeaderFactKind, Item, PartView, ReasoningView, StepFooter, TurnView, format, usage_text,
};

use crate::html::block::blocks;
use crate::html::dom;
use crate::html::note::note;
use crate::html::text::{safe, tone_class};

/// One fragment of a turn.
pub struct HtmlFragment {
    /// Element id.
    pub id: String,
    /// Id of the enclosing reasoning block.
    pub within: Option<String>,
    /// A reasoning block without its parts.
    pub is_shell: bool,
    pub html: String,
}

/// Position of unloaded parts relative to loaded ones.
#[derive(Clone, Copy)]
pub enum Gap {
    /// Before a place.
    Before,
    /// Before a place, inside a reasoning block.
    Inside,
    /// After a place.
    After,
}

/// The link that replaces unloaded parts.
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

fn missing_label(count: usize) -> String {
    format::count(count, "part not loaded").replace("part not loadeds", "parts not loaded")
}

/// The whole turn with gaps for unloaded parts.
pub fn turn(session: &str, view: &TurnView) -> Markup {
    let at = |place: Place| format!("{}.{}", view.header.number, place.0);
    let before = |count: usize, place: Place| {
        (count > 0).then(|| gap(Gap::Before, session, &at(place), &missing_label(count)))
    };
    let last = view.items.iter().rev().find_map(last_place);
    html! {
        section.turn id=(dom::turn(view.id)) data-number=(view.header.number)
            aria-label=(view.header.label()) {
            (PreEscaped(opening_fragments(view).into_iter().map(|fragment| fragment.html).collect::<String>()))
            @for item in &view.items {
                @match item {
                    Item::Part(part) => {
                        @if let Some(gap) = before(part.before, part.place) { (gap) }
                        (paint_part(part, view.header.number))
                    },
                    Item::Reasoning(block) => {
                        @if let Some(first) = block.parts.first()
                            && let Some(gap) = before(block.before, first.place) { (gap) }
                        (reasoning_shell(block, html! {
                            @for part in &block.parts {
                                @if part.before > 0 {
                                    (gap(Gap::Inside, session, &at(part.place), &missing_label(part.before)))
                                }
                                (paint_inner_part(block, part, view.header.number))
                            }
                        }))
                    },
                }
            }
            @if view.after > 0 {
                // If no part is loaded, the gap starts at the beginning of the turn.
                (gap(Gap::After, session, &at(last.unwrap_or(Place(-1))), &missing_label(view.after)))
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

/// The fragments before the parts: the header and the user's message.
fn opening_fragments(view: &TurnView) -> Vec<HtmlFragment> {
    let mut fragments = vec![fragment(dom::turn_head(view.id), |id| head(view, id))];
    if !view.user.is_empty() {
        let user = |id: &str| html! { div.user id=(id) { (blocks(&view.user)) } };
        fragments.push(fragment(dom::user(view.id), user));
    }
    fragments
}

/// The fragments of a turn in order: header, user's message, each item. The parts of a reasoning
/// block follow its shell.
pub fn fragments(view: &TurnView) -> Vec<HtmlFragment> {
    let number = view.header.number;
    let mut fragments = opening_fragments(view);
    for item in &view.items {
        match item {
            Item::Part(part) => {
                fragments.push(fragment(dom::part(part.id), |_| paint_part(part, number)));
            }
            Item::Reasoning(block) => {
                let id = dom::reasoning(block.id);
                let within = |part: &PartView| HtmlFragment {
                    within: Some(id.clone()),
                    ..fragment(dom::part(part.id), |_| paint_inner_part(block, part, number))
                };
                let inside: Vec<HtmlFragment> = block.parts.iter().map(within).collect();
                let html = reasoning_shell(block, Markup::default()).into_string();
                fragments.push(HtmlFragment { id, within: None, is_shell: true, html });
                fragments.extend(inside);
            }
        }
    }
    fragments
}

fn fragment(id: String, paint: impl FnOnce(&str) -> Markup) -> HtmlFragment {
    let html = paint(&id).into_string();
    HtmlFragment { id, within: None, is_shell: false, html }
}

/// Header and user's message as HTML, for turns that are written incrementally.
pub fn opening(view: &TurnView) -> String {
    opening_fragments(view).into_iter().map(|fragment| fragment.html).collect()
}

/// One item of a turn with its content.
pub fn item(view: &TurnView, item: &Item) -> Markup {
    let number = view.header.number;
    match item {
        Item::Part(part) => paint_part(part, number),
        Item::Reasoning(block) => reasoning_shell(
            block,
            html! { @for part in &block.parts { (paint_inner_part(block, part, number)) } },
        ),
    }
}

fn head(view: &TurnView, id: &str) -> Markup {
    let header = &view.header;
    html! {
        header.turn-head id=(id) data-state=(header.state.name()) {
            h2 { a.number href={ "#" (dom::turn(view.id)) } { "Turn " (header.number) } }
            @for fact in header.facts() {
                @let tone = fact.tone.map(|tone| format!(" {}", tone_class(tone)));
                span class={ "fact" (tone.unwrap_or_default()) } {
                    @if fact.kind == HeaderFactKind::State && header.state == TurnState::Running {
                        span.pulse aria-hidden="true" {}
                    }
                    (fact.text)
                }
            }
            @if let Some(started) = header.started {
                time.fact datetime=(started) title="Start of the turn (UTC)" { (started.strftime("%H:%M:%S")) }
            }
            @let took = header.duration_ms.map(format::duration);
            @for fact in header.metrics() {
                @let is_duration = took.as_ref() == Some(&fact);
                span.fact title=[is_duration.then_some("Duration of the turn")] { (fact) }
            }
            @for model in &header.models { span.fact.model { (safe(model)) } }
            @if let Some(bookmark) = view.note.as_ref().filter(|view| view.is_bookmark()) { (note(bookmark)) }
            @if view.outline.map.len() > 3 { (map(&view.outline.map)) }
            @if let Some(text) = view.note.as_ref().filter(|view| !view.is_bookmark()) { (note(text)) }
        }
    }
}

/// The minimap of the turn: one mark per part, linked to it.
fn map(marks: &[Mark]) -> Markup {
    html! {
        // Hidden from assistive technology: the outline and the keys lead to the same places.
        div.map aria-hidden="true" {
            @for mark in marks {
                a.(mark_class(mark.kind)) href={ "#" (dom::part(mark.part)) } title=(mark.kind.name())
                    tabindex="-1" {}
            }
        }
    }
}

fn mark_class(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Other => "m-other",
        MarkKind::Reasoning => "m-reasoning",
        MarkKind::Tool => "m-tool",
        MarkKind::Text => "m-text",
        MarkKind::Edit => "m-edit",
        MarkKind::Agent => "m-agent",
        MarkKind::Failure => "m-failure",
    }
}

/// Names separated by spaces, for the keys that seek by landmark.
fn landmarks(view: &PartView) -> Option<String> {
    let names: Vec<&str> = view.landmarks.iter().map(|landmark| landmark.name()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The title above the first call of a group of parallel calls.
fn group_title(view: &PartView) -> Option<&str> {
    view.group.as_ref()?.title.as_deref().filter(|_| !view.blocks.is_empty())
}

fn paint_part(view: &PartView, turn: u32) -> Markup {
    html! {
        div.part.bullet[view.bullet].growing[view.open].(view.kind.name())
            .parallel[view.group.is_some()].leads[group_title(view).is_some()]
            .after-block[view.group.as_ref().is_some_and(|member| member.after_block)]
            id=(dom::part(view.id)) data-kind=(view.kind.name()) data-tool=[view.tool.as_deref().map(safe)]
            data-call=[view.call.as_ref().map(|call| safe(call))]
            data-landmark=[landmarks(view)] data-at={ (turn) "." (view.place.0) } {
            @if let Some(title) = group_title(view) { p.group-title { (title) } }
            @if let Some(bookmark) = view.note.as_ref().filter(|view| view.is_bookmark()) { (note(bookmark)) }
            @match (view.kind, view.blocks.split_first()) {
                // The prompts and reports of sub-agents are set apart from the parent's own text.
                (Kind::Agent, Some((tree, rest))) => {
                    (blocks(std::slice::from_ref(tree)))
                    @if !rest.is_empty() { div.report { (blocks(rest)) } }
                },
                _ => (blocks(&view.blocks)),
            }
            @if let Some(text) = view.note.as_ref().filter(|view| !view.is_bookmark()) { (note(text)) }
            @if let Some(foot) = &view.step_end { (step_foot(foot)) }
        }
    }
}

/// A part inside a reasoning block. Words are folded unless they are still growing (R-004-13); the
/// first fold has the title of the block. Calls and agents stay visible (C-23).
fn paint_inner_part(block: &ReasoningView, view: &PartView, turn: u32) -> Markup {
    let mut view = view.clone();
    if let [Block::Fold(fold)] = view.blocks.as_mut_slice()
        && view.kind == Kind::Reasoning
    {
        fold.open = view.open;
        if view.id == block.id {
            fold.title = vec![Span::plain(block.title.clone()).dim()];
        }
    }
    paint_part(&view, turn)
}

/// Usage of the step; hidden by default.
fn step_foot(foot: &StepFooter) -> Markup {
    html! {
        div.step-foot {
            "step " (foot.number)
            @if let Some(model) = &foot.model { " · " (safe(model)) }
            " · tokens " (usage_text(foot.usage))
            @if let Some(context) = foot.context_text() { " · " (context) }
        }
    }
}

/// The frame of a reasoning block.
fn reasoning_shell(view: &ReasoningView, inside: Markup) -> Markup {
    html! {
        div.reasoning-block.growing[view.open].folds-calls[view.folds_calls] id=(dom::reasoning(view.id)) data-kind=(Kind::Reasoning.name()) {
            div.inside { (inside) }
        }
    }
}
