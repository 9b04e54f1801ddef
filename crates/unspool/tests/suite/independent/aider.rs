//! An independent reader of aider's chat history: what a person typed, and the tokens that aider
//! reports, rounded, after each reply.

use super::Tokens;

pub struct RawHistory {
    /// By session: the lines of its prompts.
    pub prompts: Vec<Vec<String>>,
    /// Tokens sent and received, by session.
    pub tokens: Vec<Tokens>,
}

pub fn history(text: &str) -> RawHistory {
    let mut raw = RawHistory { prompts: Vec::new(), tokens: Vec::new() };
    for line in text.lines() {
        if line.starts_with("# aider chat started at ") {
            raw.prompts.push(Vec::new());
            raw.tokens.push(Tokens::default());
        }
        // Lines of aider end with two spaces; those of a reply do not.
        let Some(line) = line.strip_suffix("  ") else { continue };
        if let Some(prompt) = line.strip_prefix("#### ") {
            let prompts = raw.prompts.last_mut().unwrap();
            // The question of a command is written once more, without the command.
            let is_question = |typed: &&String| {
                typed
                    .split_once(' ')
                    .is_some_and(|(command, rest)| command == "/ask" && rest == prompt)
            };
            if prompts.last().filter(is_question).is_some() {
                prompts.pop();
            }
            prompts.push(prompt.to_owned());
        }
        if let (Some(rest), Some(tokens)) = (line.strip_prefix("> Tokens: "), raw.tokens.last_mut())
        {
            let of = |what: &str| count_before(rest, what).unwrap_or(0);
            tokens.input += of(" sent");
            tokens.output += of(" received");
        }
    }
    raw
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
