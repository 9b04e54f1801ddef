//! Adds or removes one field of an object in JSON settings: `mcpServers.unspool`. All other fields
//! keep their order and their bytes.

use serde_json::value::RawValue;

use super::object::{NotSettings, Object, quoted, render, split_byte_order_mark};

/// The settings with this JSON in the field `name` of the object `section`.
pub fn with_entry(
    text: Option<&str>,
    section: &'static str,
    name: &str,
    entry: &str,
) -> Result<String, NotSettings> {
    let (mark, mut fields) = parse(text.unwrap_or_default())?;
    let mut entries = entries_of(&fields, section)?;
    let entry = RawValue::from_string(entry.to_owned())?;
    match entries.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = entry,
        None => entries.push((name.to_owned(), entry)),
    }
    let value = section_of(&entries)?;
    match fields.iter_mut().find(|(known, _)| known == section) {
        Some((_, known)) => *known = value,
        None => fields.push((section.to_owned(), value)),
    }
    Ok(format!("{mark}{}", render(&fields)))
}

/// The settings without the field `name` of the object `section`.
pub fn without_entry(text: &str, section: &'static str, name: &str) -> Result<String, NotSettings> {
    let (mark, mut fields) = parse(text)?;
    let mut entries = entries_of(&fields, section)?;
    let before = entries.len();
    entries.retain(|(known, _)| known != name);
    if entries.len() == before {
        return Ok(text.to_owned());
    }
    if entries.is_empty() {
        fields.retain(|(known, _)| known != section);
    } else {
        let value = section_of(&entries)?;
        for (_, known) in fields.iter_mut().filter(|(known, _)| known == section) {
            *known = value.clone();
        }
    }
    Ok(format!("{mark}{}", render(&fields)))
}

/// The settings with this text in the list `name`, or without it.
pub fn with_listed(
    text: Option<&str>,
    name: &str,
    listed: &str,
    is_wanted: bool,
) -> Result<String, NotSettings> {
    let (mark, mut fields) = parse(text.unwrap_or_default())?;
    let found = fields.iter().position(|(known, _)| known == name);
    let mut entries: Vec<Box<RawValue>> = match found {
        Some(at) => serde_json::from_str(fields[at].1.get())?,
        None => Vec::new(),
    };
    let is_it = |entry: &RawValue| {
        serde_json::from_str::<String>(entry.get()).is_ok_and(|entry| entry == listed)
    };
    if entries.iter().any(|entry| is_it(entry)) == is_wanted {
        return Ok(text.unwrap_or_default().to_owned());
    }
    if is_wanted {
        entries.push(RawValue::from_string(quoted(listed))?);
    } else {
        entries.retain(|entry| !is_it(entry));
    }
    let entries: Vec<&str> = entries.iter().map(|entry| entry.get()).collect();
    let value = RawValue::from_string(format!("[{}]", entries.join(", ")))?;
    match found {
        Some(at) if entries.is_empty() => _ = fields.remove(at),
        Some(at) => fields[at].1 = value,
        None => fields.push((name.to_owned(), value)),
    }
    Ok(format!("{mark}{}", render(&fields)))
}

type Fields = Vec<(String, Box<RawValue>)>;

fn parse(text: &str) -> Result<(&str, Fields), NotSettings> {
    let (mark, text) = split_byte_order_mark(text);
    if text.trim().is_empty() {
        return Ok((mark, Vec::new()));
    }
    let Object(fields) = serde_json::from_str(text)?;
    Ok((mark, fields))
}

fn entries_of(fields: &Fields, section: &'static str) -> Result<Fields, NotSettings> {
    let Some((_, value)) = fields.iter().find(|(name, _)| name == section) else {
        return Ok(Vec::new());
    };
    let Object(entries) =
        serde_json::from_str(value.get()).map_err(|error| NotSettings::Section(section, error))?;
    Ok(entries)
}

fn section_of(entries: &Fields) -> Result<Box<RawValue>, NotSettings> {
    let entries: Vec<String> = entries
        .iter()
        .map(|(name, value)| format!("    {}: {}", quoted(name), value.get()))
        .collect();
    Ok(RawValue::from_string(format!("{{\n{}\n  }}", entries.join(",\n")))?)
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
