//! Keys of a chat: in the composer, in a question, in the queue.
//!
//! A question never takes the focus by itself, and a key that was read before the question was on
//! the screen is typing (R-X-10).

// Each place handles some of the keys and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_live::protocol::{Command, Phase, UserAnswer};

use super::{Effect, Overlay, State};
use crate::chat::composer::ComposerKey;
use crate::chat::question::QuestionKey;
use crate::chat::{ChatEffect, Focus};
use crate::keys::Action;

impl State {
    /// Handles a key of the visible chat. None if the key is one of the transcript.
    pub(super) fn press_in_chat(&mut self, key: KeyEvent, read: Instant) -> Option<Vec<Effect>> {
        let focus = self.visible_chat()?.focus.clone();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, &focus) {
            (KeyCode::Tab, Focus::Composer) if self.has_completion() => {}
            (KeyCode::Tab, _) => return Some(self.move_focus(read)),
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
            Focus::Composer => Some(self.press_in_composer(key)),
            Focus::Question(id) => Some(self.press_in_question(&id, key, read)),
            Focus::Queue(at) => Some(self.press_in_queue(at, key)),
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
                pane.paste(&open, text);
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

    fn send(&mut self, command: Command) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let effect = chat.command(command);
        vec![Effect::Chat(chat.link, effect)]
    }

    /// Goes to the next question, the queue, or the composer.
    fn move_focus(&mut self, read: Instant) -> Vec<Effect> {
        let Some(chat) = &self.chat else { return Vec::new() };
        let next = chat.next_focus();
        if let Focus::Question(id) = &next {
            // The question came while the key was pressed for something else, unless it is hidden:
            // then the key leads to it.
            let drawn = chat.questions.get(id).is_none_or(|pane| pane.drawn_at.is_some());
            let fresh = chat.questions.get(id).is_some_and(|pane| !pane.accepts(read));
            if drawn && fresh {
                return Vec::new();
            }
            let id = id.clone();
            self.focus_on(next);
            return self.show_question(&id);
        }
        self.focus_on(next);
        self.show_composer()
    }

