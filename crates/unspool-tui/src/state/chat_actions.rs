//! A chat in the open session: its events, its place in the transcript, and its commands. Keys are in
//! `chat_keys`.

use std::rc::Rc;
use std::time::Instant;

use unspool_live::protocol::{Command, HostMessage, Phase};
use unspool_model::id::SessionId;
use unspool_query::window::Anchor;
use unspool_view::block::{Block, text_of};

use super::{Effect, PendingQuery, Screen, State};
use crate::chat::layout;
use crate::chat::question_layout;
use crate::chat::{ChatEffect, ChatEvent, ChatPane, ChatRequest, Focus, LinkId};
use crate::entry::EntryContent;
use crate::transcript::{QuestionBox, TranscriptPane};

impl State {
    /// Opens a chat. `session` is open already, or None for a chat that has no session yet.
    pub fn open_chat(&mut self, request: ChatRequest, session: Option<SessionId>) -> Vec<Effect> {
        let mut effects = self.leave_chat();
        self.next_link += 1;
        let link = self.next_link;
        let session = session.unwrap_or_else(|| {
            // No agent has this name: the id stands for the transcript that is still empty.
            let id = SessionId::of("", &format!("chat {link}"));
            let transcript = TranscriptPane::new(id, None, self.view_options.clone());
            self.screens.push(Screen::Session(Box::new(transcript)));
            id
        });
        self.chat = Some(ChatPane::new(link, session, self.now));
        effects.push(Effect::Chat(link, ChatEffect::Open(request)));
        effects
    }

    /// Connects to the chat of a session that was opened, if one runs: it may have a question.
    pub(super) fn find_chat(&mut self, session: SessionId) -> Vec<Effect> {
        // A chat further down stays connected.
        let held = self.chat.as_ref().map(|chat| chat.session);
        let is_empty = self.chat.as_ref().is_some_and(|chat| chat.tentative);
        let is_shown = held
            .is_some_and(|held| held == session || !is_empty && self.session_mut(held).is_some());
        if is_shown || !self.can_chat {
            return Vec::new();
        }
        let effects = self.open_chat(ChatRequest::Find(session), Some(session));
        if let Some(chat) = &mut self.chat {
            (chat.tentative, chat.focus) = (true, Focus::Transcript);
        }
        effects
    }

    /// Leaves the present chat. Its agent goes on.
    fn leave_chat(&mut self) -> Vec<Effect> {
        let Some(mut chat) = self.chat.take() else { return Vec::new() };
        if let Some(transcript) = self.session_mut(chat.session) {
            transcript.tail = None;
            transcript.boxes.clear();
        }
        let effects = chat.keep_drafts().into_iter().chain([ChatEffect::Close]);
        effects.map(|effect| Effect::Chat(chat.link, effect)).collect()
    }

    /// Opens the chat of a session, or goes to the composer if it is open.
    pub(super) fn chat_with(&mut self, session: SessionId) -> Vec<Effect> {
        let is_it = |chat: &&mut ChatPane| chat.session == session && !chat.tentative;
        if let Some(chat) = self.chat.as_mut().filter(is_it) {
            if chat.state.answers_only {
                self.set_status("this agent runs in its own terminal: tab answers its questions");
                return Vec::new();
            }
            if !chat.is_over() {
                chat.focus = Focus::Composer;
                return self.show_composer();
            }
            return self.restart_chat(None);
        }
        self.open_chat(ChatRequest::Resume(session), Some(session))
    }

    /// Starts the agent again, and sends it this message.
    pub(super) fn restart_chat(&mut self, message: Option<String>) -> Vec<Effect> {
        let Some(old) = self.chat.take() else { return Vec::new() };
        self.next_link += 1;
        let mut chat = ChatPane::new(self.next_link, old.session, self.now);
        let request = match old.chat {
            Some(chat) => {
                let id = old.session;
                ChatRequest::Restart { chat, session: old.state.session, id }
            }
            None => ChatRequest::Resume(old.session),
        };
        chat.composer = old.composer;
        chat.resend = message;
        self.chat = Some(chat);
        vec![Effect::Chat(self.next_link, ChatEffect::Open(request))]
    }

