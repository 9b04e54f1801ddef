//! One state of several chats.

use std::collections::BTreeMap;

use crate::protocol::{ChatState, GivenAnswer, Phase};

/// How many answers are remembered for those who come late.
const MAX_REMEMBERED: usize = 32;

/// The answers of all chats in one order. They stay when their chat is gone.
#[derive(Default)]
pub(super) struct AnswerLog {
    given: Vec<GivenAnswer>,
    count: u64,
    /// The last answer that is here, by chat.
    seen: BTreeMap<String, u64>,
}

impl AnswerLog {
    pub fn note(&mut self, chat: &str, state: &ChatState) {
        let seen = self.seen.entry(chat.to_owned()).or_default();
        for answer in state.answers.iter().filter(|answer| answer.number > *seen) {
            self.count += 1;
            let question = merged_question(chat, &answer.question);
            self.given.push(GivenAnswer { number: self.count, question, ..answer.clone() });
        }
        *seen = state.answers.last().map_or(*seen, |answer| answer.number.max(*seen));
        let excess = self.given.len().saturating_sub(MAX_REMEMBERED);
        self.given.drain(..excess);
    }

    pub fn find(&self, question: &str) -> Option<&GivenAnswer> {
        self.given.iter().find(|given| given.question == question)
    }
}

/// The id of a question among those of all chats.
fn merged_question(chat: &str, question: &str) -> String {
    format!("{chat}/{question}")
}

/// The chat of such an id, and the chat's own id of the question.
pub(super) fn own_question(id: &str) -> Option<(&str, &str)> {
    id.split_once('/')
}

/// The state of all chats: that of the chat that drives the agent, with the questions of all.
pub(super) fn merged<'a>(
    chats: impl Iterator<Item = (&'a str, &'a ChatState)>,
    ended: Option<&ChatState>,
    answers: &AnswerLog,
) -> ChatState {
    let (mut driving, mut waiting) = (None, None);
    let (mut questions, mut drafts) = (Vec::new(), BTreeMap::new());
    for (chat, state) in chats {
        let place = if state.answers_only { &mut waiting } else { &mut driving };
        place.get_or_insert(state);
        questions.extend(state.questions.iter().cloned().map(|mut open| {
            open.id = merged_question(chat, &open.id);
            open
        }));
        let own = state.answer_drafts.iter();
        drafts.extend(own.map(|(id, text)| (merged_question(chat, id), text.clone())));
    }
    questions.sort_by_key(|open| open.since);
    // An agent in its own terminal asks: how an earlier chat ended does not matter any more.
    let base = match (driving.or(ended.filter(|_| waiting.is_none())), waiting) {
        (Some(state), _) => state.clone(),
        (None, Some(hook)) => ChatState {
            answers_only: true,
            agent: hook.agent.clone(),
            program: hook.program.clone(),
            folder: hook.folder.clone(),
            session: hook.session.clone(),
            ..ChatState::default()
        },
        (None, None) => ChatState { answers_only: true, ..ChatState::default() },
    };
    let phase = match (base.answers_only, questions.is_empty()) {
        (true, true) => Phase::Idle,
        (true, false) => Phase::Running,
        (false, _) => base.phase,
    };
    ChatState { phase, questions, answer_drafts: drafts, answers: answers.given.clone(), ..base }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::protocol::{OpenQuestion, RequestedInput};

    fn chat(answers_only: bool, since: u64, answered: u64) -> ChatState {
        let open = OpenQuestion {
            id: "0".to_owned(),
            request: "0".into(),
            session: "s".to_owned(),
            call: None,
            text: "Allow?".to_owned(),
            kind: RequestedInput::Permission(Vec::new()),
            subject: Value::Null,
            since,
        };
        let answers = (1..=answered).map(|number| GivenAnswer {
            number,
            question: format!("old {number}"),
            text: "Allow?".to_owned(),
            by: "browser".to_owned(),
            answer: "yes".to_owned(),
        });
        ChatState {
            answers_only,
            phase: Phase::Running,
            questions: vec![open],
            answers: answers.collect(),
            draft: "typed".to_owned(),
            ..ChatState::default()
        }
    }

    #[test]
    fn an_agent_that_asks_after_its_chat_has_ended_is_not_driven() {
        let (ended, hook) = (chat(false, 5, 0), chat(true, 3, 0));
        let answers = AnswerLog::default();
        let waiting = merged([("aa", &hook)].into_iter(), Some(&ended), &answers);
        assert!(waiting.answers_only);
        let over = merged(std::iter::empty(), Some(&ended), &answers);
        assert!(!over.answers_only, "how the chat ended is shown until somebody asks");
    }

    #[test]
    fn questions_of_all_chats_are_in_one_list() {
        let (driven, hook) = (chat(false, 5, 0), chat(true, 3, 0));
        let both = [("aa", &hook), ("bb", &driven)];
        let state = merged(both.into_iter(), None, &AnswerLog::default());
        let ids: Vec<&str> = state.questions.iter().map(|open| open.id.as_str()).collect();
        assert_eq!(ids, ["aa/0", "bb/0"]);
        assert!(!state.answers_only);
        assert_eq!(state.draft, "typed");
        let state = merged([("aa", &hook)].into_iter(), None, &AnswerLog::default());
        assert!(state.answers_only);
        assert_eq!((state.phase, state.draft.as_str()), (Phase::Running, ""));
        let state = merged([].into_iter(), None, &AnswerLog::default());
        assert_eq!((state.answers_only, state.phase), (true, Phase::Idle));
    }

    #[test]
    fn how_the_driving_chat_ended_is_kept() {
        let ended = ChatState { phase: Phase::Ended, ..chat(false, 0, 0) };
        let state = merged([].into_iter(), Some(&ended), &AnswerLog::default());
        assert_eq!((state.answers_only, state.phase), (false, Phase::Ended));
        assert!(state.questions.is_empty());
    }

    #[test]
    fn answers_of_all_chats_are_counted_once() {
        let mut log = AnswerLog::default();
        log.note("aa", &chat(true, 0, 2));
        log.note("aa", &chat(true, 0, 2));
        log.note("bb", &chat(true, 0, 1));
        let numbers: Vec<u64> = log.given.iter().map(|answer| answer.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(log.find("bb/old 1").map(|given| given.by.as_str()), Some("browser"));
        assert!(log.find("old 1").is_none());
    }
}
