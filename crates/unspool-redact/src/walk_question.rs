//! Redacts the questions about a call and their answers. Destructured exhaustively, as in `walk.rs`.

use unspool_model::part::{Answer, Question, QuestionItem, QuestionOption};
use unspool_model::provenance::FeedQuestions;

use super::Redactor;

impl Redactor<'_> {
    pub(super) fn question(&mut self, question: &mut Question) {
        let Question { request_id, kind: _, items } = question;
        self.optional_id("request_id", request_id);
        self.each("question", items, |this, field, item| {
            let QuestionItem { header, question, options, multi_select: _ } = item;
            this.optional(&format!("{field}.header"), header);
            this.string(&format!("{field}.question"), question);
            for QuestionOption { label, description } in options {
                this.string(&format!("{field}.option"), label);
                this.optional(&format!("{field}.option"), description);
            }
        });
    }

    pub(super) fn answer(&mut self, answer: &mut Answer) {
        let Answer { decision: _, text, choices, observed: _, by } = answer;
        self.string("answer", text);
        self.optional("answer", by);
        for (question, choice) in choices {
            self.string("answer", question);
            self.string("answer", choice);
        }
    }

    /// What a feed reported, of which no surface shows more than the call has.
    pub(super) fn feed_questions(&mut self, told: &mut FeedQuestions) {
        let FeedQuestions { feed: _, source: _, asked, answers, current: _, inferred: _ } = told;
        asked.iter_mut().for_each(|(request, _)| self.optional_id("request_id", request));
        answers.iter_mut().for_each(|answer| self.answer(answer));
    }
}
