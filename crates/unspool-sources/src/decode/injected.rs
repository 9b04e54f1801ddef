//! Text that an agent puts into messages of the user for the model: reminders, the output of hooks,
//! what an editor shows. They are no words of the user. `WRAPPERS` is the one table of their forms;
//! `separate` cuts them out of a message and keeps them in their places as context.
//!
//! A wrapper counts only where its agent puts it: at an edge of a text, on lines of its own, and
//! complete. The same tag in a sentence of the user stays the user's.

use unspool_model::part::{Body, ContextInfo, Text};

/// Where an agent puts a wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Before the user's words, or after them.
    Edge,
    /// The whole of a text.
    Whole,
    /// Around the user's words, which are what it holds.
    Around,
}

/// The form of a text that an agent writes.
struct Wrapper {
    agents: &'static [&'static str],
    opens: &'static str,
    closes: &'static str,
    place: Place,
    /// What the user sees as the title of the context.
    title: &'static str,
}

const fn wrapper(
    agents: &'static [&'static str],
    opens: &'static str,
    closes: &'static str,
    place: Place,
    title: &'static str,
) -> Wrapper {
    Wrapper { agents, opens, closes, place, title }
}

const CLAUDE: &str = "claude-code";
const CLINE: &str = "cline";
const CODEX: &str = "codex";
const DROID: &str = "droid";
const GEMINI: &str = "gemini";
const KILO: &str = "kilo";
const OPENCODE: &str = "opencode";
const QWEN: &str = "qwen";

/// Most were seen in recordings, or in the programs of the agents. Cline's, the editor context of
/// Claude Code and Codex, and Codex's `<user_instructions>` were not: those agents' editor extensions
/// and earlier versions are known to write them.
const WRAPPERS: &[Wrapper] = {
    use Place::{Around, Edge, Whole};
    const HOOK: &str = "Hook context";
    const REMINDER: &str = "Reminder";
    const EDITOR: &str = "Editor context";
    const FILES: &str = "Referenced files";
    &[
        wrapper(
            &[CLAUDE, DROID, OPENCODE, KILO, QWEN],
            "<system-reminder>",
            "</system-reminder>",
            Edge,
            REMINDER,
        ),
        wrapper(&[CLAUDE], "<ide_opened_file>", "</ide_opened_file>", Edge, EDITOR),
        wrapper(&[CLAUDE], "<ide_selection>", "</ide_selection>", Edge, EDITOR),
        wrapper(&[CLAUDE], "<ide_diagnostics>", "</ide_diagnostics>", Edge, EDITOR),
        // What an editor attached over the Agent Client Protocol.
        wrapper(&[CLAUDE], "<context ref=\"", "</context>", Whole, EDITOR),
        wrapper(&[CLAUDE], "<mcp-resource ", "</mcp-resource>", Whole, "MCP resource"),
        wrapper(&[CLAUDE], "<system-notification>", "</system-notification>", Whole, REMINDER),
        wrapper(&[CLAUDE], "<session-start-hook>", "</session-start-hook>", Edge, HOOK),
        wrapper(&[CLAUDE], "<user-prompt-submit-hook>", "</user-prompt-submit-hook>", Edge, HOOK),
        // Codex in an editor: the words follow the second heading.
        wrapper(&[CODEX], "# Context from my IDE setup:", "## My request for Codex:", Edge, EDITOR),
        wrapper(&[CODEX], "<environment_context>", "</environment_context>", Whole, "Environment"),
        wrapper(&[CODEX], "<user_instructions>", "</user_instructions>", Whole, "Instructions"),
        wrapper(&[CODEX], "# AGENTS.md instructions", "</INSTRUCTIONS>", Whole, "Instructions"),
        wrapper(&[CODEX], "<turn_aborted>", "</turn_aborted>", Whole, REMINDER),
        wrapper(&[CODEX], "<skill>", "</skill>", Whole, "Skill"),
        wrapper(
            &[CODEX],
            "<subagent_notification>",
            "</subagent_notification>",
            Whole,
            "Sub-agent",
        ),
        wrapper(&[GEMINI], "<hook_context>", "</hook_context>", Edge, HOOK),
        wrapper(&[GEMINI], "<session_context>", "</session_context>", Edge, "Session context"),
        wrapper(
            &[GEMINI, QWEN],
            "Here is the user's editor context as a JSON object.",
            "\n```",
            Whole,
            EDITOR,
        ),
        wrapper(
            &[GEMINI, QWEN],
            "--- Content from referenced files ---",
            "--- End of content ---",
            Edge,
            FILES,
        ),
        wrapper(
            &[QWEN],
            "<qwen:user-prompt-submit-context>",
            "</qwen:user-prompt-submit-context>",
            Whole,
            HOOK,
        ),
        wrapper(&[CLINE], "<environment_details>", "</environment_details>", Edge, "Environment"),
        wrapper(&[CLINE], "<file_content path=\"", "</file_content>", Edge, FILES),
        wrapper(&[CLINE], "<folder_content path=\"", "</folder_content>", Edge, FILES),
        wrapper(&[CLINE], "<task>", "</task>", Around, ""),
        wrapper(&[CLINE], "<feedback>", "</feedback>", Around, ""),
        wrapper(&[CLINE], "<user_message>", "</user_message>", Around, ""),
        wrapper(&[CLINE], "<answer>", "</answer>", Around, ""),
    ]
};

/// One piece of a text, in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece<'a> {
    /// The user's.
    Words(&'a str),
    /// What the agent wrote, with its tags, and its title.
    Injected(&'static str, &'a str),
}

