//! Edits the `hooks` field of JSON settings. All other fields keep their order and their bytes.

use serde_json::value::RawValue;

use super::object::{NotSettings, Object, quoted, render, split_byte_order_mark};

/// One group with one hook, in the format of Claude Code, Codex and Gemini.
pub fn group(command: &str, timeout: u32) -> String {
    let command = quoted(command);
    format!(
        r#"{{ "matcher": "*", "hooks": [{{ "type": "command", "command": {command}, "timeout": {timeout} }}] }}"#
    )
}

/// The settings with our group added once per event: `groups` has events and their groups.
pub fn with_hooks(
    text: Option<&str>,
    groups: &[(&str, String)],
    mark: &str,
) -> Result<String, NotSettings> {
    let (mark_of_order, text) = text.map_or(("", None), |text| {
        let (mark, rest) = split_byte_order_mark(text);
        (mark, Some(rest))
    });
    let Object(mut fields) = match text.filter(|text| !text.trim().is_empty()) {
        Some(text) => serde_json::from_str(text)?,
        None => Object(Vec::new()),
    };
    let mut hooks = hooks_of(&fields, mark)?;
    for (event, group) in groups {
        match hooks.iter_mut().find(|(name, _)| name == event) {
            Some((_, groups)) => groups.push(group.clone()),
            None => hooks.push(((*event).to_owned(), vec![group.clone()])),
        }
    }
    put_hooks(&mut fields, &hooks)?;
    Ok(format!("{mark_of_order}{}", render(&fields)))
}

/// The settings without our groups.
pub fn without_hooks(text: &str, mark: &str) -> Result<String, NotSettings> {
    if !text.contains(mark) {
        return Ok(text.to_owned());
    }
    let (mark_of_order, text) = split_byte_order_mark(text);
    let Object(mut fields) = serde_json::from_str(text)?;
    let hooks = hooks_of(&fields, mark)?;
    if hooks.is_empty() {
        fields.retain(|(name, _)| name != "hooks");
    } else {
        put_hooks(&mut fields, &hooks)?;
    }
    Ok(format!("{mark_of_order}{}", render(&fields)))
}

type Groups = Vec<(String, Vec<String>)>;

/// The groups of each event without ours. Events that had only ours are dropped.
fn hooks_of(fields: &[(String, Box<RawValue>)], mark: &str) -> Result<Groups, NotSettings> {
    let Some((_, hooks)) = fields.iter().find(|(name, _)| name == "hooks") else {
        return Ok(Vec::new());
    };
    let Object(events) = serde_json::from_str(hooks.get()).map_err(NotSettings::Hooks)?;
    let mut all = Vec::new();
    for (event, groups) in events {
        let groups: Vec<Box<RawValue>> =
            serde_json::from_str(groups.get()).map_err(NotSettings::Hooks)?;
        let others: Vec<String> = groups
            .iter()
            .map(|group| group.get().to_owned())
            .filter(|group| !group.contains(mark))
            .collect();
        if !others.is_empty() || groups.is_empty() {
            all.push((event, others));
        }
    }
    Ok(all)
}

fn put_hooks(fields: &mut Vec<(String, Box<RawValue>)>, hooks: &Groups) -> Result<(), NotSettings> {
    let events: Vec<String> = hooks
        .iter()
        .map(|(event, groups)| {
            let groups: Vec<String> = groups.iter().map(|group| format!("      {group}")).collect();
            if groups.is_empty() {
                format!("    {}: []", quoted(event))
            } else {
                format!("    {}: [\n{}\n    ]", quoted(event), groups.join(",\n"))
            }
        })
        .collect();
    let text = format!("{{\n{}\n  }}", events.join(",\n"));
    let value = RawValue::from_string(text)?;
    match fields.iter_mut().find(|(name, _)| name == "hooks") {
        Some((_, hooks)) => *hooks = value,
        None => fields.push(("hooks".to_owned(), value)),
    }
    Ok(())
}

/// A separate hooks file in Copilot's format. `commands` has those of an event.
pub fn own(events: &[&str], commands: impl Fn(&str) -> Vec<String>, timeout: u32) -> String {
    let hook = |command: &String| {
        let command = quoted(command);
        format!(r#"{{ "type": "command", "bash": {command}, "timeoutSec": {timeout} }}"#)
    };
    let events: Vec<String> = events
        .iter()
        .map(|event| {
            let hooks: Vec<String> = commands(event).iter().map(hook).collect();
            format!("    {}: [{}]", quoted(event), hooks.join(", "))
        })
        .collect();
    format!("{{\n  \"version\": 1,\n  \"hooks\": {{\n{}\n  }}\n}}\n", events.join(",\n"))
}
