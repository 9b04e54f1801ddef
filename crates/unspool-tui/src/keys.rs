//! Key bindings. Every action has a name, under which the configuration can give it other keys.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustc_hash::FxHashMap;
use thiserror::Error;

/// An action that can be bound to keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Up,
    Down,
    LineUp,
    LineDown,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Start,
    End,
    Open,
    Back,
    Close,
    Quit,
    Help,
    Filter,
    Search,
    NextHit,
    PreviousHit,
    NextPrompt,
    PreviousPrompt,
    NextError,
    PreviousError,
    NextEdit,
    PreviousEdit,
    NextNote,
    PreviousNote,
    Bookmark,
    Note,
    FoldKind,
    ExpandAll,
    CollapseAll,
    Agent,
    Group,
    Preview,
    Tag,
    Rename,
    Delete,
    CopyResume,
    CopyPart,
    Export,
    Replay,
    ReplayTurn,
    Everything,
    Changes,
    Findings,
    Prompt,
    OnlyNew,
    WhichCalls,
    Chat,
    Editor,
    NextSession,
    PreviousSession,
    Mouse,
    Redraw,
    Suspend,
}

/// Every action: its name, its default keys, and its description for the help.
#[rustfmt::skip]
pub const ACTIONS: &[(Action, &str, &str, &str)] = &[
    (Action::Down, "down", "j down", "next session, next part"),
    (Action::Up, "up", "k up", "previous session, previous part"),
    (Action::LineDown, "line-down", "ctrl-e", "scroll down by a line"),
    (Action::LineUp, "line-up", "ctrl-y", "scroll up by a line"),
    (Action::PageDown, "page-down", "space pagedown ctrl-f", "scroll down by a screen"),
    (Action::PageUp, "page-up", "b pageup ctrl-b", "scroll up by a screen"),
    (Action::HalfDown, "half-down", "ctrl-d", "scroll down by half a screen"),
    (Action::HalfUp, "half-up", "ctrl-u", "scroll up by half a screen"),
    (Action::Start, "start", "g home", "go to the start"),
    (Action::End, "end", "G end", "go to the end and follow the session"),
    (Action::Open, "open", "enter o", "open the session; open or close the part"),
    (Action::Back, "back", "esc h left", "back"),
    (Action::NextSession, "next-session", "J", "open the next session in the list"),
    (Action::PreviousSession, "previous-session", "K", "open the previous session in the list"),
    (Action::NextPrompt, "next-prompt", "]", "next prompt"),
    (Action::PreviousPrompt, "previous-prompt", "[", "previous prompt"),
    (Action::NextError, "next-error", "e", "next error"),
    (Action::PreviousError, "previous-error", "E", "previous error"),
    (Action::NextEdit, "next-edit", "d", "next edit"),
    (Action::PreviousEdit, "previous-edit", "D", "previous edit"),
    (Action::NextNote, "next-note", "u", "next note or bookmark"),
    (Action::PreviousNote, "previous-note", "U", "previous note or bookmark"),
    (Action::Bookmark, "bookmark", "B", "set or remove a bookmark on the turn or part"),
    (Action::Note, "note", "M", "write a note on the turn or part"),
    (Action::Filter, "find", "/", "filter the list; find in the session"),
    (Action::NextHit, "next-hit", "n", "next hit"),
    (Action::PreviousHit, "previous-hit", "N", "previous hit"),
    (Action::Search, "search", "s ctrl-k", "search in all sessions"),
    (Action::FoldKind, "fold-kind", "f", "open or close all parts of this kind"),
    (Action::ExpandAll, "expand-all", "+", "open everything"),
    (Action::CollapseAll, "collapse-all", "-", "close everything"),
    (Action::Everything, "everything", "ctrl-o", "go to the start and open everything"),
    (Action::Chat, "chat", "c", "chat with the agent: go on with this session"),
    (Action::Changes, "changes", "C", "show the files that the session changed"),
    (Action::Findings, "findings", "F", "list what went wrong in the session; enter opens it"),
    (Action::Prompt, "prompt", "r", "show what the model call of the part was sent; in a prompt, all calls"),
    (Action::OnlyNew, "only-new", "=", "in a prompt: only what the call before was not sent"),
    (Action::WhichCalls, "which-calls", "W", "in a prompt: list the calls that had the text of the piece"),
    (Action::Editor, "editor", "i", "open the changed file in your editor ($VISUAL, $EDITOR)"),
    (Action::Agent, "agent", "a right l", "open the session of the sub-agent"),
    (Action::Replay, "replay", "p", "replay the session"),
    (Action::ReplayTurn, "replay-turn", "P", "replay the turn"),
    (Action::Group, "group", "v", "group the list by project, by day or not at all"),
    (Action::Preview, "preview", "w", "show or hide the preview; in a session, the list of sessions"),
    (Action::CopyPart, "copy", "y", "copy the part as Markdown"),
    (Action::CopyResume, "copy-resume", "Y", "copy the command that resumes the session"),
    (Action::Export, "export", "x", "export the session to a Markdown file"),
    (Action::Tag, "tag", "t", "tag the session"),
    (Action::Rename, "rename", "R", "rename the session"),
    (Action::Delete, "delete", "X", "delete the session from the archive"),
    (Action::Mouse, "mouse", "m", "turn the mouse off or on, to select text in the terminal"),
    (Action::Redraw, "redraw", "ctrl-l", "redraw the screen"),
    (Action::Suspend, "suspend", "ctrl-z", "suspend"),
    (Action::Help, "help", "? f1", "this help"),
    (Action::Close, "close", "q", "back, and from the list: quit"),
    (Action::Quit, "quit", "ctrl-c", "quit"),
];

