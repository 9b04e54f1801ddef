//! The marks that Claude Code puts into users' messages. They are the program's words in the
//! user's mouth; each was seen in the versions that the fixtures name.

/// Written when a person stops the model, or a tool. It is not flagged in any other way.
pub(super) fn is_interruption(text: &str) -> bool {
    text == "[Request interrupted by user]" || text == "[Request interrupted by user for tool use]"
}

/// The text between `<name>` and `</name>`.
pub(super) fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.find(&format!("<{name}>"))? + name.len() + 2;
    let length = text[start..].find(&format!("</{name}>"))?;
    Some(&text[start..start + length])
}

/// What a user's message really is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark<'a> {
    Interruption,
    /// A slash command, as it was typed.
    Command(String),
    /// What a local command printed.
    CommandOutput(&'a str),
    /// A shell command typed behind `!`.
    Shell(&'a str),
    ShellOutput {
        stdout: &'a str,
        stderr: &'a str,
    },
    /// A background agent or command reported.
    TaskNotification(&'a str),
    /// A hook refused to let the model stop.
    HookFeedback(&'a str),
    /// Tells the model that local commands follow.
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
