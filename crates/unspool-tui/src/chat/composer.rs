//! The composer of a chat: its text, the messages that were sent before, and completion of commands
//! and files.

// Most keys mean nothing here.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_live::protocol::SlashCommand;

use crate::text_field::TextField;

/// The most completions that are shown.
pub const MAX_COMPLETIONS: usize = 6;

/// The commands of the chat itself. An agent's command of the same name is not reachable.
pub const OWN_COMMANDS: &[(&str, &str)] = &[
    ("clear", "begin a new session in this chat"),
    ("mode", "choose the agent's mode"),
    ("model", "choose the model"),
    ("end", "end the agent and this chat"),
];

#[derive(Debug, Default)]
pub struct Composer {
    pub field: TextField,
    /// Messages that were sent, oldest first.
    history: Vec<String>,
    /// The place in the history, and the text from before.
    browsing: Option<(usize, String)>,
    pub completion: Option<Completion>,
    /// A completion that the user closed does not open again for this text.
    closed_for: Option<String>,
}

/// Candidates for the word at the cursor.
#[derive(Debug)]
pub struct Completion {
    /// Where the word begins, with its `/` or `@`.
    from: usize,
    pub candidates: Vec<Candidate>,
    pub at: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub text: String,
    pub description: String,
}

/// What a key did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComposerKey {
    Changed,
    Submitted,
    /// Sent without waiting for the end of the turn.
    SubmittedAtOnce,
    /// The key means nothing here.
    Ignored,
}

impl Composer {
    pub fn set(&mut self, text: &str) {
        self.field = TextField::new(text);
        (self.browsing, self.completion) = (None, None);
    }

    /// Takes the text, and remembers it.
    pub fn take(&mut self) -> String {
        (self.browsing, self.completion, self.closed_for) = (None, None, None);
        let text = self.field.clear();
        self.remember(&text);
        text
    }

    pub fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
    }

    /// Messages of the session from before this chat, oldest first.
    pub fn add_earlier(&mut self, earlier: Vec<String>) {
        if self.history.is_empty() {
            self.history = earlier;
        }
    }

    pub fn press(&mut self, key: KeyEvent, width: usize) -> ComposerKey {
        let newline = KeyModifiers::ALT | KeyModifiers::SHIFT;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // Most terminals report no ctrl-enter.
            KeyCode::Enter | KeyCode::Char('s') if control => return ComposerKey::SubmittedAtOnce,
            KeyCode::Enter if key.modifiers.intersects(newline) => self.field.insert("\n"),
            KeyCode::Enter => {
                if self.accept_completion() {
                    return ComposerKey::Changed;
                }
                return ComposerKey::Submitted;
            }
            KeyCode::Tab if self.completion.is_some() => {
                self.accept_completion();
                return ComposerKey::Changed;
            }
            KeyCode::Up | KeyCode::Down => {
                let down = key.code == KeyCode::Down;
                if let Some(completion) = &mut self.completion {
                    completion.step(down);
                } else if !self.field.move_row(down, width) {
                    self.browse(down);
                }
                return ComposerKey::Changed;
            }
            _ if self.field.press(key) => {}
            _ => return ComposerKey::Ignored,
        }
        self.browsing = None;
        ComposerKey::Changed
    }

    pub fn paste(&mut self, text: &str) {
        self.field.insert(text);
        self.browsing = None;
    }

    /// Shows an older or newer message of the history.
    fn browse(&mut self, newer: bool) {
        let at = self.browsing.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let target = if newer { at + 1 } else { at.wrapping_sub(1) };
        if let Some(text) = self.history.get(target) {
            let typed = match self.browsing.take() {
                Some((_, typed)) => typed,
                None => self.field.text().to_owned(),
            };
            self.field = TextField::new(text);
            self.browsing = Some((target, typed));
        } else if target == self.history.len()
            && let Some((_, typed)) = self.browsing.take()
        {
            self.field = TextField::new(&typed);
        }
    }

    /// Finds candidates for the word at the cursor, after each change.
    pub fn complete(&mut self, commands: &[SlashCommand], files: &[String]) {
        let before = self.field.before_cursor();
        let start = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let word = before.get(start..).unwrap_or_default();
        let candidates = if let Some(name) = word.strip_prefix('/').filter(|_| start == 0) {
            commands_like(name, commands)
        } else if let Some(path) = word.strip_prefix('@') {
            files_like(path, files)
        } else {
            Vec::new()
        };
        let closed = self.closed_for.as_deref() == Some(before);
        // A word that is complete needs no help.
        let done = candidates.len() == 1 && candidates.iter().all(|one| one.text == word);
        if candidates.is_empty() || done || closed {
            self.completion = None;
            return;
        }
        let chosen = self.completion.as_ref().and_then(Completion::chosen).map(|one| &one.text);
        let at = candidates.iter().position(|one| Some(&one.text) == chosen).unwrap_or(0);
        self.completion = Some(Completion { from: start, candidates, at });
    }

    /// True while the word at the cursor names a file.
    pub fn wants_files(&self) -> bool {
        let before = self.field.before_cursor();
        before.rsplit(char::is_whitespace).next().is_some_and(|word| word.starts_with('@'))
    }

    pub fn close_completion(&mut self) -> bool {
        self.closed_for = Some(self.field.before_cursor().to_owned());
        self.completion.take().is_some()
    }

    fn accept_completion(&mut self) -> bool {
        let Some(completion) = self.completion.take() else { return false };
        let Some(candidate) = completion.chosen() else { return false };
        // A command that is typed in full is sent, not completed.
        if self.field.before_cursor().get(completion.from..) == Some(candidate.text.as_str()) {
            return false;
        }
        let with = format!("{} ", candidate.text);
        self.field.replace_before_cursor(completion.from, &with);
        true
    }
}

