//! An open question of the agent: what is chosen so far, and the answer that it becomes. Keys choose
//! and Enter answers; nothing is chosen at first, so that no single key says yes.

// Most keys mean nothing here.
#![allow(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent};
use unspool_live::form::{FieldKind, FormField};
use unspool_live::protocol::{FieldValue, OpenQuestion, RequestedInput, UserAnswer};
use unspool_view::lines::Line;

use crate::text_field::TextField;

/// A key that was pressed sooner after the question was drawn was meant for something else
/// (R-X-10).
pub const GUARD_TIME: Duration = Duration::from_millis(250);

/// A line of a question that can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuestionRow {
    /// An option of a permission.
    Option(usize),
    /// A choice of a field of a form.
    Choice { field: usize, choice: usize },
    /// Text of a field: its value, or own words beside its choices.
    Text { field: usize },
    /// Sends a form with several fields.
    Send,
    /// Answers no, and goes on in the composer.
    Discuss,
    /// Answers no with these words, for an agent that has no composer here.
    Reason,
}

/// What a key did.
#[derive(Clone, PartialEq, Debug)]
pub enum QuestionKey {
    Changed,
    /// The text of the answer changed.
    Typed,
    Answer(UserAnswer),
    /// The person wants to talk about it: this answer, then the composer.
    Discuss,
    /// Why Enter answered nothing.
    Refused(&'static str),
    Ignored,
}

#[derive(Debug, Default)]
pub struct QuestionPane {
    /// The chosen row, if one was chosen.
    pub at: Option<usize>,
    /// The chosen values of each field.
    chosen: Vec<Vec<String>>,
    pub texts: Vec<TextField>,
    /// What to say with a refusal. None if the composer is for that.
    pub reason: Option<TextField>,
    /// What is asked about is shown in full.
    pub expanded: bool,
    /// What is asked about is longer than what is shown of it at first.
    pub truncated: bool,
    pub subject: Option<SubjectLayout>,
    /// It was answered here.
    pub answered: bool,
    /// When it came.
    pub came_at: Option<Instant>,
    /// When it was first drawn on the screen.
    pub drawn_at: Option<Instant>,
}

/// What is asked, and what it is about, laid out at a width.
#[derive(Debug)]
pub struct SubjectLayout {
    pub width: usize,
    /// The beginning of the question.
    pub head: Vec<Line>,
    pub lines: Vec<Line>,
}

impl QuestionPane {
    pub fn new(question: &OpenQuestion, draft: Option<&str>, answers_only: bool) -> QuestionPane {
        let fields = fields_of(question);
        let mut pane = QuestionPane {
            chosen: vec![Vec::new(); fields.len()],
            texts: vec![TextField::default(); fields.len()],
            reason: answers_only.then(TextField::default),
            ..QuestionPane::default()
        };
        let first_text = fields.iter().position(FormField::takes_text);
        let text = match first_text {
            Some(at) => pane.texts.get_mut(at),
            None => pane.reason.as_mut(),
        };
        if let Some((text, draft)) = text.zip(draft) {
            *text = TextField::new(draft);
        }
        pane
    }

    /// True if a key that was pressed at this time may answer it.
    pub fn accepts(&self, pressed: Instant) -> bool {
        self.drawn_at.is_some_and(|drawn| pressed >= drawn + GUARD_TIME)
    }

    /// True if Tab, pressed at this time, may lead to it. It may be off the screen, but not so new
    /// that the key was meant for something else.
    pub fn is_reachable(&self, pressed: Instant) -> bool {
        let since = self.drawn_at.or(self.came_at);
        since.is_some_and(|since| pressed >= since + GUARD_TIME)
    }

    pub fn is_chosen(&self, field: usize, value: &str) -> bool {
        self.chosen.get(field).is_some_and(|chosen| chosen.iter().any(|one| one == value))
    }