/// Cuts what the agent wrote out of each text of a message, in order. A message without any stays as
/// it is.
pub(super) fn separate(agent: &str, user: Vec<Body>) -> Vec<Body> {
    let pieces = |body: Body| {
        let Body::Text(text) = body else { return vec![body] };
        bodies(agent, text)
    };
    user.into_iter().flat_map(pieces).collect()
}

/// The same for a message that is one text.
pub(super) fn separate_text(agent: &str, text: String) -> Vec<Body> {
    bodies(agent, Text { text, ..Text::default() })
}

fn bodies(agent: &str, text: Text) -> Vec<Body> {
    let pieces = split(agent, &text.text);
    if let [Piece::Words(words)] = pieces[..]
        && words.len() == text.text.len()
    {
        return vec![Body::Text(text)];
    }
    let body = |piece| match piece {
        Piece::Words(words) => Body::Text(Text { text: words.to_owned(), ..text.clone() }),
        Piece::Injected(title, text) => {
            let (title, text) = (title.to_owned(), text.to_owned());
            Body::ContextInfo(ContextInfo { title, text })
        }
    };
    pieces.into_iter().map(body).collect()
}

/// True if a message says nothing of the user's: everything in it is the agent's.
pub(super) fn is_injected(user: &[Body]) -> bool {
    !user.is_empty() && user.iter().all(|body| matches!(body, Body::ContextInfo(_)))
}

/// What the agent added to a message.
pub(super) fn contexts(user: &[Body]) -> Vec<Body> {
    user.iter().filter(|body| matches!(body, Body::ContextInfo(_))).cloned().collect()
}

/// True if a text begins like something that an agent injects. Titles that agents make of the first
/// prompt are cut, so their wrappers are not complete.
pub(super) fn begins_injected(text: &str) -> bool {
    let text = text.trim_start();
    let is_at_start = |wrapper: &Wrapper| text.starts_with(wrapper.opens);
    WRAPPERS.iter().filter(|wrapper| wrapper.place != Place::Around).any(is_at_start)
}

/// The pieces of a text, in order: what the agent put before the user's words, the words, and what
/// it put after them.
pub(super) fn split<'a>(agent: &str, text: &'a str) -> Vec<Piece<'a>> {
    let own = || WRAPPERS.iter().filter(|wrapper| wrapper.agents.contains(&agent));
    let mut rest = text;
    let mut before = Vec::new();
    while let Some((title, injected, left)) = own().find_map(|wrapper| wrapper.at_start(rest)) {
        before.push(Piece::Injected(title, injected));
        rest = left;
    }
    let mut after = Vec::new();
    while let Some((title, left, injected)) = own().find_map(|wrapper| wrapper.at_end(rest)) {
        after.push(Piece::Injected(title, injected));
        rest = left;
    }
    if let Some(words) = own().find_map(|wrapper| wrapper.around(rest)) {
        rest = words;
    }
    let is_cut = rest.len() < text.len();
    let words = if is_cut { rest.trim_matches(['\n', '\r']) } else { rest };
    let has_words = !words.trim().is_empty() || !is_cut;
    let words = has_words.then_some(Piece::Words(words));
    before.into_iter().chain(words).chain(after.into_iter().rev()).collect()
}

impl Wrapper {
    /// What the agent wrote at the start of a text, and the rest. The rest is on lines of its own.
    fn at_start<'a>(&self, text: &'a str) -> Option<(&'static str, &'a str, &'a str)> {
        let text = text.trim_start_matches(['\n', '\r']);
        if self.place == Place::Around || !text.starts_with(self.opens) {
            return None;
        }
        let (injected, rest) = text.split_at(self.end(text)?);
        let is_followed = rest.starts_with(['\n', '\r']) && self.place == Place::Edge;
        let is_it = rest.trim().is_empty() || is_followed;
        is_it.then_some((self.title, injected, rest))
    }

    /// The rest of a text, and what the agent wrote at its end.
    fn at_end<'a>(&self, text: &'a str) -> Option<(&'static str, &'a str, &'a str)> {
        let text = text.trim_end();
        if self.place != Place::Edge || !text.ends_with(self.closes) {
            return None;
        }
        let (rest, injected) = text.split_at(self.start(text)?);
        rest.ends_with('\n').then_some((self.title, rest, injected))
    }

    /// The user's words inside.
    fn around<'a>(&self, text: &'a str) -> Option<&'a str> {
        let text = text.trim();
        if self.place != Place::Around || !text.starts_with(self.opens) {
            return None;
        }
        let is_whole = self.end(text)? == text.len();
        is_whole.then(|| &text[self.opens.len()..text.len() - self.closes.len()])
    }

    /// Where a wrapper that opens the text is closed. What is read is read once, however deep tags
    /// are in each other.
    fn end(&self, text: &str) -> Option<usize> {
        let (mut at, mut depth) = (self.opens.len(), 1);
        loop {
            let inner = &text[at..];
            let close = inner.find(self.closes)?;
            depth += inner[..close].matches(self.opens).count();
            depth -= 1;
            at += close + self.closes.len();
            if depth == 0 {
                return Some(at);
            }
        }
    }

    /// Where a wrapper is opened that closes at the end of the text.
    fn start(&self, text: &str) -> Option<usize> {
        let (mut at, mut depth) = (text.len() - self.closes.len(), 1);
        loop {
            let open = text[..at].rfind(self.opens)?;
            depth += text[open + self.opens.len()..at].matches(self.closes).count();
            depth -= 1;
            at = open;
            if depth == 0 {
                return Some(at);
            }
        }
    }
}

#[cfg(test)]
#[path = "injected_tests.rs"]
mod tests;