    fn press_in_composer(&mut self, key: KeyEvent) -> Vec<Effect> {
        let now = self.now;
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
            ComposerKey::Submitted => self.submit(),
            ComposerKey::Changed => {
                chat.edited(now);
                let (link, folder) = (chat.link, chat.state.folder.clone());
                let lists = chat.composer.wants_files() && chat.files.is_none();
                let mut effects = Vec::new();
                if lists {
                    chat.files = Some(Vec::new());
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
        if chat.editing.take().is_some() {
            chat.composer.field.clear();
            return Vec::new();
        }
        chat.focus = Focus::Transcript;
        let link = chat.link;
        chat.keep_draft().map(|effect| Effect::Chat(link, effect)).into_iter().collect()
    }

    /// Enter in the composer.
    fn submit(&mut self) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let typed = chat.composer.field.text().trim().to_owned();
        if chat.is_over() {
            let text = chat.composer.take();
            return self.restart_chat(Some(text).filter(|text| !text.trim().is_empty()));
        }
        if typed.is_empty() {
            let held = chat.state.held.is_some();
            return if held { self.send(Command::Release) } else { Vec::new() };
        }
        if !chat.is_attached() {
            self.set_status("the agent's host is starting; press enter again in a moment");
            return Vec::new();
        }
        let mut words = typed.split_whitespace();
        let (name, rest) = (words.next().unwrap_or_default(), words.next());
        match (name, rest) {
            ("/clear", None) => {
                chat.composer.take();
                return self.send(Command::Clear);
            }
            ("/end", None) => {
                chat.composer.take();
                return self.send(Command::End);
            }
            ("/mode" | "/model", value) => {
                let (category, value) = (name.trim_start_matches('/').to_owned(), value);
                let value = value.map(str::to_owned);
                chat.composer.take();
                return self.choose_option(&category, value.as_deref());
            }
            _ => {}
        }
        let text = chat.composer.take();
        let command = match chat.editing.take() {
            Some(message) => Command::Edit { message, text },
            None => Command::Prompt { text },
        };
        let mut effects = self.send(command);
        effects.extend(self.show_composer());
        effects
    }

    /// Ctrl-C outside a question: interrupts the agent, or clears the composer, or quits.
    fn interrupt(&mut self) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        match chat.state.phase {
            _ if chat.lost.is_some() => self.quit(),
            Phase::Running => self.send(Command::Cancel),
            Phase::Cancelling if chat.state.stuck => self.send(Command::End),
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
                chat.editing = None;
                chat.edited(self.now);
                Vec::new()
            }
        }
    }

    fn press_in_question(&mut self, id: &str, key: KeyEvent, read: Instant) -> Vec<Effect> {
        if key.code == KeyCode::Esc {
            self.focus_on(Focus::Composer);
            return Vec::new();
        }
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let Some(open) = chat.question(id).cloned() else { return Vec::new() };
        let Some(pane) = chat.questions.get_mut(id) else { return Vec::new() };
        if !pane.accepts(read) {
            return Vec::new();
        }
        match pane.press(&open, key) {
            QuestionKey::Changed | QuestionKey::Ignored => Vec::new(),
            QuestionKey::Typed => {
                let text = pane.draft().to_owned();
                self.send(Command::Draft { question: Some(id.to_owned()), text })
            }
            QuestionKey::Answer(answer) => self.answer(id, answer),
            QuestionKey::Discuss(answer) => {
                let effects = self.answer(id, answer);
                self.focus_on(Focus::Composer);
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
        self.send(Command::Answer { question: question.to_owned(), answer })
    }

    fn press_in_queue(&mut self, at: usize, key: KeyEvent) -> Vec<Effect> {
        let Some(chat) = &mut self.chat else { return Vec::new() };
        let Some(message) = chat.state.queue.get(at).cloned() else { return Vec::new() };
        let last = chat.state.queue.len() - 1;
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Esc => chat.focus = Focus::Composer,
            KeyCode::Up | KeyCode::Down => {
                let down = key.code == KeyCode::Down;
                let target = if down { (at + 1).min(last) } else { at.saturating_sub(1) };
                chat.focus = Focus::Queue(target);
                if alt && target != at {
                    return self.send(Command::Move { message: message.id, position: target });
                }
            }
            KeyCode::Enter => {
                chat.composer.set(&message.text);
                chat.editing = Some(message.id);
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
                return self.send(Command::Remove { message: message.id });
            }
            _ => {}
        }
        Vec::new()
    }

    /// Shift-Tab: the next mode of the agent.
    fn next_mode(&mut self) -> Vec<Effect> {
        let Some(mode) = self.chat.as_ref().and_then(|chat| chat.option("mode")) else {
            self.set_status("this agent has no modes");
            return Vec::new();
        };
        let at = mode.choices.iter().position(|choice| choice.value == mode.value);
        let next = at.map_or(0, |at| (at + 1) % mode.choices.len().max(1));
        let Some(choice) = mode.choices.get(next) else { return Vec::new() };
        let (option, value) = (mode.id.clone(), choice.value.clone());
        let name = choice.name.clone();
        self.set_status(format!("mode: {name}"));
        self.send(Command::Set { option, value })
    }

    /// `/mode` and `/model`: sets by name, or shows the choices.
    fn choose_option(&mut self, category: &str, name: Option<&str>) -> Vec<Effect> {
        let option = self.chat.as_ref().and_then(|chat| chat.option(category)).cloned();
        let Some(option) = option else {
            self.set_status(format!("this agent offers no {category}s"));
            return Vec::new();
        };
        let Some(name) = name else {
            let current = option.choices.iter().position(|choice| choice.value == option.value);
            self.overlay = Some(Overlay::Option { at: current.unwrap_or(0), option });
            return Vec::new();
        };
        let lower = name.to_lowercase();
        let named = option.choices.iter().find(|choice| {
            choice.name.to_lowercase() == lower || choice.value.as_str() == Some(name)
        });
        match named {
            Some(choice) => {
                let value = choice.value.clone();
                self.send(Command::Set { option: option.id, value })
            }
            None => {
                self.set_status(format!("✕ there is no {category} {name}; /{category} lists them"));
                Vec::new()
            }
        }
    }

    /// A key while the choices of an option are shown.
    pub(super) fn press_in_option(
        &mut self,
        option: unspool_live::protocol::AgentOption,
        at: usize,
        key: KeyEvent,
    ) -> Vec<Effect> {
        let last = option.choices.len().saturating_sub(1);
        let at = match self.keys.action(key) {
            Some(Action::Down) => (at + 1).min(last),
            Some(Action::Up) => at.saturating_sub(1),
            Some(Action::Open) => {
                let Some(choice) = option.choices.get(at) else { return Vec::new() };
                let value = choice.value.clone();
                return self.send(Command::Set { option: option.id, value });
            }
            _ => return Vec::new(),
        };
        self.overlay = Some(Overlay::Option { option, at });
        Vec::new()
    }

    /// A click below the last entry or on a question gives it the focus.
    pub(super) fn click_in_chat(&mut self, entry: usize) -> bool {
        let now = self.now;
        let Some(transcript) = self.transcript() else { return false };
        let key = transcript.entries.get(entry).map(|entry| entry.key);
        let shown = key.and_then(|key| transcript.boxes.get(&key));
        let question = shown.and_then(|shown| shown.questions.first()).cloned();
        let in_tail = key.is_none();
        let Some(chat) = self.visible_chat() else { return false };
        let ready = |id: &String| chat.questions.get(id).is_some_and(|pane| pane.accepts(now));
        match question.filter(ready) {
            Some(id) => self.focus_on(Focus::Question(id)),
            None if in_tail => self.focus_on(Focus::Composer),
            None => return false,
        }
        true
    }
}
