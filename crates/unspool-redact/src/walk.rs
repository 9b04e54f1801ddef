//! Redacts every field of a session that may hold agent or user text. Structures are destructured
//! exhaustively: a new field does not compile until it is handled here. An agent, a model or a server
//! chooses names and ids too, so they lose keys with a recognisable format. What Unspool itself
//! derives, digests and evidence never change.

use std::sync::Arc;

use unspool_model::event::EndReason;
use unspool_model::json::Json;
use unspool_model::part::{
    Agent, Agents, Body, Compaction, ContextInfo, Data, EarlierQuestion, Failure, File,
    Interjection, McpServer, McpSnapshot, Notice, Part, Patch, Reasoning, SkillLoad, SourceLink,
    TaskItem, TaskList, Text, Tool,
};
use unspool_model::prompt::RecordedPrompts;
use unspool_model::session::{
    Facts, OrphanAgentEnd, Parent, Session, Step, Title, Transcript, Turn, TurnEnd, TurnOrigin,
};

use super::Redactor;
use super::report::{Location, Owner};
use super::scan::ScanContext;

/// Only keys with a recognisable format are redacted.
const OPAQUE: ScanContext<'static> =
    ScanContext { name: None, listed: false, whole: None, opaque: true };

impl Redactor<'_> {
    /// Redacts a whole session. Secrets found in later turns are also replaced in earlier ones.
    pub fn transcript(&mut self, transcript: &mut Transcript) {
        self.collect_then_redact(|this| {
            let Transcript { session, turns } = &mut *transcript;
            this.walk_session(session);
            turns.iter_mut().for_each(|turn| this.walk_turn(turn));
        });
    }

    /// Redacts the metadata of a session.
    pub fn session(&mut self, session: &mut Session) {
        self.collect_then_redact(|this| this.walk_session(session));
    }

    /// Redacts one turn, using the secrets of earlier turns but not those of later ones.
    pub fn turn(&mut self, turn: &mut Turn) {
        self.collect_then_redact(|this| this.walk_turn(turn));
    }

    /// Collects the secrets of a turn without redacting it: of all turns, before the first is redacted.
    pub fn collect_secrets(&mut self, turn: &mut Turn) {
        self.collecting = true;
        self.walk_turn(turn);
        self.collecting = false;
    }

    /// Redacts the prompts of a session, using the secrets of earlier turns.
    pub fn prompts(&mut self, prompts: &mut RecordedPrompts) {
        self.collect_then_redact(|this| this.recorded_prompts(prompts));
    }

    /// Collects the secrets of a note, like `collect_secrets`.
    pub fn collect_note(&mut self, text: &str) {
        self.collecting = true;
        let _ = self.text(text);
        self.collecting = false;
    }

    /// Walks once to collect secrets, and a second time to replace them if there are any.
    fn collect_then_redact(&mut self, mut walk: impl FnMut(&mut Self)) {
        self.collecting = true;
        walk(self);
        self.collecting = false;
        if !self.secrets.is_empty() {
            walk(self);
        }
        self.location = Location::default();
    }

    fn walk_session(&mut self, session: &mut Session) {
        self.location = Location { turn: None, owner: Owner::Session, field: String::new() };
        let Session { id: _, agent, agent_session_id, facts, state: _, parent, forked_from: _ } =
            session;
        let Facts {
            project,
            branch,
            version,
            title,
            cost_usd: _,
            cost_tokens: _,
            started: _,
            ended_at: _,
            resumed_at: _,
            reported_parent,
            forked_from: _,
            outcomes_only: _,
            context_windows: _,
            ranks: _,
            orphan_agent_ends,
        } = facts;
        self.string("agent", agent);
        self.id("agent_session_id", agent_session_id);
        self.optional("version", version);
        for Parent { session: _, call_id, kind } in parent.iter_mut().chain(reported_parent) {
            self.optional_id("parent.call_id", call_id);
            self.optional("parent.kind", kind);
        }
        for OrphanAgentEnd { id, end: _, at: _, evidence: _ } in orphan_agent_ends {
            self.shared("agent_ends", id, OPAQUE);
        }
        self.optional("project", project);
        self.optional("branch", branch);
        if let Some(Title { text, origin: _ }) = title {
            self.string("title", text);
        }
    }

    fn walk_turn(&mut self, turn: &mut Turn) {
        let Turn {
            id: _,
            number,
            trigger: _,
            user,
            thinking_mode: _,
            state: _,
            abandoned: _,
            inherited: _,
            started: _,
            ended: _,
            steps,
            parts,
            origin,
        } = turn;
        let TurnOrigin {
            names: _,
            at: _,
            ranks: _,
            ends,
            deferred,
            thinking: _,
            // White space.
            pending_whitespace: _,
            reserved_places: _,
            next_positions: _,
            source_starts: _,
            records,
        } = origin;
        self.location = Location { turn: Some(*number), owner: Owner::User, field: String::new() };
        self.message_records(records);
        user.iter_mut().for_each(|body| self.body(body));
        for Step { id, name: _, at: _, model, usage: _, stop_reason, request: _, provenance } in
            steps
        {
            self.location.owner = Owner::Step(*id);
            if let Some(model) = model {
                self.shared("model", model, ScanContext::default());
            }
            if let Some(reason) = stop_reason {
                self.shared("stop_reason", reason, ScanContext::default());
            }
            if let Some(provenance) = provenance {
                self.provenance(provenance);
            }
        }
        for Part { id, place: _, step: _, started: _, ended: _, evidence: _, origin, body } in parts
        {
            self.location.owner = Owner::Part(*id);
            for (_, words) in &mut origin.cut {
                self.string("cut", words);
            }
            origin.questions.iter_mut().for_each(|told| self.feed_questions(told));
            self.body(body);
        }
        self.location.owner = Owner::Turn;
        for TurnEnd { reason, at: _ } in ends.iter_mut().chain(deferred).flatten() {
            match reason {
                EndReason::Failed(why) => self.optional("end", why),
                EndReason::Completed
                | EndReason::Interrupted
                | EndReason::Idle
                | EndReason::Lost
                | EndReason::Superseded
                | EndReason::Unseen => {}
            }
        }
    }

    fn body(&mut self, body: &mut Body) {
        match body {
            Body::Text(Text { text, open: _, citations }) => {
                self.string("text", text);
                self.each("citations", citations, |this, field, citation| {
                    this.document(field, citation)
                });
            }
            Body::Reasoning(reasoning) => self.reasoning(reasoning),
            Body::Tool(tool) => self.tool(tool),
            Body::Agent(agents) => self.agents(agents),
            Body::Interjection(Interjection { text }) => self.string("text", text),
            Body::TaskList(TaskList { items }) => {
                self.each("items", items, |this, field, TaskItem { id, text, state: _ }| {
                    this.optional_id(&format!("{field}.id"), id);
                    this.string(&format!("{field}.text"), text);
                });
            }
            Body::SkillLoad(SkillLoad { name, call_id, text }) => {
                self.string("name", name);
                self.optional_id("call_id", call_id);
                self.string("text", text);
            }
            Body::McpSnapshot(McpSnapshot { servers }) => {
                self.each("servers", servers, |this, field, server| {
                    let McpServer { name, status, tools } = server;
                    this.string(&format!("{field}.name"), name);
                    this.optional(&format!("{field}.status"), status);
                    tools.iter_mut().for_each(|tool| this.string(&format!("{field}.tool"), tool));
                });
            }
            Body::ContextInfo(ContextInfo { title, text }) => {
                self.string("title", title);
                self.string("text", text);
            }
            Body::Compaction(Compaction {
                trigger: _,
                tokens_before: _,
                tokens_after: _,
                duration_ms: _,
                summary,
            }) => self.string("summary", summary),
            Body::File(File { name, media_type, url, text }) => {
                self.optional("name", name);
                self.optional("media_type", media_type);
                self.url("url", url);
                self.optional("text", text);
            }
            Body::Source(SourceLink { url, title, quote }) => {
                self.url("url", url);
                self.optional("title", title);
                self.optional("quote", quote);
            }
            Body::Patch(Patch { path, diff, call_id }) => {
                self.optional_id("call_id", call_id);
                self.optional("path", path);
                self.string("diff", diff);
            }
            Body::Notice(Notice { code, text }) => {
                self.string("code", code);
                self.string("text", text);
            }
            Body::Error(Failure { code, status: _, text }) => {
                self.optional("code", code);
                self.string("text", text);
            }
            Body::Data(Data { kind, payload }) => {
                self.string("kind", kind);
                self.document("payload", payload);
            }
        }
    }

    fn agents(&mut self, agents: &mut Agents) {
        let Agents { call_id, agents } = agents;
        self.id("call_id", call_id);
        self.each("agents", agents, |this, field, agent| {
            let Agent { id, name, task, state: _, background: _, activity, ranks: _ } = agent;
            this.id(&format!("{field}.id"), id);
            this.string(&format!("{field}.name"), name);
            this.string(&format!("{field}.task"), task);
            this.optional(&format!("{field}.activity"), activity);
        });
    }

    fn reasoning(&mut self, reasoning: &mut Reasoning) {
        let Reasoning { text, open: _, redacted: _, signature, signer, duration_ms: _ } = reasoning;
        self.string("text", text);
        self.optional("signer", signer);
        if let Some(signature) = signature {
            // The vendor verifies the signature, so keep it unless it contains a key.
            self.value("signature", signature, OPAQUE);
        }
    }

    fn tool(&mut self, tool: &mut Tool) {
        let Tool {
            call_id,
            parent_call_id,
            name,
            input,
            input_text,
            state: _,
            reported_state: _,
            output,
            result,
            exit_code: _,
            duration_ms: _,
            question,
            answer,
            earlier,
            provider_executed: _,
            title,
        } = tool;
        self.id("call_id", call_id);
        self.optional_id("parent_call_id", parent_call_id);
        self.string("name", name);
        self.optional("title", title);
        if let Some(input) = input {
            self.document("input", input);
        }
        if !input_text.is_empty() {
            // May be truncated anywhere.
            if input_text.trim_start().starts_with(['{', '[']) {
                if let Some(text) = self.replaced_json(input_text, "input_text")
                    && !self.collecting
                {
                    *input_text = text;
                }
            } else {
                self.string("input_text", input_text);
            }
        }
        self.optional("output", output);
        if let Some(result) = result {
            self.document("result", result);
        }
        for EarlierQuestion { question, answer } in earlier {
            self.question(question);
            self.answer(answer);
        }
        question.iter_mut().for_each(|question| self.question(question));
        answer.iter_mut().for_each(|answer| self.answer(answer));
    }

    pub(super) fn each<T>(
        &mut self,
        field: &str,
        items: &mut [T],
        mut visit: impl FnMut(&mut Self, &str, &mut T),
    ) {
        for (at, item) in items.iter_mut().enumerate() {
            visit(self, &format!("{field}[{at}]"), item);
        }
    }

    pub(super) fn optional(&mut self, field: &str, text: &mut Option<String>) {
        if let Some(text) = text {
            self.string(field, text);
        }
    }

    fn url(&mut self, field: &str, url: &mut Option<String>) {
        if let Some(url) = url.as_mut().filter(|url| !url.starts_with("data:")) {
            self.string(field, url);
        }
    }

    /// An id. All ids that refer to it change with it.
    pub(super) fn id(&mut self, field: &str, id: &mut String) {
        self.value(field, id, OPAQUE);
    }

    pub(super) fn optional_id(&mut self, field: &str, id: &mut Option<String>) {
        if let Some(id) = id {
            self.id(field, id);
        }
    }

    /// A name that many values share.
    pub(super) fn shared(&mut self, field: &str, text: &mut Arc<str>, context: ScanContext<'_>) {
        let mut own = text.to_string();
        self.value(field, &mut own, context);
        if own != **text {
            *text = own.into();
        }
    }

    pub(super) fn string(&mut self, field: &str, text: &mut String) {
        self.value(field, text, ScanContext::default());
    }

    fn value(&mut self, field: &str, text: &mut String, context: ScanContext<'_>) {
        if !self.collecting {
            field.clone_into(&mut self.location.field);
        }
        if let Some(replaced) = self.replaced(text, context, &mut |_| {})
            && !self.collecting
        {
            *text = replaced;
        }
    }

    fn document(&mut self, field: &str, json: &mut Json) {
        if let Some(replaced) = self.replaced_json(json.text(), field)
            && !self.collecting
        {
            *json = Json::checked(&replaced);
        }
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
