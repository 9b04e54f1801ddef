//! Questions of the agent: a table by request. The first valid answer wins.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use unspool_sources::decode::acp::CHAT_ABOUT_THIS;

use super::turn::refuse;
use super::update::{cut, label};
use super::valid_answer::{ValidAnswer, validate};
use super::{Chat, Effect};
use crate::form::{self, FormSchema};
use crate::outgoing::{self, FormReply};
use crate::protocol::{
    GivenAnswer, OpenQuestion, Outcome, PermissionKind, PermissionOption, Phase, RequestedInput,
    UserAnswer,
};
use crate::wire::{INVALID_PARAMS, INVALID_REQUEST, RequestId};

/// How many answers are remembered for those who come late.
const MAX_REMEMBERED: usize = 32;
/// An agent that asks more at once is not answered by a person.
const MAX_QUESTIONS: usize = 100;
/// The same in bytes: the state goes to clients in one message.
const MAX_OPEN_BYTES: usize = 16 * 1024 * 1024;
/// A larger description of a call is left out: clients show the call of the archive.
pub const MAX_SUBJECT_BYTES: usize = 256 * 1024;
/// A longer question is cut.
pub const MAX_QUESTION_BYTES: usize = 64 * 1024;
/// The most options of a permission and questions of a form.
pub const MAX_OPTIONS: usize = 100;