    /// The text that is kept if the question is left.
    pub fn draft(&self) -> &str {
        let texts = self.texts.iter().chain(&self.reason).map(TextField::text);
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    pub fn paste(&mut self, question: &OpenQuestion, text: &str) -> bool {
        let line = text.replace(['\n', '\r'], " ");
        let row = self.row(question);
        self.text_of(row).map(|held| held.insert(&line)).is_some()
    }

    /// The text of a row that takes one.
    fn text_of(&mut self, row: Option<QuestionRow>) -> Option<&mut TextField> {
        match row? {
            QuestionRow::Text { field } => self.texts.get_mut(field),
            QuestionRow::Reason => self.reason.as_mut(),
            QuestionRow::Option(_)
            | QuestionRow::Choice { .. }
            | QuestionRow::Send
            | QuestionRow::Discuss => None,
        }
    }

    pub fn row(&self, question: &OpenQuestion) -> Option<QuestionRow> {
        self.rows(question).get(self.at?).copied()
    }

    /// The rows of its question that can be chosen, in order.
    pub fn rows(&self, question: &OpenQuestion) -> Vec<QuestionRow> {
        let last = if self.reason.is_some() { QuestionRow::Reason } else { QuestionRow::Discuss };
        answer_rows(question).into_iter().chain([last]).collect()
    }

    pub fn press(&mut self, question: &OpenQuestion, key: KeyEvent) -> QuestionKey {
        let rows = self.rows(question);
        let row = self.at.and_then(|at| rows.get(at)).copied();
        match key.code {
            KeyCode::Up => self.step(&rows, false),
            KeyCode::Down => self.step(&rows, true),
            KeyCode::Enter => return self.enter(question, &rows, row),
            KeyCode::Right if self.text_of(row).is_none() => {
                self.expanded = true;
            }
            KeyCode::Left if self.text_of(row).is_none() => {
                self.expanded = false;
            }
            _ => {
                if let Some(text) = self.text_of(row) {
                    let typed = text.press(key);
                    return if typed { QuestionKey::Typed } else { QuestionKey::Ignored };
                }
                return self.press_choice(question, &rows, row, key.code);
            }
        }
        QuestionKey::Changed
    }

    fn step(&mut self, rows: &[QuestionRow], down: bool) {
        let last = rows.len().saturating_sub(1);
        self.at = Some(match (self.at, down) {
            (None, true) => 0,
            (None, false) => last,
            (Some(at), true) => (at + 1).min(last),
            (Some(at), false) => at.saturating_sub(1),
        });
    }

    /// Space and digits choose in the field of the chosen row.
    fn press_choice(
        &mut self,
        question: &OpenQuestion,
        rows: &[QuestionRow],
        row: Option<QuestionRow>,
        code: KeyCode,
    ) -> QuestionKey {
        let KeyCode::Char(letter) = code else { return QuestionKey::Ignored };
        if letter == ' ' {
            let Some(QuestionRow::Choice { field, choice }) = row else {
                return QuestionKey::Ignored;
            };
            self.toggle(question, field, choice);
            return QuestionKey::Changed;
        }
        let Some(digit) = letter.to_digit(10).filter(|digit| *digit > 0) else {
            return QuestionKey::Ignored;
        };
        let field = row.and_then(field_of);
        let first = rows.iter().position(|row| field.is_none() || field_of(*row) == field);
        let target = first.unwrap_or(0) + digit as usize - 1;
        if target >= rows.len() {
            return QuestionKey::Ignored;
        }
        self.at = Some(target);
        QuestionKey::Changed
    }

    fn toggle(&mut self, question: &OpenQuestion, field: usize, choice: usize) {
        let fields = fields_of(question);
        let Some((held, value)) = fields.get(field).zip(choice_value(fields, field, choice)) else {
            return;
        };
        let Some(chosen) = self.chosen.get_mut(field) else { return };
        let was = chosen.iter().position(|one| *one == value);
        if held.kind != FieldKind::Several {
            chosen.clear();
        } else if let Some(at) = was {
            chosen.remove(at);
        }
        if was.is_none() {
            chosen.push(value);
        }
    }

    fn enter(
        &mut self,
        question: &OpenQuestion,
        rows: &[QuestionRow],
        row: Option<QuestionRow>,
    ) -> QuestionKey {
        let fields = fields_of(question);
        match row {
            None => QuestionKey::Refused("choose an answer first: ↑ ↓ or a number"),
            Some(QuestionRow::Option(at)) => {
                let RequestedInput::Permission(options) = &question.kind else {
                    return QuestionKey::Ignored;
                };
                let Some(option) = options.get(at) else { return QuestionKey::Ignored };
                // Nobody allows what they could not see.
                if !option.kind.refuses() && self.truncated && !self.expanded {
                    self.expanded = true;
                    return QuestionKey::Refused("read all of it first; then press enter again");
                }
                QuestionKey::Answer(UserAnswer::Option(option.id.clone()))
            }
            Some(QuestionRow::Reason) => {
                if self.reason.as_ref().is_none_or(|reason| reason.text().trim().is_empty()) {
                    return QuestionKey::Refused("write first what to say to the agent");
                }
                QuestionKey::Answer(question.refusal())
            }
            Some(QuestionRow::Discuss) => QuestionKey::Discuss,
            Some(QuestionRow::Send) => QuestionKey::Answer(self.form(fields)),
            Some(QuestionRow::Choice { field, choice }) => {
                let several =
                    fields.get(field).is_some_and(|field| field.kind == FieldKind::Several);
                let none = self.chosen.get(field).is_none_or(Vec::is_empty);
                let chosen = choice_value(fields, field, choice)
                    .is_some_and(|value| self.is_chosen(field, &value));
                if (!several && !chosen) || (several && none) {
                    self.toggle(question, field, choice);
                }
                self.next_field(fields, rows, field)
            }
            Some(QuestionRow::Text { field }) => self.next_field(fields, rows, field),
        }
    }

    /// Answers a form with one field; goes to the next field of a longer one.
    fn next_field(
        &mut self,
        fields: &[FormField],
        rows: &[QuestionRow],
        field: usize,
    ) -> QuestionKey {
        if fields.len() == 1 {
            return QuestionKey::Answer(self.form(fields));
        }
        let is_next = |row: &QuestionRow| field_of(*row).is_none_or(|other| other > field);
        self.at = rows.iter().position(is_next).or(self.at);
        QuestionKey::Changed
    }

    fn form(&self, fields: &[FormField]) -> UserAnswer {
        let value = |(at, field): (usize, &FormField)| {
            let text = self.texts.get(at).map(|text| text.text().trim().to_owned());
            let text = text.filter(|text| !text.is_empty());
            let mut value = FieldValue {
                chosen: self.chosen.get(at).cloned().unwrap_or_default(),
                own_words: None,
            };
            match (text, field.own_words.is_some()) {
                (Some(text), true) => value.own_words = Some(text),
                (Some(text), false) => value.chosen = vec![text],
                (None, _) => {}
            }
            (field.name.clone(), value)
        };
        let values: BTreeMap<String, FieldValue> = fields.iter().enumerate().map(value).collect();
        UserAnswer::Form(values)
    }
}

pub fn fields_of(question: &OpenQuestion) -> &[FormField] {
    match &question.kind {
        RequestedInput::Form(fields) => fields,
        RequestedInput::Permission(_) => &[],
    }
}

fn choice_value(fields: &[FormField], field: usize, choice: usize) -> Option<String> {
    fields.get(field)?.offered_choices().into_iter().nth(choice).map(|choice| choice.value)
}

fn field_of(row: QuestionRow) -> Option<usize> {
    match row {
        QuestionRow::Choice { field, .. } | QuestionRow::Text { field } => Some(field),
        QuestionRow::Option(_) | QuestionRow::Send | QuestionRow::Discuss | QuestionRow::Reason => {
            None
        }
    }
}

/// The rows of a question that say what it asks for.
fn answer_rows(question: &OpenQuestion) -> Vec<QuestionRow> {
    let mut rows = Vec::new();
    match &question.kind {
        RequestedInput::Permission(options) => {
            rows.extend((0..options.len()).map(QuestionRow::Option));
        }
        RequestedInput::Form(fields) => {
            for (at, field) in fields.iter().enumerate() {
                let choices = 0..field.offered_choices().len();
                rows.extend(choices.map(|choice| QuestionRow::Choice { field: at, choice }));
                let is_empty = field.offered_choices().is_empty();
                if field.takes_text() && (field.own_words.is_some() || is_empty) {
                    rows.push(QuestionRow::Text { field: at });
                }
            }
            if fields.len() != 1 {
                rows.push(QuestionRow::Send);
            }
        }
    }
    rows
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
