//! What agents put around an output for the model: tags and reminders. A person sees the output; a
//! reminder is behind a fold. Only tags at the very start or end count, because an output may
//! contain the same words, and what is shown must not depend on them.

/// An output without its envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened<'a> {
    pub text: &'a str,
    /// What the agent reminds the model of, after the output.
    pub reminder: Option<&'a str>,
}

/// Opens the envelope of an output.
pub fn open(output: &str) -> Opened<'_> {
    let (text, reminder) = match split_reminder(output) {
        Some((text, reminder)) => (text, Some(reminder)),
        None => (output, None),
    };
    Opened { text: inner(text).unwrap_or(text), reminder }
}

/// Claude Code ends an output with `<system-reminder>`, Gemini CLI with what a hook added.
fn split_reminder(output: &str) -> Option<(&str, &str)> {
    let tags = [("<system-reminder>", "</system-reminder>"), ("<hook_context>", "</hook_context>")];
    let output = output.trim_end();
    let (start, end) = tags.into_iter().find(|(_, end)| output.ends_with(end))?;
    let before = output.strip_suffix(end)?;
    let at = before.rfind(start)?;
    let starts_line = at == 0 || before.as_bytes()[at - 1] == b'\n';
    let reminder = before[at..].strip_prefix(start)?.trim();
    starts_line.then(|| (before[..at].trim_end(), reminder))
}

/// Context that an agent added, without the tag around all of it: its title says what it is.
pub fn context(text: &str) -> &str {
    let trimmed = text.trim();
    if let Some(inner) = inner(trimmed) {
        return inner;
    }
    let tag = trimmed.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let is_name = |tag: &str| tag.chars().all(|c| c.is_ascii_alphanumeric() || "_-:".contains(c));
    let Some((tag, inner)) = tag.filter(|(tag, _)| is_name(tag)) else { return text };
    let (start, end) = (format!("<{tag}>"), format!("</{tag}>"));
    match inner.strip_suffix(&end) {
        Some(inner) if !inner.contains(&start) && !inner.contains(&end) => inner,
        Some(_) | None => text,
    }
}

fn inner(text: &str) -> Option<&str> {
    let text = text.trim();
    // Claude Code, errors of its own; Gemini CLI, output of commands and fetches.
    for tag in ["tool_use_error", "untrusted_context"] {
        if let Some(inner) = between(text, &format!("<{tag}>"), &format!("</{tag}>")) {
            return Some(inner);
        }
    }
    // OpenCode, the report of a sub-agent.
    let task = text.strip_prefix("<task ")?.split_once('>')?.1.trim();
    let task = task.strip_suffix("</task>")?.trim();
    between(task, "<task_result>", "</task_result>")
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let inner = text.strip_prefix(start)?.strip_suffix(end)?;
    Some(inner.strip_prefix('\n').unwrap_or(inner).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_of_the_agents_are_opened() {
        let texts = [
            ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
            ("<untrusted_context>\n  a\n</untrusted_context>", "  a"),
            (
                "<task id=\"ses_1\" state=\"completed\">\n<task_result>\nDone\n</task_result>\n</task>",
                "Done",
            ),
            ("plain", "plain"),
        ];
        for (output, text) in texts {
            assert_eq!(open(output), Opened { text, reminder: None }, "{output}");
        }
    }

    #[test]
    fn a_reminder_after_the_output_is_split_off() {
        let output = "line 1\n\n<system-reminder>\nDo not run it.\n</system-reminder>\n";
        let opened = Opened { text: "line 1", reminder: Some("Do not run it.") };
        assert_eq!(open(output), opened);
    }

    #[test]
    fn what_a_hook_adds_to_an_output_is_split_off() {
        let output = "Output: 1\n\n<hook_context>Use metric units.</hook_context>";
        let opened = Opened { text: "Output: 1", reminder: Some("Use metric units.") };
        assert_eq!(open(output), opened);
    }

    #[test]
    fn context_is_shown_without_the_tag_around_it() {
        for (text, shown) in [
            ("<hook_context>metric</hook_context>", "metric"),
            ("<qwen:user-prompt-submit-context>\na\n</qwen:user-prompt-submit-context>", "\na\n"),
            ("<task id=\"1\" state=\"completed\">\n<task_result>\nb\n</task_result>\n</task>", "b"),
            ("plain", "plain"),
            ("<a>1</a> and <a>2</a>", "<a>1</a> and <a>2</a>"),
            ("<path>/a</path>\n<type>file</type>", "<path>/a</path>\n<type>file</type>"),
        ] {
            assert_eq!(context(text), shown, "{text}");
        }
    }

    // A file may contain the same words. Nothing of it is hidden.
    #[test]
    fn tags_inside_an_output_stay() {
        for output in [
            "<system-reminder>quoted</system-reminder> and more",
            "a <system-reminder>b</system-reminder>",
            "say <tool_use_error>x</tool_use_error>",
            "<untrusted_context> without an end",
            "<task id=\"1\">no result</task>",
        ] {
            assert_eq!(open(output), Opened { text: output, reminder: None }, "{output}");
        }
    }
}
