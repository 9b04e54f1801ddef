//! Keys of a chat: in the composer, in a question, in the queue.
//!
//! A question never takes the focus by itself, and a key that was read before the question was on
//! the screen is typing (R-X-10).

// Each place handles some of the keys and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_live::protocol::{Command, Phase, UserAnswer};

use super::{Effect, State};
use crate::chat::composer::ComposerKey;
use crate::chat::question::QuestionKey;
use crate::chat::{ChatEffect, Focus};

impl State {
    /// Handles a key of the visible chat. None if the key is one of the transcript.
    pub(super) fn press_in_chat(&mut self, key: KeyEvent, read: Instant) -> Option<Vec<Effect>> {
        let chat = self.visible_chat()?;
        let (focus, answers_only) = (chat.focus.clone(), chat.state.answers_only);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, &focus) {
            (KeyCode::Tab, Focus::Composer) if self.has_completion() => {}
            (KeyCode::Tab, _) => return Some(self.move_focus(read)),
            // There is no composer, and nothing to interrupt.
            (_, Focus::Transcript) if answers_only => return None,
            (KeyCode::BackTab, _) => return Some(self.next_mode()),
            (KeyCode::Char('c'), Focus::Question(id)) if control => {
                return Some(self.answer(&id.clone(), UserAnswer::Decline));
            }
            (KeyCode::Char('c'), Focus::Transcript) if control => {
                let phase = self.visible_chat()?.state.phase;
                return matches!(phase, Phase::Running | Phase::Cancelling)
                    .then(|| self.interrupt());
            }
            (KeyCode::Char('c'), _) if control => return Some(self.interrupt()),
            (KeyCode::PageUp | KeyCode::PageDown, _) => return None,
            (KeyCode::Char('l' | 'z'), _) if control => return None,
            (KeyCode::Char('i'), Focus::Transcript) if !control => {
                self.focus_on(Focus::Composer);
                return Some(self.show_composer());
            }
            _ => {}
        }
        match focus {
            Focus::Transcript => None,
            Focus::Composer => Some(self.press_in_composer(key, read)),
            Focus::Question(id) => Some(self.press_in_question(&id, key, read)),
            Focus::Queue(id) => Some(self.press_in_queue(id, key)),
        }
    }

    /// Takes what was pasted. A paste never answers a question.
    pub(super) fn paste_in_chat(&mut self, text: &str) -> Option<Vec<Effect>> {
        let focus = self.visible_chat()?.focus.clone();
        let now = self.now;
        let chat = self.chat.as_mut()?;
        match focus {
            Focus::Composer => {
                chat.composer.paste(text);
                chat.edited(now);
                return Some(self.show_composer());
            }
            Focus::Question(id) => {
                let open = chat.question(&id)?.clone();
                let pane = chat.questions.get_mut(&id)?;
                if pane.paste(&open, text) {
                    let draft = pane.draft().to_owned();
                    chat.answer_typed(&id, &draft, now);
                }
            }
            Focus::Transcript | Focus::Queue(_) => {}
        }
        Some(Vec::new())
    }

    fn has_completion(&self) -> bool {
        self.chat.as_ref().is_some_and(|chat| chat.composer.completion.is_some())
    }

    fn focus_on(&mut self, focus: Focus) {
        if let Some(chat) = &mut self.chat {
            chat.focus = focus;
        }
    }

    pub(super) fn send_command(&mut self, command: Command) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let effect = chat.command(command);
        vec![Effect::Chat(chat.link, effect)]
    }

    /// Goes to the next question, the queue, or the composer.
    fn move_focus(&mut self, read: Instant) -> Vec<Effect> {
        let Some(chat) = &self.chat else { return Vec::new() };
        let next = chat.next_focus();
        if let Focus::Question(id) = &next {
            // It came while the key was pressed for something else.
            if !chat.questions.get(id).is_some_and(|pane| pane.is_reachable(read)) {
                return Vec::new();
            }
            let id = id.clone();
            self.focus_on(next);
            return self.show_question(&id);
        }
        let is_transcript = next == Focus::Transcript;
        self.focus_on(next);
        if is_transcript { Vec::new() } else { self.show_composer() }
    }

    fn press_in_composer(&mut self, key: KeyEvent, read: Instant) -> Vec<Effect> {
        let now = self.now;
        let is_enter = key.code == KeyCode::Enter;
        if self.chat.as_mut().is_some_and(|chat| chat.is_meant_elsewhere(is_enter, read)) {
            self.set_status("enter again sends the message");
            return Vec::new();
        }
        let width = self.transcript().map_or(1, |held| held.width.saturating_sub(4).max(1));
        if key.code == KeyCode::Esc {
            return self.leave_composer();
        }
        if key.code == KeyCode::Up {
            let earlier = self.earlier_prompts();
            if let Some(chat) = &mut self.chat {
                chat.composer.add_earlier(earlier);
            }
        }
        let Some(chat) = &mut self.chat else { return Vec::new() };
        match chat.composer.press(key, width) {
            ComposerKey::Ignored => Vec::new(),
            ComposerKey::Submitted => self.submit(false),
            ComposerKey::SubmittedAtOnce => self.submit(true),
            ComposerKey::Changed => {
                chat.edited(now);
                let (link, folder) = (chat.link, chat.state.folder.clone());
                let named = std::mem::replace(&mut chat.names_file, chat.composer.wants_files());
                let mut effects = Vec::new();
                // Anew for each word: the agent makes files meanwhile.
                if chat.names_file && !named && folder.is_absolute() {
                    effects.push(Effect::Chat(link, ChatEffect::ListFiles(folder)));
                }
                effects.extend(self.show_composer());
                effects
            }
        }
    }

    fn leave_composer(&mut self) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        if chat.composer.close_completion() {
            return Vec::new();
        }
        if let Some((_, draft)) = chat.editing.take() {
            chat.composer.set(&draft);
            return Vec::new();
        }
        chat.focus = Focus::Transcript;
        let link = chat.link;
        chat.keep_drafts().into_iter().map(|effect| Effect::Chat(link, effect)).collect()
    }

    /// Enter in the composer, or the key that does not wait for the end of the turn.
    fn submit(&mut self, at_once: bool) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let typed = chat.composer.field.text().trim().to_owned();
        if chat.is_over() {
            let text = chat.composer.take();
            return self.restart_chat(Some(text).filter(|text| !text.trim().is_empty()));
        }
        if typed.is_empty() {
            let held = chat.state.held.is_some();
            return if held { self.send_command(Command::Release) } else { Vec::new() };
        }
        if !chat.is_attached() {
            self.set_status("the agent is still starting; press enter again in a moment");
            return Vec::new();
        }
        let mut words = typed.split_whitespace();
        let (name, rest) = (words.next().unwrap_or_default(), words.next());
        match (name, rest) {
            ("/clear" | "/end" | "/mode" | "/model", _) if chat.editing.is_none() => {
                return self.run_command(name, rest);
            }
            _ => {}
        }
        let text = chat.composer.take();
        let command = match chat.editing.take() {
            Some((message, draft)) => {
                chat.composer.set(&draft);
                Command::Edit { message, text }
            }
            None => Command::Prompt { text, images: Vec::new(), at_once },
        };
        let mut effects = self.send_command(command);
        effects.extend(self.show_composer());
        effects
    }

    /// A command of the chat itself. It is no message, and no draft either.
    fn run_command(&mut self, name: &str, argument: Option<&str>) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        chat.composer.take();
        let link = chat.link;
        let kept = chat.keep_drafts();
        let mut effects: Vec<Effect> =
            kept.into_iter().map(|effect| Effect::Chat(link, effect)).collect();
        effects.extend(match name {
            "/clear" => self.send_command(Command::Clear),
            "/end" => self.send_command(Command::End),
            category => self.choose_option(category.trim_start_matches('/'), argument),
        });
        effects
    }

    /// Ctrl-C outside a question: interrupts the agent, or clears the composer, or quits.
    fn interrupt(&mut self) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        match chat.state.phase {
            _ if chat.lost.is_some() => self.quit(),
            Phase::Running => self.send_command(Command::Cancel),
            Phase::Cancelling if chat.state.stuck => self.send_command(Command::End),
            Phase::Cancelling => {
                self.set_status("the agent is stopping; after 10 seconds ctrl-c ends it");
                Vec::new()
            }
            Phase::Starting | Phase::Idle | Phase::Ended => {
                if chat.composer.field.is_empty() {
                    return self.quit();
                }
                // Up brings it back.
                chat.composer.take();
                if let Some((_, draft)) = chat.editing.take() {
                    chat.composer.set(&draft);
                }
                chat.edited(self.now);
                Vec::new()
            }
        }
    }

    fn press_in_question(&mut self, id: &str, key: KeyEvent, read: Instant) -> Vec<Effect> {
        let now = self.now;
        if key.code == KeyCode::Esc {
            if let Some(chat) = &mut self.chat {
                chat.leave_question(now);
            }
            return Vec::new();
        }
        // What is answered is on the screen.
        let visible = self.transcript().is_some_and(|held| held.shows_chosen_row(id));
        if key.code == KeyCode::Enter && !visible {
            return self.show_question(id);
        }
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let Some(open) = chat.question(id).cloned() else { return Vec::new() };
        let Some(pane) = chat.questions.get_mut(id) else { return Vec::new() };
        if !pane.accepts(read) {
            return Vec::new();
        }
        match pane.press(&open, key) {
            QuestionKey::Ignored => Vec::new(),
            QuestionKey::Changed => self.show_question(id),
            QuestionKey::Typed => {
                let text = pane.draft().to_owned();
                chat.answer_typed(id, &text, now);
                self.show_question(id)
            }
            QuestionKey::Answer(answer) => self.answer(id, answer),
            QuestionKey::Discuss => {
                let effects = self.answer(id, UserAnswer::Discuss);
                self.set_status("refused; what you write now is the next message");
                effects
            }
            QuestionKey::Refused(why) => {
                self.set_status(why);
                Vec::new()
            }
        }
    }

    fn answer(&mut self, question: &str, answer: UserAnswer) -> Vec<Effect> {
        let now = self.now;
        let mut effects = Vec::new();
        if let Some(chat) = &mut self.chat {
            let reason = chat.questions.get_mut(question).and_then(|pane| {
                pane.answered = true;
                pane.reason.as_ref().map(|reason| reason.text().to_owned())
            });
            // What the agent is told if this is a refusal. Own words of a form are not that.
            if let Some(text) = reason {
                chat.forget_answer_draft();
                let draft = Command::Draft { question: Some(question.to_owned()), text };
                effects.push(Effect::Chat(chat.link, chat.command(draft)));
            }
            chat.leave_question(now);
        }
        effects
            .extend(self.send_command(Command::Answer { question: question.to_owned(), answer }));
        effects
    }

    fn press_in_queue(&mut self, id: u64, key: KeyEvent) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let queue = &chat.state.queue;
        let Some(at) = queue.iter().position(|message| message.id == id) else { return Vec::new() };
        let Some(message) = queue.get(at).cloned() else { return Vec::new() };
        let last = queue.len().saturating_sub(1);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Esc => chat.focus = Focus::Composer,
            KeyCode::Up | KeyCode::Down => {
                let down = key.code == KeyCode::Down;
                let target = if down { (at + 1).min(last) } else { at.saturating_sub(1) };
                if alt && target != at {
                    return self
                        .send_command(Command::Move { message: message.id, position: target });
                }
                if let Some(next) = queue.get(target).map(|message| message.id) {
                    chat.focus = Focus::Queue(next);
                }
            }
            KeyCode::Enter => {
                let draft = chat.composer.field.clear();
                chat.composer.set(&message.text);
                chat.editing = Some((message.id, draft));
                chat.focus = Focus::Composer;
            }
            KeyCode::Delete | KeyCode::Backspace => {
                // Taken back means back in the composer, behind what is there.
                let typed = chat.composer.field.text();
                let text = match typed.is_empty() {
                    true => message.text,
                    false => format!("{typed}\n{}", message.text),
                };
                chat.composer.set(&text);
                chat.edited(self.now);
                let queue = &chat.state.queue;
                let next = queue.get(at + 1).or_else(|| queue.get(at.wrapping_sub(1)));
                chat.focus = next.map_or(Focus::Composer, |next| Focus::Queue(next.id));
                return self.send_command(Command::Remove { message: message.id });
            }
            _ => {}
        }
        Vec::new()
    }

    /// A click below the last entry or on a question gives it the focus.
    pub(super) fn click_in_chat(&mut self, entry: usize, line: usize) -> bool {
        let now = self.now;
        let Some(transcript) = self.transcript() else { return false };
        let key = transcript.entries.get(entry).map(|entry| entry.key);
        let question = transcript.question_at(entry, line);
        let in_tail = key.is_none();
        let Some(chat) = self.visible_chat() else { return false };
        let ready = |id: &String| chat.questions.get(id).is_some_and(|pane| pane.accepts(now));
        match question.filter(ready) {
            Some(id) => self.focus_on(Focus::Question(id)),
            None if in_tail && !chat.state.answers_only => self.focus_on(Focus::Composer),
            None => return false,
        }
        true
    }
}
