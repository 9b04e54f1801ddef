//! An independent reader of aider's chat history: what a person typed, the replies cut at their edit
//! blocks, what aider says became of edits and commands, and the tokens that it reports, rounded.

use unspool_model::part::ToolState;

use super::{Kind, Tokens};

const START: &str = "# aider chat started at ";
const REASONING: &str = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>";

#[derive(Default)]
pub struct RawChat {
    /// The lines of its prompts.
    pub prompts: Vec<String>,
    pub blocks: Vec<RawBlock>,
    /// Tokens sent and received.
    pub tokens: Tokens,
    /// Edits of the latest reply that aider has said nothing about, as places in `blocks`.
    proposed: Vec<(usize, String)>,
}

/// A text, or a call as its tool and what it is about.
pub struct RawBlock {
    pub kind: Kind,
    pub text: String,
    /// Of a call that aider says something about.
    pub state: Option<ToolState>,
    pub output: String,
}

/// The sessions of a history.
pub fn history(text: &str) -> Vec<RawChat> {
    let start = format!("\n{START}");
    let sections = text.split(&start).skip(1);
    sections.map(|section| chat(section.split_once('\n').unwrap().1)).collect()
}

fn chat(text: &str) -> RawChat {
    let (mut raw, mut edits_files) = (RawChat::default(), true);
    let lines: Vec<&str> = text.lines().collect();
    let (mut at, mut before) = (0, "");
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if let Some(prompt) = line.strip_prefix("#### ").and_then(|line| line.strip_suffix("  ")) {
            raw.prompt(prompt);
        } else if let Some(said) = line.strip_prefix('>').filter(|_| line.ends_with("  ")) {
            if said.contains(" edit format") && said.contains("odel: ") {
                edits_files = !said.contains(" with ask edit format");
            }
            raw.said(said.trim(), before);
            before = said.trim();
        } else if line.starts_with("> ") && at >= 2 && lines[at - 2].ends_with("  ") {
            // A message with several lines: only its last one ends with two spaces.
            let end = (at..lines.len()).find(|end| lines[*end].ends_with("  ")).unwrap();
            raw.failed(&lines[at - 1..=end].join("\n")[2..]);
            at = end + 1;
        } else if !line.is_empty() {
            // A reply, up to aider's next line.
            let is_own = |line: &&str| line.ends_with("  ") && line.starts_with(['>', '#']);
            let length = lines[at..].iter().position(is_own);
            let end = at + length.unwrap_or(lines.len() - at);
            raw.reply(&lines[at - 1..end].join("\n"), edits_files);
            at = end;
        }
    }
    raw
}

impl RawChat {
    fn prompt(&mut self, prompt: &str) {
        // The question of a command is written once more, without the command.
        let is_question = |typed: &&String| {
            typed.split_once(' ').is_some_and(|(command, rest)| command == "/ask" && rest == prompt)
        };
        if self.prompts.last().filter(is_question).is_some() {
            self.prompts.pop();
        }
        self.prompts.push(prompt.to_owned());
    }

    fn push(&mut self, kind: Kind, text: &str) {
        if !text.trim().is_empty() {
            let (text, state, output) = (text.trim().to_owned(), None, String::new());
            self.blocks.push(RawBlock { kind, text, state, output });
        }
    }

    fn reply(&mut self, reply: &str, edits_files: bool) {
        self.proposed.clear();
        let mut rest = reply;
        if let Some(inside) = rest.strip_prefix(&format!("<{REASONING}")) {
            let (reasoning, after) =
                inside.split_once(&format!("</{REASONING}")).unwrap_or((inside, ""));
            self.push(Kind::Reasoning, reasoning);
            rest = after;
        }
        while let Some(search) = rest.find("\n<<<<<<< SEARCH\n").filter(|_| edits_files) {
            // The two lines before it are the path and the opening fence.
            let (before, after) = rest.split_at(search);
            let fence = before.rfind('\n').unwrap();
            let path = before[..fence].rfind('\n').map_or(0, |newline| newline + 1);
            self.push(Kind::Text, &before[..path]);
            let name = before[path..fence].to_owned();
            self.push(Kind::Tool, &format!("edit {name}"));
            self.proposed.push((self.blocks.len() - 1, name));
            rest = after.split_once(">>>>>>> REPLACE\n```").unwrap().1;
        }
        self.push(Kind::Text, rest);
    }

    fn end(&mut self, path: &str, state: ToolState, output: &str) {
        let of_file = |(_, proposed): &(usize, String)| proposed == path;
        if !self.proposed.iter().any(of_file) {
            self.push(Kind::Tool, &format!("edit {path}"));
            self.proposed.push((self.blocks.len() - 1, path.to_owned()));
        }
        let (ended, open) = std::mem::take(&mut self.proposed).into_iter().partition(of_file);
        self.proposed = open;
        let ended: Vec<(usize, String)> = ended;
        for (at, _) in ended {
            self.blocks[at].state = Some(state);
            output.clone_into(&mut self.blocks[at].output);
        }
    }

    /// The edits of the reply: in each recording of it there is one, and it does not fit.
    fn failed(&mut self, message: &str) {
        if message.contains("SEARCH/REPLACE block") {
            for (at, _) in std::mem::take(&mut self.proposed) {
                self.blocks[at].state = Some(ToolState::Failed);
                message.clone_into(&mut self.blocks[at].output);
            }
        }
    }

    /// A line of aider, after another one.
    fn said(&mut self, line: &str, before: &str) {
        if let Some(path) = line.strip_prefix("Applied edit to ") {
            self.end(path, ToolState::Completed, line);
        } else if let Some(path) = line.strip_prefix("Skipping edits to ") {
            self.end(path, ToolState::Denied, line);
        } else if let Some(answer) = line.strip_prefix("Run shell command? ") {
            let is_yes = answer.ends_with(": y");
            self.push(Kind::Tool, &format!("shell {before}"));
            let state = if is_yes { ToolState::Completed } else { ToolState::Denied };
            self.blocks.last_mut().unwrap().state = Some(state);
        } else if let Some(rest) = line.strip_prefix("Tokens: ") {
            let of = |what: &str| count_before(rest, what).unwrap_or(0);
            self.tokens.input += of(" sent");
            self.tokens.output += of(" received");
        }
    }
}

/// The number before a word: `2.4k`, `98`, `1,024`.
fn count_before(text: &str, word: &str) -> Option<u64> {
    let number = text.split(word).next().filter(|_| text.contains(word))?;
    let number = number.rsplit(' ').next()?.replace(',', "");
    let (digits, scale) = match number.strip_suffix('k') {
        Some(digits) => (digits, 1000.0),
        None => (&*number, 1.0),
    };
    Some((digits.parse::<f64>().ok()? * scale).round() as u64)
}