impl Completion {
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.at)
    }

    fn step(&mut self, down: bool) {
        let count = self.candidates.len().max(1);
        self.at = (self.at + if down { 1 } else { count - 1 }) % count;
    }
}

fn commands_like(name: &str, commands: &[SlashCommand]) -> Vec<Candidate> {
    let own = OWN_COMMANDS.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned()));
    let is_own = |name: &str| OWN_COMMANDS.iter().any(|(own, _)| *own == name);
    let theirs = commands.iter().filter(|command| !is_own(&command.name));
    let theirs = theirs.map(|command| (command.name.clone(), command.description.clone()));
    let all = own.chain(theirs);
    let lower = name.to_lowercase();
    let mut found: Vec<(bool, Candidate)> = all
        .filter(|(name, _)| name.to_lowercase().contains(&lower))
        .map(|(name, description)| {
            let begins = name.to_lowercase().starts_with(&lower);
            (!begins, Candidate { text: format!("/{name}"), description })
        })
        .collect();
    found.sort_by_key(|(later, _)| *later);
    found.into_iter().map(|(_, candidate)| candidate).take(MAX_COMPLETIONS * 4).collect()
}

/// Files whose path has the typed letters: those whose name begins with them first.
fn files_like(typed: &str, files: &[String]) -> Vec<Candidate> {
    let lower = typed.to_lowercase();
    let rank = |path: &String| {
        let path = path.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default();
        match () {
            () if name.starts_with(&lower) => Some(0),
            () if path.starts_with(&lower) => Some(1),
            () if path.contains(&lower) => Some(2),
            () => None,
        }
    };
    let mut found: Vec<(i32, usize, &String)> =
        files.iter().filter_map(|path| Some((rank(path)?, path.len(), path))).collect();
    found.sort();
    let candidate =
        |path: &String| Candidate { text: format!("@{path}"), description: String::new() };
    found.into_iter().map(|(_, _, path)| candidate(path)).take(MAX_COMPLETIONS * 4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn composer(text: &str) -> Composer {
        let mut composer = Composer::default();
        composer.set(text);
        composer
    }

    #[test]
    fn enter_submits_and_a_modified_enter_breaks_the_line() {
        let mut composer = composer("a");
        let alt = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
        assert_eq!(composer.press(alt, 20), ComposerKey::Changed);
        assert_eq!(composer.field.text(), "a\n");
        assert_eq!(composer.press(key(KeyCode::Enter), 20), ComposerKey::Submitted);
        assert_eq!(composer.take(), "a\n");
        assert!(composer.field.is_empty());
    }

    #[test]
    fn the_history_gives_back_what_was_typed() {
        let mut composer = Composer::default();
        composer.add_earlier(vec!["first".to_owned(), "second".to_owned()]);
        composer.set("typed");
        for (code, expected) in [
            (KeyCode::Up, "second"),
            (KeyCode::Up, "first"),
            (KeyCode::Up, "first"),
            (KeyCode::Down, "second"),
            (KeyCode::Down, "typed"),
            (KeyCode::Down, "typed"),
        ] {
            composer.press(key(code), 20);
            assert_eq!(composer.field.text(), expected);
        }
    }

    #[test]
    fn commands_are_completed_at_the_start_and_files_anywhere() {
        let commands =
            [SlashCommand { name: "compact".to_owned(), description: "shorten".to_owned() }];
        let files = ["src/main.rs".to_owned(), "docs/domain.md".to_owned()];
        let mut composer = composer("/c");
        composer.complete(&commands, &files);
        let names = |composer: &Composer| {
            let completion = composer.completion.as_ref();
            let candidates = completion.map(|completion| completion.candidates.clone());
            candidates.unwrap_or_default().into_iter().map(|one| one.text).collect::<Vec<_>>()
        };
        assert_eq!(names(&composer), ["/clear", "/compact"]);
        composer.press(key(KeyCode::Down), 20);
        assert_eq!(composer.press(key(KeyCode::Enter), 20), ComposerKey::Changed);
        assert_eq!(composer.field.text(), "/compact ");
        composer.complete(&commands, &files);
        assert!(composer.completion.is_none());
        // A command that is complete is submitted at once.
        composer.set("/compact");
        composer.complete(&commands, &files);
        assert_eq!(composer.press(key(KeyCode::Enter), 20), ComposerKey::Submitted);
        composer.set("see /c");
        composer.complete(&commands, &files);
        assert!(composer.completion.is_none());
        composer.set("see @main");
        assert!(composer.wants_files());
        composer.complete(&commands, &files);
        assert_eq!(names(&composer), ["@src/main.rs", "@docs/domain.md"]);
        composer.press(key(KeyCode::Tab), 20);
        assert_eq!(composer.field.text(), "see @src/main.rs ");
        // What was closed stays closed until the text changes.
        composer.set("@ma");
        composer.complete(&commands, &files);
        assert!(composer.close_completion());
        composer.complete(&commands, &files);
        assert!(composer.completion.is_none());
    }
}
