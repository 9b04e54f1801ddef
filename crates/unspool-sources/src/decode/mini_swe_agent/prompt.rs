//! The user's task. The first message is a template around it, which the document has as well.

const TASK: &str = "{{task}}";

/// The task in a rendered template, or all of the text if the two do not fit together.
pub(super) fn task_of(template: &str, text: &str) -> String {
    cut(template, text).unwrap_or(text).trim().to_owned()
}

fn cut<'t>(template: &str, text: &'t str) -> Option<&'t str> {
    let normal = template.replace("{{ task }}", TASK);
    let (before, after) = normal.split_once(TASK)?;
    // Other expressions of the template have values that are not known.
    let before = before.rsplit(['}', '%']).next().unwrap_or_default();
    let after = after.split(['{', '%']).next().unwrap_or_default().trim_end();
    let start = text.find(before)? + before.len();
    let rest = text.get(start..)?;
    let end = if after.trim().is_empty() { rest.len() } else { rest.find(after)? };
    rest.get(..end)
}

/// What a user wrote, after the words that the program puts before it.
pub(super) fn words_after<'t>(text: &'t str, mark: &str) -> &'t str {
    text.split_once(mark).map_or(text, |(_, words)| words).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_is_cut_out_of_its_template() {
        let template = "Solve: {{task}}\n\nYou can run {{shell}} commands.\n";
        assert_eq!(task_of(template, "Solve: Fix it\n\nYou can run bash commands."), "Fix it");
        assert_eq!(task_of("{{ task }}", "Fix it"), "Fix it");
        assert_eq!(task_of("{% if a %}\nDo {{task}}", "x\nDo that"), "that");
        assert_eq!(task_of("no place for it", "Fix it"), "Fix it");
        assert_eq!(task_of("Solve: {{task}} now", "something else"), "something else");
    }
}
