//! Paints an open question of the agent. The page sends the answer by index, because the agent's ids
//! may hold what an attribute cannot.

use maud::{Markup, html};
use serde::Serialize;
use unspool_export::html::block::blocks;
use unspool_export::html::text::safe;
use unspool_live::form::{FieldKind, FormField};
use unspool_live::protocol::{OpenQuestion, PermissionOption, RequestedInput, UserAnswer};
use unspool_view::present::format;
use unspool_view::present::question_subject::question_subject;

/// A question as the page gets it.
#[derive(Clone, PartialEq, Serialize)]
pub struct QuestionView {
    id: String,
    /// The call that it is about, by the agent's id.
    call: Option<String>,
    /// The agent's request, which names a form in the transcript.
    request: String,
    html: String,
    /// The ids of the options of a permission.
    options: Vec<String>,
    /// The answer of somebody who wants to talk first.
    refusal: UserAnswer,
    /// The fields of a form, with the values of their choices.
    fields: Vec<FieldView>,
    /// Text that was typed on another surface.
    pub draft: String,
}

#[derive(Clone, PartialEq, Serialize)]
struct FieldView {
    name: String,
    values: Vec<String>,
    /// Typed text is said beside the choices; otherwise it is the value.
    has_own_words: bool,
}

impl QuestionView {
    pub fn new(open: &OpenQuestion, answers_only: bool) -> QuestionView {
        let (options, fields): (&[PermissionOption], &[FormField]) = match &open.kind {
            RequestedInput::Permission(options) => (options, &[]),
            RequestedInput::Form(fields) => (&[], fields),
        };
        let field = |field: &FormField| FieldView {
            name: field.name.clone(),
            values: field.offered_choices().into_iter().map(|choice| choice.value).collect(),
            has_own_words: field.own_words.is_some(),
        };
        QuestionView {
            id: open.id.clone(),
            call: open.call.clone(),
            request: open.request.as_json().trim_matches('"').to_owned(),
            html: paint(open, answers_only).into_string(),
            options: options.iter().map(|option| option.id.clone()).collect(),
            refusal: open.refusal(),
            fields: fields.iter().map(field).collect(),
            draft: String::new(),
        }
    }
}

/// A question with what it is about and its answers (R-003-12, R-003-52). An agent in its own terminal
/// reads no messages from here, so who wants to say something says it with the refusal.
fn paint(open: &OpenQuestion, answers_only: bool) -> Markup {
    let title = match open.kind {
        RequestedInput::Permission(_) => "Permission",
        RequestedInput::Form(_) => "Question",
    };
    let subject = question_subject(&open.subject, "");
    // The command is shown as code, and not in the sentence.
    let is_repeated = question_subject(&open.subject, &open.text).len() < subject.len();
    let text = if is_repeated { "Allow this command?" } else { open.text.trim() };
    html! {
        section.ask aria-label=(title) {
            p.ask-title { (title) }
            div.ask-subject {
                p.ask-text { (safe(text)) }
                (blocks(&subject))
                @if let Some(bytes) = open.subject["omitted_bytes"].as_u64() {
                    p.ask-omitted { "The call has " (format::number(bytes)) " bytes. It is shown above: open it before you answer." }
                }
            }
            button.ask-all type="button" hidden { "Show all of it" }
            @match &open.kind {
                RequestedInput::Permission(options) => {
                    div.ask-answers {
                        @for (at, option) in options.iter().enumerate() {
                            button type="button" data-option=(at) data-allows[!option.kind.refuses()] {
                                b { (option.kind.word()) } " " span { (safe(&option.label)) }
                            }
                        }
                        @if !answers_only { (discuss()) }
                    }
                    @if answers_only {
                        div.ask-say {
                            input type="text" data-text placeholder="What the agent shall do instead" aria-label="What the agent shall do instead" autocomplete="off";
                            button type="button" data-say { b { "refuse" } " and say this" }
                        }
                    }
                },
                RequestedInput::Form(fields) => {
                    @for (at, field) in fields.iter().enumerate() { (paint_field(open, at, field)) }
                    div.ask-answers {
                        button type="button" data-send { b { "Send" } }
                        @if !answers_only { (discuss()) }
                        button.plain type="button" data-decline { "Decline" }
                    }
                },
            }
            p.ask-hint role="status" {}
        }
    }
}

fn discuss() -> Markup {
    html! { button.plain type="button" data-discuss { "Chat about this" } }
}

fn paint_field(open: &OpenQuestion, at: usize, field: &FormField) -> Markup {
    let name = format!("ask-{}-{at}", open.id);
    let choices = field.offered_choices();
    let input = if field.kind == FieldKind::Several { "checkbox" } else { "radio" };
    // The only field repeats the question.
    let legend = Some(field.text.trim()).filter(|text| *text != open.text.trim());
    html! {
        fieldset data-field=(at) {
            @if let Some(legend) = legend { legend { (safe(legend)) @if !field.required { span.dim { " (optional)" } } } }
            @for (nth, choice) in choices.iter().enumerate() {
                label {
                    input type=(input) name=(safe(&name)) value=(nth);
                    span { (safe(&choice.label)) }
                    @if let Some(description) = &choice.description { span.dim { (safe(description)) } }
                }
            }
            @if field.takes_text() {
                @let hint = if choices.is_empty() { "Your answer" } else { "Own words" };
                input type="text" data-text placeholder=(hint) aria-label=(hint) autocomplete="off";
            }
        }
    }
}
