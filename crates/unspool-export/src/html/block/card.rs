//! Paints tool call cards and the questions attached to them as HTML.

use maud::{Markup, html};
use unspool_view::block::{Card, Icon, Question, QuestionItem};
use unspool_view::present::format;

use super::blocks;
use crate::html::text::{safe, spans, tone_class};

pub fn paint(card: &Card) -> Markup {
    let head = html! {
        span.icon.(tone_class(card.icon.tone())).blink[card.icon == Icon::Running]
            aria-hidden="true" { (card.icon.glyph()) }
        span.name { (safe(&card.title)) }
        span.gist { (spans(&card.summary)) }
        @if let Some(duration) = card.duration_ms {
            span.duration title="Duration of the call" { (format::duration(duration)) }
        }
        span.badge.(tone_class(card.badge.tone)) { (card.badge.word) }
        @if let Some(state) = &card.badge.state {
            span.state.(tone_class(card.badge.tone)) { (state) }
        }
    };
    let question = html! {
        @for asked in card.earlier.iter().chain(&card.question) { (paint_question(asked)) }
    };
    if card.body.is_empty() {
        return html! { div.card.flat { div.card-head { (head) } (question) } };
    }
    html! {
        details.card open[card.open] {
            summary.card-head { (head) }
            (question)
            div.card-body { (blocks(&card.body)) }
        }
    }
}

/// An open question in full; an answered one as a compact record (R-003-12).
pub fn paint_question(question: &Question) -> Markup {
    html! {
        div.question.open[question.answer.is_none()] {
            @for item in &question.items { (paint_item(item)) }
            @if let Some(answer) = question.overall_answer() {
                p.answer {
                    @let (decision, remark) = answer.decision_text();
                    span class=(tone_class(answer.tone())) {
                        (answer.glyph()) " " (safe(decision))
                    }
                    @if let Some(remark) = remark { " " (safe(remark)) }
                    @if answer.is_inferred() { " " span.dim { "(answer not in the log)" } }
                    @if let Some(by) = question.answered_by() { " " span.dim { (safe(by)) } }
                }
            } @else if let Some(by) = question.answered_by() { p.dim { (safe(by)) } }
            @if let Some(instruction) = question.instruction() { p.dim { (instruction) } }
        }
    }
}

fn paint_item(item: &QuestionItem) -> Markup {
    html! {
        div.asked {
            p {
                @if let Some(header) = &item.header { span.dim { (safe(header)) } " " }
                (safe(item.question.trim()))
            }
            @if !item.options.is_empty() {
                ul.options {
                    @for option in &item.options {
                        li.chosen[option.chosen] {
                            span.box aria-hidden="true" { (item.glyph(option.chosen)) }
                            div {
                                span { (safe(&option.label)) }
                                @if option.chosen { span.visually-hidden { " (chosen)" } }
                                @if let Some(description) = &option.description {
                                    span.dim { (safe(description)) }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some(answer) = &item.answer {
                p.answer { span.tone-ok { "→ " } (safe(answer.trim())) }
            }
        }
    }
}