#[derive(Debug, Error, PartialEq, Eq)]
pub enum KeysError {
    #[error("there is no action {0:?}; press ? in `unspool` to list them")]
    Action(String),
    #[error(
        "cannot read {0:?} as a key; write j, G, ctrl-d, alt-x, enter, esc, space, up, pagedown or f1"
    )]
    Key(String),
}

/// The action of each key.
pub struct Keys(FxHashMap<(KeyCode, KeyModifiers), Action>);

impl Keys {
    /// The default keys, with overrides: names of actions with their keys.
    pub fn new(chosen: impl IntoIterator<Item = (String, Vec<String>)>) -> Result<Keys, KeysError> {
        let mut keys = FxHashMap::default();
        let mut overrides: FxHashMap<Action, Vec<String>> = FxHashMap::default();
        for (name, list) in chosen {
            let action = ACTIONS.iter().find(|action| action.1 == name);
            overrides.insert(action.ok_or(KeysError::Action(name))?.0, list);
        }
        for (action, _, defaults, _) in ACTIONS {
            if !overrides.contains_key(action) {
                for key in defaults.split(' ') {
                    keys.insert(parse(key)?, *action);
                }
            }
        }
        for (action, list) in overrides {
            for key in list {
                keys.insert(parse(&key)?, action);
            }
        }
        Ok(Keys(keys))
    }

    pub fn action(&self, key: KeyEvent) -> Option<Action> {
        self.0.get(&normalise(key.code, key.modifiers)).copied()
    }

    /// The keys of an action, for the help.
    pub fn of(&self, wanted: Action) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .iter()
            .filter(|(_, action)| **action == wanted)
            .map(|((code, modifiers), _)| name(*code, *modifiers))
            .collect();
        names.sort_by_key(|name| (name.chars().count(), name.to_lowercase(), name.clone()));
        names
    }
}

/// Drops Shift from a letter key: it is in the case of the letter.
fn normalise(code: KeyCode, modifiers: KeyModifiers) -> (KeyCode, KeyModifiers) {
    let kept = modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT);
    match code {
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::SHIFT) && c.is_ascii_lowercase() => {
            (KeyCode::Char(c.to_ascii_uppercase()), kept)
        }
        code => (code, kept),
    }
}

