//! Where open questions are drawn: below the entry that they are about, or below the last one. A
//! question is answered only if what is chosen is on the screen.

use std::cell::OnceCell;
use std::rc::Rc;

use unspool_view::lines::Line;

use super::TranscriptPane;
use crate::entry::FoldState;
use crate::scroll::{EntryHeights, ScrollPosition, back, end_top, forward};

/// Lines with open questions.
#[derive(Debug, Default)]
pub struct QuestionBox {
    pub questions: Vec<PlacedQuestion>,
    pub lines: Vec<Line>,
    /// A question does not show what it is about, because that is too long.
    pub omits: bool,
    /// The lines of the entry and of the questions below it, at a width.
    pub all: OnceCell<(usize, FoldState, Rc<Vec<Line>>)>,
}

/// A question in the lines of a box.
#[derive(Debug, Default)]
pub struct PlacedQuestion {
    pub id: String,
    pub lines: Vec<Line>,
    /// Where it begins, and how many lines it has.
    pub first: usize,
    pub height: usize,
    /// The line of the row that is chosen.
    pub chosen: Option<usize>,
}

impl QuestionBox {
    /// Adds a question that is laid out.
    pub fn add(&mut self, mut placed: PlacedQuestion) {
        (placed.first, placed.height) = (self.lines.len(), placed.lines.len());
        self.lines.append(&mut placed.lines);
        self.questions.push(placed);
    }
}

impl TranscriptPane {
    /// The entry with a question, the line where the question begins, and that of its chosen row.
    fn place_of_question(&self, id: &str) -> Option<(usize, usize, Option<usize>)> {
        let find = |shown: &QuestionBox, entry: usize, before: usize| {
            let placed = shown.questions.iter().find(|placed| placed.id == id)?;
            let chosen = placed.chosen.map(|line| before + placed.first + line);
            Some((entry, before + placed.first, chosen))
        };
        let inline = self.boxes.iter().find_map(|(key, shown)| {
            shown.questions.iter().find(|placed| placed.id == id)?;
            let entry = self.at(*key)?;
            find(shown, entry, self.height(entry).saturating_sub(shown.lines.len()))
        });
        let below = || find(self.tail.as_ref()?, self.entries.len(), 0);
        inline.or_else(below)
    }

    fn is_visible(&self, entry: usize, line: usize) -> bool {
        let position = ScrollPosition { entry, line };
        let bottom = forward(self, self.scroll.top, self.view.saturating_sub(1));
        position >= self.scroll.top && position <= bottom && entry < self.count()
    }

    /// True if the start of a question is on the screen.
    pub fn shows_question(&self, id: &str) -> bool {
        self.place_of_question(id).is_some_and(|(entry, first, _)| self.is_visible(entry, first))
    }

    /// True if the chosen row of a question is on the screen, or its start if nothing is chosen.
    pub fn shows_chosen_row(&self, id: &str) -> bool {
        self.place_of_question(id)
            .is_some_and(|(entry, first, chosen)| self.is_visible(entry, chosen.unwrap_or(first)))
    }

    /// Scrolls to the chosen row of a question, or to its start. False if it is not loaded.
    pub fn show_question(&mut self, id: &str) -> bool {
        let Some((entry, first, chosen)) = self.place_of_question(id) else { return false };
        let line = chosen.unwrap_or(first);
        if self.is_visible(entry, line) {
            return true;
        }
        let target = ScrollPosition { entry, line };
        self.update_scroll(|scroll, me| {
            let end = end_top(me, me.view);
            // A third of the screen above it, where what is asked is read.
            scroll.top = back(me, target, me.view / 3).min(end);
            scroll.following = scroll.top == end;
        });
        true
    }

    /// The question at a line of an entry.
    pub fn question_at(&self, entry: usize, line: usize) -> Option<String> {
        let (shown, before) = match self.entries.get(entry) {
            Some(held) => {
                let shown = self.boxes.get(&held.key)?;
                (shown, self.height(entry).saturating_sub(shown.lines.len()))
            }
            None => (&**self.tail.as_ref()?, 0),
        };
        let line = line.checked_sub(before)?;
        let begun = shown.questions.iter().rfind(|placed| placed.first <= line)?;
        (line < begun.first + begun.height).then(|| begun.id.clone())
    }
}
