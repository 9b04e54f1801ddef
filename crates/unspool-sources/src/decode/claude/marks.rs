//! The marks that Claude Code puts into user messages: text that the program wrote under the user's
//! role. Each was seen in the versions that the fixtures name.

/// True for the text written when a person stops the model or a tool. No field flags it.
pub(super) fn is_interruption(text: &str) -> bool {
    text == "[Request interrupted by user]" || text == "[Request interrupted by user for tool use]"
}

/// The text between `<name>` and `</name>`.
pub(in crate::decode) fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.find(&format!("<{name}>"))? + name.len() + 2;
    let length = text[start..].find(&format!("</{name}>"))?;
    Some(&text[start..start + length])
}

/// The actual kind of a user message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark<'a> {
    Interruption,
    /// A slash command, as typed.
    Command(String),
    /// The output of a local command.
    CommandOutput(&'a str),
    /// A shell command typed after `!`.
    Shell(&'a str),
    ShellOutput {
        stdout: &'a str,
        stderr: &'a str,
    },
    /// A background agent or command reported.
    TaskNotification(&'a str),
    /// A hook refused to let the model stop.
    HookFeedback(&'a str),
    /// A note to the model that local commands follow.
    Caveat,
    None,
}

pub(super) fn mark(text: &str) -> Mark<'_> {
    let start = text.trim_start();
    if is_interruption(text) {
        Mark::Interruption
    } else if let Some(mark) = tagged(start) {
        mark
    } else if start.starts_with("Caveat: The messages below") {
        Mark::Caveat
    } else if let Some(feedback) = text.strip_prefix("Stop hook feedback:\n") {
        Mark::HookFeedback(feedback)
    } else {
        Mark::None
    }
}

/// The mark of a text that consists of tags of the program. A user who types one of these tags in a
/// sentence does not end it with a tag.
fn tagged(start: &str) -> Option<Mark<'_>> {
    let (first, _) = start.strip_prefix('<')?.split_once('>')?;
    if !start.trim_end().ends_with('>') {
        return None;
    }
    Some(match first {
        "command-name" | "command-message" => {
            let name = tag(start, "command-name")?.trim();
            let arguments = tag(start, "command-args").unwrap_or_default().trim();
            Mark::Command(format!("{name} {arguments}").trim_end().to_owned())
        }
        // Until 2.0: a note to the memory, and a prompt for a session in the background.
        "user-memory-input" => Mark::Command(format!("# {}", tag(start, first)?.trim())),
        "background-task-input" => Mark::Command(format!("& {}", tag(start, first)?.trim())),
        "local-command-stdout" | "local-command-stderr" | "background-task-output" => {
            Mark::CommandOutput(tag(start, first)?)
        }
        "local-command-caveat" => Mark::Caveat,
        "bash-input" => Mark::Shell(tag(start, first)?),
        "bash-stdout" | "bash-stderr" => Mark::ShellOutput {
            stdout: tag(start, "bash-stdout").unwrap_or_default(),
            stderr: tag(start, "bash-stderr").unwrap_or_default(),
        },
        "task-notification" => Mark::TaskNotification(start),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