fn parse(text: &str) -> Result<(KeyCode, KeyModifiers), KeysError> {
    let wrong = || KeysError::Key(text.to_owned());
    let (modifiers, key) = match text.split_once('-') {
        Some(("ctrl", key)) if !key.is_empty() => (KeyModifiers::CONTROL, key),
        Some(("alt", key)) if !key.is_empty() => (KeyModifiers::ALT, key),
        _ => (KeyModifiers::NONE, text),
    };
    let named = [
        ("enter", KeyCode::Enter),
        ("esc", KeyCode::Esc),
        ("space", KeyCode::Char(' ')),
        ("tab", KeyCode::Tab),
        ("backspace", KeyCode::Backspace),
        ("up", KeyCode::Up),
        ("down", KeyCode::Down),
        ("left", KeyCode::Left),
        ("right", KeyCode::Right),
        ("home", KeyCode::Home),
        ("end", KeyCode::End),
        ("pageup", KeyCode::PageUp),
        ("pagedown", KeyCode::PageDown),
    ];
    if let Some((_, code)) = named.iter().find(|(name, _)| *name == key) {
        return Ok((*code, modifiers));
    }
    let mut letters = key.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Ok((KeyCode::Char(letter), modifiers));
    }
    let number = key.strip_prefix('f').and_then(|number| number.parse().ok());
    number.map(|number| (KeyCode::F(number), modifiers)).ok_or_else(wrong)
}

fn name(code: KeyCode, modifiers: KeyModifiers) -> String {
    let mut out = String::new();
    if modifiers.contains(KeyModifiers::CONTROL) {
        out.push_str("ctrl-");
    }
    if modifiers.contains(KeyModifiers::ALT) {
        out.push_str("alt-");
    }
    match code {
        KeyCode::Char(' ') => out.push_str("space"),
        KeyCode::Char(c) => out.push(c),
        KeyCode::F(number) => out.push_str(&format!("f{number}")),
        code => out.push_str(&format!("{code:?}").to_lowercase()),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn every_action_has_its_keys_and_no_key_has_two() {
        let mut seen: FxHashMap<(KeyCode, KeyModifiers), &str> = FxHashMap::default();
        for (action, name, keys, what) in ACTIONS {
            assert!(!what.is_empty());
            for key in keys.split(' ') {
                let other = seen.insert(parse(key).unwrap(), name);
                assert_eq!(other, None, "{key} of {name}");
            }
            assert!(!Keys::new([]).unwrap().of(*action).is_empty(), "{name}");
        }
    }

    /// docs/terminal.md has a row for every action.
    #[test]
    fn the_documentation_has_every_action_with_its_keys() {
        let page = include_str!("../../../docs/terminal.md");
        let rows = page.lines().skip_while(|line| !line.starts_with("| name | keys |")).skip(2);
        let documented: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
        let quoted = |keys: &str| keys.split(' ').map(|key| format!("`{key}`")).collect::<Vec<_>>();
        let expected: Vec<String> = ACTIONS
            .iter()
            .map(|(_, name, keys, what)| {
                format!("| `{name}` | {} | {what} |", quoted(keys).join(" "))
            })
            .collect();
        assert_eq!(documented, expected, "the table should be:\n{}", expected.join("\n"));
    }

    #[test]
    fn keys_can_be_chosen() {
        let chosen = [("open".to_owned(), vec!["ctrl-x".to_owned(), "G".to_owned()])];
        let keys = Keys::new(chosen).unwrap();
        let action = |code, modifiers| keys.action(press(code, modifiers));
        assert_eq!(action(KeyCode::Char('x'), KeyModifiers::CONTROL), Some(Action::Open));
        assert_eq!(action(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Action::Open));
        assert_eq!(action(KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(action(KeyCode::End, KeyModifiers::NONE), Some(Action::End));
        let wrong =
            |name: &str, key: &str| Keys::new([(name.to_owned(), vec![key.to_owned()])]).err();
        assert_eq!(wrong("opne", "x"), Some(KeysError::Action("opne".to_owned())));
        assert_eq!(wrong("open", "ctrl-"), Some(KeysError::Key("ctrl-".to_owned())));
        assert_eq!(wrong("open", "hyper"), Some(KeysError::Key("hyper".to_owned())));
    }
}