/// The user's rule for permissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// A person answers.
    #[default]
    Ask,
    /// Every permission is refused, every question declined.
    Deny,
    /// Calls that only read are allowed, all others refused.
    AllowReads,
    /// Everything is allowed.
    Allow,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission<'a> {
    session_id: String,
    #[serde(borrow)]
    tool_call: &'a RawValue,
    options: Vec<OfferedOption>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CallFields {
    tool_call_id: Option<String>,
    title: Option<String>,
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferedOption {
    option_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation {
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: FormSchema,
    #[serde(default)]
    url: Option<String>,
}

impl Chat {
    pub(super) fn permission(&mut self, id: RequestId, params: &str, now: u64) {
        let Ok(Permission { session_id, tool_call, options }) =
            serde_json::from_str::<Permission<'_>>(params)
        else {
            self.state.junk += 1;
            return self.send(&outgoing::error(
                &id,
                INVALID_PARAMS,
                "a permission needs sessionId, toolCall and options",
            ));
        };
        let call: CallFields = serde_json::from_str(tool_call.get()).unwrap_or_default();
        let title = call.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let title = cut(title.unwrap_or("this call"), MAX_QUESTION_BYTES);
        let subject = match tool_call.get() {
            text if text.len() <= MAX_SUBJECT_BYTES => {
                serde_json::from_str(text).unwrap_or_default()
            }
            text => json!({"title": title, "omitted_bytes": text.len()}),
        };
        let text = format!("Allow {title}?");
        let read = |option: OfferedOption| PermissionOption {
            id: option.option_id,
            label: label(&option.name),
            kind: kind_of(&option.kind),
        };
        let noted = call.tool_call_id.as_ref().and_then(|id| self.call_kinds.get(id));
        let reads =
            matches!(call.kind.as_ref().or(noted).map(String::as_str), Some("read" | "search"));
        let question = OpenQuestion {
            id: self.next_question(),
            request: id,
            session: session_id,
            call: call.tool_call_id,
            text,
            kind: RequestedInput::Permission(
                options.into_iter().take(MAX_OPTIONS).map(read).collect(),
            ),
            subject,
            since: now,
        };
        // After an interruption nobody says yes, and no rule either.
        if self.state.phase == Phase::Cancelling {
            let OpenQuestion { id, request, text, .. } = question;
            self.note_answer(&id, &request, text, "interruption", "cancelled");
            return self.send(&outgoing::permission_answer(&request, None));
        }
        let yes = match self.spec.policy {
            Policy::Ask => return self.ask(question),
            Policy::Deny => false,
            Policy::AllowReads => reads,
            Policy::Allow => true,
        };
        self.decide(&question, yes);
    }

    /// Answers by the user's rule.
    fn decide(&mut self, question: &OpenQuestion, yes: bool) {
        let RequestedInput::Permission(options) = &question.kind else { return };
        let wanted = if yes {
            [PermissionKind::AllowOnce, PermissionKind::AllowAlways]
        } else {
            [PermissionKind::RejectOnce, PermissionKind::RejectAlways]
        };
        let option = wanted.iter().find_map(|kind| options.iter().find(|o| o.kind == *kind));
        let label =
            option.map_or_else(|| "cancelled".to_owned(), |one| ValidAnswer::Option(one).label());
        let text = question.text.clone();
        self.note_answer(&question.id, &question.request, text, "rule", &label);
        let option = option.map(|option| option.id.as_str());
        self.send(&outgoing::permission_answer(&question.request, option));
    }

    pub(super) fn form(&mut self, id: RequestId, params: &str, now: u64) {
        let Ok(form) = serde_json::from_str::<Elicitation>(params) else {
            self.state.junk += 1;
            let why = "a form needs a message and a schema";
            return self.send(&outgoing::error(&id, INVALID_PARAMS, why));
        };
        // A page of the agent's choice is not opened: the user sees the address.
        if form.mode.as_deref() == Some("url") {
            let address = form.url.unwrap_or_default();
            let what = format!("the agent asked to open a page: {} {address}", form.message);
            self.state.notice = Some(cut(&what, MAX_QUESTION_BYTES));
            let question = self.next_question();
            self.note_answer(&question, &id, form.message, "rule", "declined");
            return self.send(&outgoing::form_answer(&id, FormReply::Decline));
        }
        let interrupted = self.state.phase == Phase::Cancelling;
        if self.spec.policy != Policy::Ask || interrupted {
            let question = self.next_question();
            let by = if interrupted { "interruption" } else { "rule" };
            self.note_answer(&question, &id, form.message, by, "declined");
            return self.send(&outgoing::form_answer(&id, FormReply::Decline));
        }
        let message = cut(&form.message, MAX_QUESTION_BYTES);
        let fields = form::fields(&form.requested_schema, &message);
        if fields.len() > MAX_OPTIONS {
            let why = "the form has more than 100 questions";
            return self.send(&outgoing::error(&id, INVALID_PARAMS, why));
        }
        let session = form.session_id.or_else(|| self.state.session.clone()).unwrap_or_default();
        let question = OpenQuestion {
            id: self.next_question(),
            request: id,
            session,
            call: form.tool_call_id,
            text: message,
            kind: RequestedInput::Form(fields),
            subject: Value::Null,
            since: now,
        };
        self.ask(question);
    }

    fn next_question(&mut self) -> String {
        self.question_count += 1;
        (self.question_count - 1).to_string()
    }

    fn ask(&mut self, question: OpenQuestion) {
        // The id of an open request again: the agent could not tell which one an answer is for.
        if self.state.questions.iter().any(|open| open.request == question.request) {
            self.state.junk += 1;
            return;
        }
        let size = |open: &OpenQuestion| serde_json::to_vec(open).map_or(0, |bytes| bytes.len());
        let bytes = size(&question) + self.state.questions.iter().map(size).sum::<usize>();
        if self.state.questions.len() >= MAX_QUESTIONS || bytes > MAX_OPEN_BYTES {
            let why = "too many questions are open, or too long ones";
            return self.send(&outgoing::error(&question.request, INVALID_REQUEST, why));
        }
        self.state.questions.push(question);
    }

    pub(super) fn answer(
        &mut self,
        question: &str,
        answer: &UserAnswer,
        by: &str,
        now: u64,
    ) -> Outcome {
        let Some(at) = self.state.questions.iter().position(|open| open.id == question) else {
            let given = self.state.answers.iter().find(|given| given.question == question);
            return match given {
                Some(given) => {
                    Outcome::Already { by: given.by.clone(), answer: given.answer.clone() }
                }
                None => refuse("the question is gone"),
            };
        };
        let open = &self.state.questions[at];
        let valid = match validate(open, answer, now) {
            Ok(valid) => valid,
            Err(why) => return Outcome::Refused(why),
        };
        let discusses = *answer == UserAnswer::Discuss;
        let label = if discusses { CHAT_ABOUT_THIS.to_owned() } else { valid.label() };
        let id = &open.request;
        let message = match (valid, &open.kind) {
            (ValidAnswer::Option(option), _) => outgoing::permission_answer(id, Some(&option.id)),
            (ValidAnswer::Form(content), _) => {
                outgoing::form_answer(id, FormReply::Accept(content))
            }
            (ValidAnswer::Declined, RequestedInput::Permission(_)) => {
                outgoing::permission_answer(id, None)
            }
            (ValidAnswer::Declined, RequestedInput::Form(_)) => {
                outgoing::form_answer(id, FormReply::Decline)
            }
        };
        let open = self.state.questions.remove(at);
        if discusses {
            // The archive tells it from a plain no.
            let note = json!({"what": "discuss", "request": outgoing::raw(&open.request)});
            self.effects.push(Effect::Note(note));
        }
        self.note_answer(&open.id, &open.request, open.text, by, &label);
        self.send(&message);
        Outcome::Accepted
    }

    fn note_answer(
        &mut self,
        question: &str,
        request: &RequestId,
        text: String,
        by: &str,
        answer: &str,
    ) {
        self.state.answer_drafts.remove(question);
        let note = json!({"what": "answer", "by": by, "question": question,
            "request": outgoing::raw(request)});
        self.effects.push(Effect::Note(note));
        self.answer_count += 1;
        if self.state.answers.len() >= MAX_REMEMBERED {
            self.state.answers.remove(0);
        }
        self.state.answers.push(GivenAnswer {
            number: self.answer_count,
            question: question.to_owned(),
            text: label(&text),
            by: by.to_owned(),
            answer: label(answer),
        });
    }

    /// The agent takes a question back.
    pub(super) fn withdraw(&mut self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Withdrawn<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Ok(withdrawn) = serde_json::from_str::<Withdrawn<'_>>(params) else { return };
        let request = withdrawn.request_id.get();
        let at = self.state.questions.iter().position(|open| open.request.as_json() == request);
        if let Some(at) = at {
            let question = self.state.questions.remove(at);
            self.state.answer_drafts.remove(&question.id);
        }
    }

    /// The lines that close all open questions: neither yes nor no.
    pub(super) fn close_questions(&mut self, by: &str) -> Vec<String> {
        let open = std::mem::take(&mut self.state.questions);
        let mut lines = Vec::new();
        for question in open {
            let id = question.request;
            self.note_answer(&question.id, &id, question.text, by, "cancelled");
            lines.push(match question.kind {
                RequestedInput::Permission(_) => outgoing::permission_answer(&id, None).to_string(),
                RequestedInput::Form(_) => {
                    outgoing::form_answer(&id, FormReply::Cancel).to_string()
                }
            });
        }
        lines
    }

    /// Questions that are open when their turn ends are nobody's any more.
    pub(super) fn decline_all(&mut self) {
        let lines = self.close_questions("end of the turn");
        if !lines.is_empty() {
            let outgoing = outgoing::Outgoing { lines, ..outgoing::Outgoing::default() };
            self.effects.push(Effect::Send(outgoing));
        }
    }
}

fn kind_of(kind: &str) -> PermissionKind {
    match kind {
        "allow_once" => PermissionKind::AllowOnce,
        "allow_always" => PermissionKind::AllowAlways,
        "reject_once" => PermissionKind::RejectOnce,
        "reject_always" => PermissionKind::RejectAlways,
        _ => PermissionKind::Other,
    }
}
