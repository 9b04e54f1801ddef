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
    } else if start.starts_with("<command-name>") || start.starts_with("<command-message>") {
        let name = tag(text, "command-name").unwrap_or_default().trim();
        let arguments = tag(text, "command-args").unwrap_or_default().trim();
        Mark::Command(format!("{name} {arguments}").trim_end().to_owned())
    } else if start.starts_with("<local-command-stdout>") {
        Mark::CommandOutput(tag(text, "local-command-stdout").unwrap_or_default())
    } else if start.starts_with("<local-command-caveat>")
        || start.starts_with("Caveat: The messages below")
    {
        Mark::Caveat
    } else if start.starts_with("<bash-input>") {
        Mark::Shell(tag(text, "bash-input").unwrap_or_default())
    } else if start.starts_with("<bash-stdout>") {
        Mark::ShellOutput {
            stdout: tag(text, "bash-stdout").unwrap_or_default(),
            stderr: tag(text, "bash-stderr").unwrap_or_default(),
        }
    } else if start.starts_with("<task-notification>") {
        Mark::TaskNotification(start)
    } else if let Some(feedback) = text.strip_prefix("Stop hook feedback:\n") {
        Mark::HookFeedback(feedback)
    } else {
        Mark::None
    }
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
