//! The `response_item` records of a rollout: messages, reasoning, calls and their outputs, as sent
//! to and received from the model. Extends `LogDecoder`.

use std::sync::Arc;

use unspool_model::assemble::prose_content_hash;
use unspool_model::event::{CallRef, EventKind, ProseDetail, ProseKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::{Body, ContextInfo, Data, Notice, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, JsonOutline, RecordOutcome};
use super::call::{
    ASK_TOOL, SEARCH_TOOL, answers, content_hash, emit_call, question_ids, questions,
};
use super::log::{LogDecoder, OpenCall, UnannouncedProse};
use super::prompts::declared_kinds;
use super::text::{OutputStatus, content_text, payload, said};
use super::{block_name, turn_name};

impl LogDecoder {
    pub(super) fn response(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
        let kind = item.string("type").unwrap_or_default();
        let value = item.fields("internal_chat_message_metadata_passthrough");
        self.name_turn(emit, value.text("turn_id").as_deref());
        let outcome = self.decode_item(emit, &kind, item);
        // Behind the call: a reply is no part of its own prompt.
        self.prompts.item(emit, item);
        outcome
    }

    fn decode_item(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        item: &Fields<'_>,
    ) -> RecordOutcome {
        match kind {
            "message" => self.message(emit, item),
            "reasoning" => self.reasoning(emit, item),
            "function_call" | "custom_tool_call" | "tool_search_call" | "local_shell_call" => {
                self.flush(emit);
                self.step(emit);
                self.call(emit, kind, item);
                RecordOutcome::InParts
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.flush(emit);
                self.output(emit, item)
            }
            "web_search_call" => {
                self.flush(emit);
                self.step(emit);
                let id: Arc<str> = item.text("id").unwrap_or_default().into();
                emit_call(emit, &id, None, SEARCH_TOOL, item.json("action"));
                let end = super::call::item_end(item).unwrap_or(ToolEnd::Completed);
                let outcome = ToolOutcome::default();
                emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
                RecordOutcome::InParts
            }
            "agent_message" => {
                self.flush(emit);
                self.mail(emit, item)
            }
            "additional_tools" => RecordOutcome::Metadata,
            _ => {
                self.flush(emit);
                let kind = format!("response_item/{kind}");
                let name = item.text("id").map(|id| Name::Record(id.into()));
                emit.push(EventKind::Part(name, Body::Data(Data { kind, payload: item.whole() })));
                RecordOutcome::InParts
            }
        }
    }

    // ── Prose ───────────────────────────────────────────────────────────────────────────────

    fn message(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
        match item.text("role").as_deref() {
            Some("assistant") => {}
            // The user's own text comes as an event; other user messages are written by Codex.
            Some("user") => return RecordOutcome::Metadata,
            _ => return added_by_hooks(emit, item),
        }
        self.step(emit);
        let id = item.string("id").unwrap_or_default();
        let text = content_text(item, "content");
        let matched = self.announced.iter().position(|(held, said)| match held {
            Some(held) => *held == id,
            None => *said == text || self.plan.is_some(),
        });
        let plan = self.plan.take();
        if let Some(matched) = matched {
            // A plan inside the message has its own item, so the displayed text is shorter.
            let (_, text) = self.announced.remove(matched);
            self.say(emit, ProseKind::Text, &id, text, ProseDetail::default());
        } else if plan.is_none() {
            self.unannounced.push(UnannouncedProse { id, reasoning: false, text });
            if !self.announces {
                self.flush(emit);
            }
        }
        if let Some((id, text)) = plan {
            self.say(emit, ProseKind::Text, &id, text, ProseDetail::default());
        }
        RecordOutcome::InParts
    }

    fn reasoning(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
        self.step(emit);
        let id = item.string("id").unwrap_or_default();
        let summary: Vec<String> =
            item.list("summary").filter_map(|piece| piece.string("text")).collect();
        let text =
            if summary.is_empty() { content_text(item, "content") } else { summary.join("\n\n") };
        // A legacy rollout announces each part of the summary separately.
        let before = self.announced.len();
        self.announced.retain(|(held, said)| match held {
            Some(held) => *held != id,
            None => !summary.contains(said),
        });
        let matched = self.announced.len() < before;
        if matched || text.is_empty() || !self.announces {
            self.flush(emit);
            let detail = ProseDetail { redacted: text.is_empty(), ..ProseDetail::default() };
            self.say(emit, ProseKind::Reasoning, &id, text, detail);
        } else {
            self.unannounced.push(UnannouncedProse { id, reasoning: true, text });
        }
        RecordOutcome::InParts
    }

    /// Handles a display event. Its model item came just before, or follows.
    pub(super) fn announce(&mut self, emit: &mut Emitter<'_>, id: Option<&str>, text: String) {
        self.announces = true;
        let waits = self.unannounced.iter().position(|held| match id {
            Some(id) => held.id == id,
            None => held.text == text,
        });
        if let Some(at) = waits {
            let held = self.unannounced.remove(at);
            let prose_kind = if held.reasoning { ProseKind::Reasoning } else { ProseKind::Text };
            return self.say(emit, prose_kind, &held.id, held.text, ProseDetail::default());
        }
        self.announced.push((id.map(str::to_owned), text));
    }

    /// Emits prose that got no display event: no `compacted` record claimed it as its summary.
    pub(super) fn flush(&mut self, emit: &mut Emitter<'_>) {
        for held in std::mem::take(&mut self.unannounced) {
            let prose_kind = if held.reasoning { ProseKind::Reasoning } else { ProseKind::Text };
            self.say(emit, prose_kind, &held.id, held.text, ProseDetail::default());
        }
        if let Some((id, text)) = self.plan.take() {
            self.say(emit, ProseKind::Text, &id, text, ProseDetail::default());
        }
    }

    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        id: &str,
        text: String,
        detail: ProseDetail,
    ) {
        if !text.trim().is_empty() {
            self.first(emit, prose_content_hash(prose_kind, &text));
        }
        if !text.trim().is_empty() || detail.redacted {
            let block = Some(self.prose_name(prose_kind, id, &text));
            emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        }
    }

    /// A message of another agent: the prompt of a turn, or context that arrives while it runs.
    fn mail(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
        let text = payload(item);
        if text.is_empty() {
            return RecordOutcome::Metadata;
        }
        if let Some(turn) = self.turn.clone().filter(|_| !self.prompted) {
            self.prompted = true;
            let user = vec![Body::Text(Text { text, ..Text::default() })];
            let names = vec![turn_name(&turn)];
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::Agent, user });
        } else {
            let title = format!("Message from {}", item.text("author").unwrap_or_default());
            let name = item.text("id").map(|id| Name::Record(id.into()));
            emit.push(EventKind::Part(name, Body::ContextInfo(ContextInfo { title, text })));
        }
        RecordOutcome::InParts
    }

    // ── Calls ───────────────────────────────────────────────────────────────────────────────

    fn call(&mut self, emit: &mut Emitter<'_>, kind: &str, item: &Fields<'_>) {
        let id = item.text("call_id").or_else(|| item.text("id")).unwrap_or_default();
        let id: Arc<str> = id.into();
        let search = kind == "tool_search_call";
        let name = item.string("name").unwrap_or_else(|| {
            let name = if search { "tool_search" } else { "local_shell" };
            name.to_owned()
        });
        let mut open = OpenCall { tool: name.clone(), ..OpenCall::default() };
        let value = item.string("arguments");
        let input = match &value {
            // Arguments that are not valid JSON are kept as a string.
            Some(text) => Json::parse(text).or_else(|| Some(Json::string(text))),
            None => ["input", "arguments", "action"].iter().find_map(|name| item.json(name)),
        };
        self.first(emit, content_hash(&name, input.as_ref()));
        emit_call(emit, &id, None, &name, input);
        if name == ASK_TOOL
            && let Some(text) = &value
            && let Ok(request) = JsonOutline::default().read(text)
            && let Some(question) = questions(&request, None)
        {
            open.request = question_ids(&request);
            let (call, requested) = (CallRef::Id(id.clone()), false);
            emit.push(EventKind::QuestionAsked {
                call,
                tool: name.clone(),
                question,
                requested,
                inferred: false,
            });
        }
        if name == "exec" && kind == "custom_tool_call" {
            self.scripts.push(id.clone());
        }
        if name == "wait"
            && let Some(text) = &value
            && let Ok(input) = JsonOutline::default().read(text)
        {
            open.runs = input.string("cell_id");
        }
        self.calls.insert(id, open);
    }

    fn output(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = item.text("call_id").unwrap_or_default().into();
        // A code-mode script may send notifications beside its result.
        if item.has("name") && item.is("type", "custom_tool_call_output") {
            let text = content_text(item, "output");
            let name = item.text("id").map(|id| Name::Record(id.into()));
            let notice = Notice { code: "tool-notification".to_owned(), text };
            emit.push(EventKind::Part(name, Body::Notice(notice)));
            return RecordOutcome::InParts;
        }
        let open = self.calls.remove(&id).unwrap_or_default();
        let field = if item.has("output") { "output" } else { "tools" };
        let output = content_text(item, field);
        let result = item.json(field).filter(|_| !item.is_text(field));
        if open.tool == ASK_TOOL
            && let Ok(value) = JsonOutline::default().read(&output)
            && let Some(answer) = answers(&value, &open.request)
        {
            emit.push(EventKind::QuestionAnswered { call: CallRef::Id(id.clone()), answer });
        }
        let judged = said(&open.tool, &output);
        self.settle_script(emit, &id, &open, &judged);
        let call = CallRef::Id(id.clone());
        let mut outcome = ToolOutcome { output: Some(output), result, ..ToolOutcome::default() };
        match judged {
            OutputStatus::Runs(process) if open.tool != "wait" && open.tool != "write_stdin" => {
                emit.push(EventKind::ToolRefined { call, outcome });
                self.calls.insert(id, OpenCall { runs: Some(process), ..open });
            }
            OutputStatus::Runs(_) => {
                let end = ToolEnd::Completed;
                emit.push(EventKind::ToolEnded { call, end, outcome });
            }
            OutputStatus::Ended(end, exit_code) => {
                // Polling a process that failed is not a failure of the poll.
                let looks = open.tool == "write_stdin" && exit_code.is_some();
                let end = if looks { ToolEnd::Completed } else { end };
                outcome.exit_code = exit_code.filter(|_| !looks);
                if open.ended {
                    emit.push(EventKind::ToolRefined { call, outcome });
                } else {
                    emit.push(EventKind::ToolEnded { call, end, outcome });
                }
                // Its item may still arrive when the process ends.
                if end == ToolEnd::Interrupted {
                    self.calls.insert(id, OpenCall { ended: true, ..open });
                }
            }
        }
        RecordOutcome::InParts
    }

    /// Ends a script when its own output arrives, or that of the `wait` call for it.
    fn settle_script(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        open: &OpenCall,
        judged: &OutputStatus,
    ) {
        let OutputStatus::Ended(end, _) = judged else { return };
        if open.tool == "exec" {
            self.scripts.retain(|script| script != id);
        }
        let Some(cell) = open.runs.as_ref().filter(|_| open.tool == "wait") else { return };
        let waited = |(_, held): &(&Arc<str>, &OpenCall)| {
            held.tool == "exec" && held.runs.as_ref() == Some(cell)
        };
        let Some(script) = self.calls.iter().find(waited).map(|(id, _)| id.clone()) else { return };
        self.calls.remove(&script);
        self.scripts.retain(|held| *held != script);
        let (call, outcome) = (CallRef::Id(script), ToolOutcome::default());
        emit.push(EventKind::ToolEnded { call, end: *end, outcome });
    }
}

/// What the program tells the model. Hooks may have added to it, which is context; the rest is in
/// the prompts of the calls.
fn added_by_hooks(emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
    let kinds = declared_kinds(item);
    let is_hook = |kind: &String| kind == "hooks.additional_context";
    let mut outcome = RecordOutcome::left_out("instructions");
    for (nth, (content, _)) in
        item.list("content").zip(&kinds).enumerate().filter(|(_, (_, kind))| is_hook(kind))
    {
        let text = content.string("text").unwrap_or_default();
        let id = item.text("id").map(|id| Name::Record(format!("{id}/context/{nth}").into()));
        let info = ContextInfo { title: "Hook context".to_owned(), text };
        emit.push(EventKind::Part(id, Body::ContextInfo(info)));
        outcome = RecordOutcome::InParts;
    }
    outcome
}

/// Emits prose under the id of its item, unless it is blank and not redacted.
pub(super) fn say(
    emit: &mut Emitter<'_>,
    prose_kind: ProseKind,
    id: &str,
    text: String,
    detail: ProseDetail,
) {
    if !text.trim().is_empty() || detail.redacted {
        let block = Some(block_name(id));
        emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
    }
}
