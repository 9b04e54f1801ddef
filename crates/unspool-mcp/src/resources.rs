//! Resources: a session's outline, one of its turns, and the adaptations, by address.

use serde_json::{Map, Value};
use unspool_store::store::{SessionFilter, View};

use crate::answer::{Answer, DEFAULT_LIMIT};
use crate::arguments::Arguments;
use crate::item::cut;
use crate::reader::Reader;
use crate::tool::{Tool, ToolError};
use crate::tools::{outline, turn_answer};

const SCHEME: &str = "unspool://session/";
const ADAPTATIONS: &str = "unspool://adaptations";
/// Sessions that are listed as resources.
const MAX_LISTED: usize = 20;

/// The addresses that can be filled in: name, template, description.
pub const TEMPLATES: &[(&str, &str, &str)] = &[
    ("session", "unspool://session/{id}", "The outline of a session: a line per turn"),
    ("turn", "unspool://session/{id}/turn/{number}", "One turn of a session, in its true order"),
];

/// A resource that is listed.
pub struct Listed {
    pub uri: String,
    pub name: String,
    pub title: String,
}

/// The newest sessions, and the adaptations.
pub fn list<V: View>(reader: &Reader<V>) -> Result<Vec<Listed>, ToolError> {
    let filter = SessionFilter { without_agents: true, ..SessionFilter::default() };
    let (sessions, _) = reader.sessions(filter, MAX_LISTED)?;
    let mut listed = Vec::with_capacity(sessions.len());
    for stored in sessions {
        let mut exit = reader.exit(&stored)?;
        let mut item = crate::item::Item::new();
        let told = item.title(&mut exit, stored.summary.title.as_deref()).done().into_value();
        let title = told.get("title").and_then(Value::as_str).unwrap_or("untitled");
        let id = stored.summary.session.id;
        listed.push(Listed {
            uri: format!("{SCHEME}{id}"),
            name: format!("session {id}"),
            title: cut(title, 120),
        });
    }
    if reader.adaptations().is_some() {
        listed.push(Listed {
            uri: ADAPTATIONS.to_owned(),
            name: "adaptations".to_owned(),
            title: "Texts that agents can get in their prompts".to_owned(),
        });
    }
    Ok(listed)
}

/// What stands at an address. `None` if it is none of ours.
pub fn read<V: View>(reader: &Reader<V>, uri: &str) -> Option<Result<Answer, ToolError>> {
    if uri == ADAPTATIONS {
        reader.adaptations()?;
        return Some(called(reader, "list_adaptations"));
    }
    let path = uri.strip_prefix(SCHEME)?;
    let (id, turn) = match path.split_once('/') {
        None => (path, None),
        Some((id, rest)) => (id, Some(rest.strip_prefix("turn/")?.parse::<u32>().ok()?)),
    };
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return None;
    }
    Some(answer(reader, id, turn))
}

/// What a tool answers without arguments.
fn called<V: View>(reader: &Reader<V>, name: &str) -> Result<Answer, ToolError> {
    let tool = named(name)?;
    (tool.run)(reader, &Arguments::check(&tool, Map::new())?)
}

fn named<V: View>(name: &str) -> Result<Tool<V>, ToolError> {
    let tool = crate::tools::tools().into_iter().find(|tool: &Tool<V>| tool.name == name);
    tool.ok_or_else(|| ToolError::message("there is no such tool"))
}

fn answer<V: View>(reader: &Reader<V>, id: &str, turn: Option<u32>) -> Result<Answer, ToolError> {
    let stored = reader.named(id)?;
    let Some(turn) = turn else { return outline(reader, &stored, None, DEFAULT_LIMIT) };
    let given = Map::from_iter([("turn".to_owned(), turn.into())]);
    let tool = named::<V>("get_turn")?;
    turn_answer(reader, &stored, &Arguments::check(&tool, given)?)
}
