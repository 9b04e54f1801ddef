//! Questions of the agent: permissions (`session/request_permission`) and forms
//! (`elicitation/create`), and the answers of the client.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, QuestionOption};

use super::super::{Emitter, Fields, RecordOutcome};
use super::adapter::Adapter;
use super::decoder::AcpDecoder;

/// A question without an answer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingQuestion {
    call: Arc<str>,
    /// Of a permission: id, kind and label of each option.
    options: Vec<(String, String, String)>,
    /// Of a form: the property and the text of each question.
    items: Vec<(String, String)>,
    /// The person refuses to talk about it first.
    #[serde(default)]
    pub discusses: bool,
    /// Who answers, as the recording program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What such an answer says.
pub const CHAT_ABOUT_THIS: &str = "chat about this";

impl AcpDecoder {
    pub(super) fn permission(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &str,
        params: &Fields<'_>,
    ) -> RecordOutcome {
        let call = params.fields("toolCall");
        let call_id: Arc<str> = call.text("toolCallId").unwrap_or_default().into();
        let parent = self.adapter.parent_call(&call).filter(|parent| !parent.is_empty());
        // A question about an unknown call opens it (R-003-11): Gemini and Codex ask first.
        self.report_call(emit, &call_id, &call, parent);
        let text = |option: &Fields<'_>, name| option.string(name).unwrap_or_default();
        let options: Vec<(String, String, String)> = params
            .list("options")
            .map(|option| (text(&option, "optionId"), text(&option, "kind"), text(&option, "name")))
            .collect();
        let label = |(_, _, name): &(String, String, String)| QuestionOption {
            label: name.clone(),
            description: None,
        };
        let subject = call.string("title").unwrap_or_else(|| "this call".to_owned());
        let item = QuestionItem {
            question: format!("Allow {subject}?"),
            options: options.iter().map(label).collect(),
            ..QuestionItem::default()
        };
        let question = Question {
            request_id: Some(self.request_id(id)),
            kind: QuestionKind::Permission,
            items: vec![item],
        };
        let pending = PendingQuestion {
            call: call_id.clone(),
            options,
            items: Vec::new(),
            discusses: false,
            by: None,
        };
        self.questions.insert(id.to_owned(), pending);
        emit.push(EventKind::QuestionAsked {
            call: self.adapter.call(&call_id),
            tool: String::new(),
            question,
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    /// A form: each property is a question.
    pub(super) fn elicitation(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &str,
        params: &Fields<'_>,
    ) -> RecordOutcome {
        let request_id = self.request_id(id);
        let call = params.text("toolCallId").map(Arc::from);
        let call: Arc<str> = call.unwrap_or_else(|| form_call(&request_id).into());
        let message = params.string("message").unwrap_or_default();
        let properties = params.fields("requestedSchema").fields("properties");
        let (mut items, mut names) = (Vec::new(), Vec::new());
        for name in properties.names() {
            let property = properties.fields(&name);
            // The user's own words for another property.
            let custom = name.strip_suffix("_custom").is_some_and(|of| properties.has(of));
            if custom {
                continue;
            }
            let header = property.string("title");
            let described = property.string("description");
            let item = QuestionItem {
                question: described.or_else(|| header.clone()).unwrap_or_else(|| name.to_string()),
                header,
                options: options(&property),
                multi_select: property.is("type", "array"),
            };
            names.push((name.to_string(), item.question.clone()));
            items.push(item);
        }
        // The message is the question if there is only one, or if the agent wrote no form.
        if let [item] = items.as_mut_slice() {
            item.question.clone_from(&message);
            names[0].1.clone_from(&message);
        } else if items.is_empty() {
            items.push(QuestionItem { question: message.clone(), ..QuestionItem::default() });
        }
        let choice = items.iter().any(|item| !item.options.is_empty());
        let kind = if choice { QuestionKind::Choice } else { QuestionKind::Text };
        let pending = PendingQuestion {
            call: call.clone(),
            options: Vec::new(),
            items: names,
            discusses: false,
            by: None,
        };
        self.questions.insert(id.to_owned(), pending);
        emit.push(EventKind::QuestionAsked {
            call: self.adapter.call(&call),
            tool: "question".to_owned(),
            question: Question { request_id: Some(request_id), kind, items },
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    pub(super) fn answer(
        &mut self,
        emit: &mut Emitter<'_>,
        question: PendingQuestion,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let result = message.fields("result");
        let mut answer = if question.options.is_empty() {
            form_answer(&question, &result)
        } else {
            permission_answer(&question, &result.fields("outcome"))
        };
        let refuses = matches!(answer.decision, Decision::Denied | Decision::Declined);
        if question.discusses && refuses {
            CHAT_ABOUT_THIS.clone_into(&mut answer.text);
        }
        answer.by = question.by;
        let refused = answer.decision == Decision::Denied;
        let call = self.adapter.call(&question.call);
        emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
        if let Some(held) = self.calls.get_mut(&question.call).filter(|_| refused) {
            held.refused = true;
            // Gemini says nothing more about it.
            if self.adapter == Adapter::Gemini {
                held.ended = true;
                let (end, outcome) = (ToolEnd::Denied, Default::default());
                emit.push(EventKind::ToolEnded { call, end, outcome });
            }
        }
        RecordOutcome::InParts
    }

    /// The agent takes a question back.
    pub(super) fn withdraw(&mut self, emit: &mut Emitter<'_>, id: &str) -> RecordOutcome {
        let Some(question) = self.questions.remove(id) else { return RecordOutcome::Metadata };
        let call = self.adapter.call(&question.call);
        let answer = declined("withdrawn by the agent");
        emit.push(EventKind::QuestionAnswered { call, answer });
        RecordOutcome::InParts
    }

    /// Ids begin anew with each connection.
    fn request_id(&self, id: &str) -> String {
        format!("{}/{}", self.connection, id.trim_matches('"'))
    }
}

/// The call of a form that is about no call of the agent.
fn form_call(request_id: &str) -> String {
    format!("elicitation {request_id}")
}

/// The agent's id of the request that such a call stands for.
pub fn form_request(call: &str) -> Option<&str> {
    let (_, request) = call.strip_prefix("elicitation ")?.split_once('/')?;
    Some(request)
}

/// The options of a property: `oneOf` with titles, or plain values; of an array those of its items.
fn options(property: &Fields<'_>) -> Vec<QuestionOption> {
    let from = if property.is("type", "array") { property.fields("items") } else { *property };
    let titled = ["oneOf", "anyOf"].into_iter().find(|name| from.has(name)).unwrap_or("oneOf");
    let mut options: Vec<QuestionOption> = from
        .list(titled)
        .map(|option| QuestionOption {
            label: option.string("title").or_else(|| option.string("const")).unwrap_or_default(),
            description: option.string("description"),
        })
        .collect();
    let plain = |label: String| QuestionOption { label, description: None };
    options.extend(from.read::<Vec<String>>("enum").unwrap_or_default().into_iter().map(plain));
    if property.is("type", "boolean") {
        options.extend(["yes", "no"].map(|label| plain(label.to_owned())));
    }
    options
}

fn permission_answer(question: &PendingQuestion, outcome: &Fields<'_>) -> Answer {
    if !outcome.is("outcome", "selected") {
        return declined("cancelled");
    }
    let chosen = outcome.string("optionId").unwrap_or_default();
    let option = question.options.iter().find(|(id, _, _)| *id == chosen);
    let (kind, label) = option.map_or(("", chosen.as_str()), |(_, kind, name)| (kind, name));
    let decision = if kind.starts_with("allow") { Decision::Allowed } else { Decision::Denied };
    Answer { decision, text: label.to_owned(), choices: Vec::new(), observed: true, by: None }
}

fn form_answer(question: &PendingQuestion, result: &Fields<'_>) -> Answer {
    match result.text("action").as_deref() {
        Some("accept") => {}
        Some("decline") => return declined("declined"),
        Some(_) | None => return declined("cancelled"),
    }
    let content = result.fields("content");
    let value = |name: &str| -> Option<String> {
        let listed = content.read::<Vec<String>>(name).map(|values| values.join(", "));
        let truth = || content.truth(name).map(|yes| if yes { "yes" } else { "no" }.to_owned());
        listed.or_else(|| content.string(name)).or_else(truth)
    };
    let choice = |(name, text): &(String, String)| {
        let own = value(&format!("{name}_custom")).filter(|own| !own.is_empty());
        let chosen: Vec<String> = value(name).into_iter().chain(own).collect();
        (!chosen.is_empty()).then(|| (text.clone(), chosen.join(", ")))
    };
    let choices: Vec<(String, String)> = question.items.iter().filter_map(choice).collect();
    let text = choices.iter().map(|(_, answer)| answer.as_str()).collect::<Vec<_>>().join("; ");
    Answer { decision: Decision::Answered, text, choices, observed: true, by: None }
}

fn declined(text: &str) -> Answer {
    Answer {
        decision: Decision::Declined,
        text: text.to_owned(),
        choices: Vec::new(),
        observed: true,
        by: None,
    }
}