    pub(super) fn handle_chat_event(&mut self, link: LinkId, event: ChatEvent) -> Vec<Effect> {
        let now = self.now;
        let Some(chat) = self.chat.as_mut().filter(|chat| chat.link == link) else {
            return Vec::new();
        };
        match event {
            ChatEvent::Attached { chat: id, state } => {
                chat.attach(id, *state, now);
                let resend = chat.resend.take();
                let sent = resend.map(|text| chat.command(Command::prompt(text)));
                let mut effects: Vec<Effect> =
                    sent.into_iter().map(|effect| Effect::Chat(link, effect)).collect();
                effects.extend(self.follow_session());
                effects
            }
            ChatEvent::Host(message) => {
                let is_reply = matches!(&message, HostMessage::Done { .. });
                if let Some(notice) = chat.take(message, now) {
                    self.set_status(notice);
                }
                if is_reply { Vec::new() } else { self.follow_session() }
            }
            ChatEvent::Failed(_) | ChatEvent::Closed if chat.tentative => {
                self.chat = None;
                Vec::new()
            }
            ChatEvent::Failed(reason) => {
                chat.give_back();
                chat.lost = Some(reason);
                Vec::new()
            }
            ChatEvent::Closed => {
                chat.give_back();
                chat.closed = true;
                if chat.state.phase != Phase::Ended {
                    chat.lost = Some("the connection to the agent was lost".to_owned());
                }
                Vec::new()
            }
            ChatEvent::Files(files) => {
                chat.files = files;
                chat.complete();
                Vec::new()
            }
        }
    }

