//! Adds or removes one table of TOML settings: `[mcp_servers.unspool]`. Every other line stays as it
//! is, comments included.

use toml::{Table, Value};

use super::object::NotSettings;

/// The settings with these lines in the table `section.name`.
pub fn with_table(
    text: Option<&str>,
    section: &str,
    name: &str,
    lines: &str,
) -> Result<String, NotSettings> {
    let before = text.unwrap_or_default();
    let wanted = Value::Table(parse(lines)?);
    if entry(&parse(before)?, section, name) == Some(&wanted) {
        return Ok(before.to_owned());
    }
    let mut text = without_table(before, section, name)?;
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(&format!("[{section}.{name}]\n{lines}"));
    // Settings that have the section in another form cannot have it twice.
    parse(&text)?;
    Ok(text)
}

/// The settings without the table `section.name` and the tables below it.
pub fn without_table(text: &str, section: &str, name: &str) -> Result<String, NotSettings> {
    let mut wanted = parse(text)?;
    if entry(&wanted, section, name).is_none() {
        return Ok(text.to_owned());
    }
    let path = format!("{section}.{name}");
    let mut kept = String::with_capacity(text.len());
    let mut is_ours = false;
    for line in text.split_inclusive('\n') {
        if let Some(header) = header(line) {
            is_ours = header == path || header.starts_with(&format!("{path}."));
        }
        if !is_ours {
            kept.push_str(line);
        }
    }
    // The line that separated our table from the others.
    if is_ours && kept.ends_with("\n\n") {
        kept.pop();
    }
    // All else is as it was: a header may stand in a text of several lines.
    if let Some(tables) = wanted.get_mut(section).and_then(Value::as_table_mut) {
        tables.remove(name);
    }
    let mut left = parse(&kept)?;
    for table in [&mut wanted, &mut left] {
        if table.get(section).and_then(Value::as_table).is_some_and(Table::is_empty) {
            table.remove(section);
        }
    }
    if left != wanted {
        let what = format!("`{path}` is not written as a table of its own");
        return Err(NotSettings::Toml(what));
    }
    Ok(kept)
}

fn entry<'t>(table: &'t Table, section: &str, name: &str) -> Option<&'t Value> {
    table.get(section)?.as_table()?.get(name)
}

fn parse(text: &str) -> Result<Table, NotSettings> {
    text.parse::<Table>().map_err(|error| NotSettings::Toml(error.message().to_owned()))
}

/// The path of a table's header without white space and quotes.
fn header(line: &str) -> Option<String> {
    let line = line.trim_start();
    let inner = line.strip_prefix("[[").or_else(|| line.strip_prefix('['))?;
    let (path, _) = inner.split_once(']')?;
    Some(path.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect())
}

#[cfg(test)]
#[path = "toml_table_tests.rs"]
mod tests;
