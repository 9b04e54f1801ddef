//! What one feed reported about the questions of a call: which ones, in which order, and the
//! answers. No surface shows it. The assembler decides with it which question is the newest and
//! which answer belongs to it, also after a restart.

use serde::{Deserialize, Serialize};

use super::{Feed, Origin};
use crate::id::digest;
use crate::part::{Answer, Question};
use crate::rank::PartField;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedQuestions {
    #[serde(rename = "telling")]
    pub feed: Feed,
    /// The source of the feed that asked last. None in rows of versions that did not store it.
    pub source: Option<u16>,
    /// The request id and the digest of each question, in order.
    pub asked: Vec<(Option<String>, u64)>,
    /// The answer to each question, or one answer to a question that the feed did not report. Only
    /// the newest question can lack one.
    pub answers: Vec<Answer>,
    /// The index of the question that the next answer is for.
    pub current: usize,
    /// The feed has only the answers: the words of its questions are the decoder's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
}

/// What a question is to the feed that asks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskOutcome {
    /// It is the newest question: the first one, a repeat, or in place of one without an answer.
    Newest,
    /// It is another question, after an answer to the one before.
    Again,
    /// It repeats a question before the newest one: its source is read again.
    Earlier,
    /// Another source of the feed asks something else after an answer. It may be the same question
    /// under another request id, so it does not count as another one.
    Contradiction,
}

impl FeedQuestions {
    fn new(feed: Feed) -> FeedQuestions {
        FeedQuestions {
            feed,
            source: None,
            asked: Vec::new(),
            answers: Vec::new(),
            current: 0,
            inferred: false,
        }
    }

    pub fn ask(&mut self, question: &Question, source: u16, inferred: bool) -> AskOutcome {
        let key = (question.request_id.clone(), question_digest(question));
        if !self.asked.is_empty() && self.inferred != inferred {
            if inferred {
                return AskOutcome::Earlier;
            }
            (self.source, self.asked, self.current) = (Some(source), vec![key], 0);
            self.inferred = false;
            return AskOutcome::Newest;
        }
        self.inferred = inferred;
        let newest = self.asked.len().saturating_sub(1);
        if let Some(at) = self.asked.iter().rposition(|asked| is_same(asked, &key)) {
            (self.source, self.current, self.asked[at]) = (Some(source), at, key);
            return if at == newest { AskOutcome::Newest } else { AskOutcome::Earlier };
        }
        let answered = self.answers.len() >= self.asked.len();
        if !self.asked.is_empty() && answered {
            if self.source.is_some_and(|held| held != source) {
                return AskOutcome::Contradiction;
            }
            self.asked.push(key);
            (self.source, self.current) = (Some(source), newest + 1);
            return AskOutcome::Again;
        }
        self.asked.truncate(newest);
        self.asked.push(key);
        (self.source, self.current) = (Some(source), newest);
        AskOutcome::Newest
    }

    /// Takes the only question of a stored call.
    pub fn ask_unsourced(&mut self, question: &Question) {
        self.asked = vec![(question.request_id.clone(), question_digest(question))];
    }

    /// Keeps an answer. Returns the index of its question. A feed may report it twice, and say only
    /// once who gave it.
    pub fn answer(&mut self, mut answer: Answer) -> usize {
        match self.answers.get_mut(self.current) {
            Some(held) => {
                let same = held.decision == answer.decision;
                answer.by = answer.by.or_else(|| held.by.take().filter(|_| same));
                *held = answer;
            }
            None => self.answers.push(answer),
        }
        self.current
    }

    /// Takes over from the account of the same feed in a part that is merged into this one.
    fn absorb(&mut self, gone: FeedQuestions) {
        if self.asked.is_empty() {
            (self.source, self.asked, self.current) = (gone.source, gone.asked, gone.current);
            self.inferred = gone.inferred;
            if self.answers.is_empty() || gone.answers.len() > self.answers.len() {
                self.answers = gone.answers;
            }
        } else if self.answers.is_empty() {
            self.answers.extend(gone.answers.into_iter().next_back());
        }
    }
}

impl Origin {
    /// The account of this feed, which is empty at first.
    pub fn questions_of(&mut self, feed: Feed) -> &mut FeedQuestions {
        let at = self.questions.partition_point(|told| told.feed < feed);
        if self.questions.get(at).is_none_or(|told| told.feed != feed) {
            self.questions.insert(at, FeedQuestions::new(feed));
        }
        &mut self.questions[at]
    }

    /// The feed whose questions are shown: the strongest one that has them, otherwise the strongest
    /// one that has answers to them.
    pub fn asking_feed(&self) -> Option<Feed> {
        let asking = self.questions.iter().filter(|told| !told.asked.is_empty());
        asking.max_by_key(|told| (!told.inferred, told.feed)).map(|told| told.feed)
    }

    /// True if the questions of the other part are shown rather than those of this one.
    pub fn yields_question_to(&self, other: &Origin) -> bool {
        let account = |origin: &Origin| {
            let feed = origin.asking_feed()?;
            let told = origin.questions.iter().find(|told| told.feed == feed)?;
            Some((!told.inferred, feed))
        };
        account(other) > account(self)
    }

    /// Takes over the accounts of a part that is merged into this one.
    pub fn absorb_questions(&mut self, gone: Vec<FeedQuestions>) {
        for told in gone {
            self.questions_of(told.feed).absorb(told);
        }
        if let Some(feed) = self.asking_feed() {
            self.ranks.set(PartField::Question, feed);
        }
    }
}

/// Two requests are one if they have the same id, or, where one has none, if they ask the same.
fn is_same(a: &(Option<String>, u64), b: &(Option<String>, u64)) -> bool {
    if a.0.is_some() && b.0.is_some() { a.0 == b.0 } else { a.1 == b.1 }
}

/// A digest of what a question asks. It is stored, so it names the fields that it covers.
fn question_digest(question: &Question) -> u64 {
    let mut asked = Vec::new();
    for item in &question.items {
        asked.extend([item.header.as_deref().unwrap_or_default(), &item.question]);
        asked.extend(item.options.iter().map(|option| option.label.as_str()));
    }
    digest(asked.join("\n").as_bytes())
}