    /// Shows the session of the chat: the agent has named it, or has begun a new one (`/clear`).
    fn follow_session(&mut self) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let Some(own) = &chat.state.session else { return Vec::new() };
        let id = SessionId::of(&chat.state.agent, own);
        let old = std::mem::replace(&mut chat.session, id);
        if old == id {
            return Vec::new();
        }
        let view_options = self.view_options.clone();
        let Some(transcript) = self.session_mut(old) else { return Vec::new() };
        *transcript = TranscriptPane::new(id, None, view_options);
        let (reason, query) = transcript.request_window(Anchor::End);
        vec![self.send_query(PendingQuery::Window(id, reason), query)]
    }

    /// The chat of the visible transcript.
    pub fn visible_chat(&self) -> Option<&ChatPane> {
        let session = self.transcript()?.session;
        let is_it = |chat: &&ChatPane| chat.session == session && !chat.tentative;
        self.chat.as_ref().filter(is_it).filter(|_| self.replay.is_none())
    }

    /// Lays the chat out below its transcript, and its questions below their calls.
    pub(super) fn lay_out_chat(&mut self) {
        let now = self.now;
        let Some(chat) = self.chat.as_mut() else { return };
        let session = chat.session;
        let transcript = self.screens.iter_mut().rev().find_map(|screen| match screen {
            Screen::Session(held) if held.session == session => Some(&mut **held),
            Screen::Session(_)
            | Screen::Search(_)
            | Screen::Changes(_)
            | Screen::Prompt(_)
            | Screen::PromptCalls(_) => None,
        });
        let Some(transcript) = transcript else { return };
        if chat.tentative {
            transcript.tail = None;
            transcript.boxes.clear();
            return;
        }
        let width = transcript.width;
        for open in &chat.state.questions {
            if let Some(pane) = chat.questions.get_mut(&open.id) {
                question_layout::lay_out_subject(open, pane, width);
            }
        }
        let mut boxes = rustc_hash::FxHashMap::default();
        let mut inline = Vec::new();
        for entry in transcript.entries.iter().filter(|entry| entry.is_open()) {
            let calls = entry.parts().iter().filter_map(|part| part.call.as_ref());
            let questions = calls.filter_map(|call| chat.question_about(call));
            let mut shown = QuestionBox::default();
            for open in questions {
                let Some(pane) = chat.questions.get(&open.id) else { continue };
                shown.omits |= question_layout::omits_subject(open);
                shown.add(question_layout::question(chat, open, pane, width));
            }
            if !shown.questions.is_empty() {
                inline.extend(shown.questions.iter().map(|placed| placed.id.clone()));
                boxes.insert(entry.key, shown);
            }
        }
        transcript.boxes = boxes;
        let hidden = inline.iter().filter(|id| !transcript.shows_question(id)).cloned().collect();
        let inline = layout::InlineQuestions { shown: inline, hidden };
        transcript.tail = Some(Rc::new(layout::tail(chat, &inline, width, now)));
        transcript.settle();
    }

    /// A frame was drawn: the questions on it may be answered after a moment.
    pub fn note_drawn(&mut self, now: Instant) {
        // What is covered was not seen.
        if self.overlay.is_some() {
            return;
        }
        let Some(session) = self.visible_chat().map(|chat| chat.session) else { return };
        let Some(chat) = &mut self.chat else { return };
        let transcript = self.screens.last().and_then(|screen| match screen {
            Screen::Session(held) if held.session == session => Some(held),
            Screen::Session(_)
            | Screen::Search(_)
            | Screen::Changes(_)
            | Screen::Prompt(_)
            | Screen::PromptCalls(_) => None,
        });
        let Some(transcript) = transcript else { return };
        for open in &chat.state.questions {
            if let Some(pane) = chat.questions.get_mut(&open.id)
                && pane.drawn_at.is_none()
                && transcript.shows_question(&open.id)
            {
                pane.drawn_at = Some(now);
            }
        }
    }

    /// Scrolls to the composer.
    pub(super) fn show_composer(&mut self) -> Vec<Effect> {
        let following = self.transcript().is_some_and(|held| held.scroll.following);
        if following {
            return Vec::new();
        }
        self.query_from_transcript(TranscriptPane::go_to_end).into_iter().collect()
    }

    /// Scrolls to a question: to its chosen row, or to its start.
    pub(super) fn show_question(&mut self, id: &str) -> Vec<Effect> {
        self.lay_out_chat();
        let loaded = self.transcript_mut().is_some_and(|held| held.show_question(id));
        if loaded { Vec::new() } else { self.show_composer() }
    }

    /// The prompts of the loaded transcript, for the composer's history.
    pub(super) fn earlier_prompts(&self) -> Vec<String> {
        let entries = self.transcript().into_iter().flat_map(|held| &held.entries);
        let prompts = entries.filter_map(|entry| match &entry.content {
            EntryContent::User(blocks) => {
                let texts = blocks.iter().filter_map(|block| {
                    if let Block::Paragraph { spans } = block { Some(text_of(spans)) } else { None }
                });
                Some(texts.collect::<Vec<_>>().join("\n"))
            }
            EntryContent::Head(_)
            | EntryContent::Turn(..)
            | EntryContent::Item(_)
            | EntryContent::Foot(_) => None,
        });
        prompts.filter(|text| !text.trim().is_empty()).collect()
    }

    /// Has the host keep the draft when its time has come.
    pub(super) fn chat_due(&mut self) -> Vec<Effect> {
        let now = self.now;
        let Some(chat) = &mut self.chat else { return Vec::new() };
        if chat.draft_due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        let link = chat.link;
        chat.keep_drafts().into_iter().map(|effect| Effect::Chat(link, effect)).collect()
    }

    /// Looks for the chat of a session that has become visible.
    pub(super) fn find_visible_chat(&mut self) -> Vec<Effect> {
        let visible = self.transcript().map(|held| held.session);
        if std::mem::replace(&mut self.shown_session, visible) == visible {
            return Vec::new();
        }
        visible.map(|session| self.find_chat(session)).unwrap_or_default()
    }

    /// The last effects before the application ends.
    pub(super) fn quit(&mut self) -> Vec<Effect> {
        let mut effects = self.leave_chat();
        effects.push(Effect::Quit);
        effects
    }
}
