//! `list_adaptations`, `get_adaptation`, `preview_adaptations`: the texts that agents get in their
//! prompts. What is enabled is not yet in a prompt: `get_prompt` shows what was sent.

use std::path::Path;

use unspool_model::adaptation::TEXT_CHANNEL;
use unspool_query::adaptations::{ListFilter, PreviewDocument, VersionedItem};
use unspool_store::store::View;

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::reader::{Adaptations, Reader};
use crate::tool::{AFTER, Parameter, Tool, ToolError};

/// Characters of a text in a list.
const BRIEF_CHARS: usize = 200;
/// Versions that are named, the newest ones.
const MAX_CHANGES: usize = 10;

pub const ID: Parameter =
    Parameter::text("id", "The id of an adaptation, such as adn.tools.edit-reread.");

const LIST_PARAMETERS: &[Parameter] = &[
    Parameter::text("agent", "Only those for this agent: claude-code, codex, gemini, …"),
    Parameter::text("channel", "Only those for this channel; agents have `text`."),
    Parameter::text("tag", "Only those with this tag."),
    Parameter::flag("enabled", "Only the enabled ones, or with false only the disabled ones."),
    AFTER,
];
const GET_PARAMETERS: &[Parameter] = &[ID.required()];
const PREVIEW_PARAMETERS: &[Parameter] = &[
    Parameter::text("agent", "The agent: claude-code, codex, gemini, …").required(),
    Parameter::text("channel", "The channel; `text` by default."),
];

pub fn list<V: View>() -> Tool<V> {
    Tool {
        name: "list_adaptations",
        title: "List adaptations",
        description: "Texts that can be added to the prompts of agents here, each for one kind of \
                      mistake, with whether it is enabled. Use it when you have seen that something \
                      goes wrong again and again, to find the text that would prevent it.",
        parameters: LIST_PARAMETERS,
        run: run_list,
    }
}

pub fn get<V: View>() -> Tool<V> {
    Tool {
        name: "get_adaptation",
        title: "Read an adaptation",
        description: "One adaptation with its whole text, its version and who changed it and why.",
        parameters: GET_PARAMETERS,
        run: run_get,
    }
}

pub fn preview<V: View>() -> Tool<V> {
    Tool {
        name: "preview_adaptations",
        title: "Preview what an agent gets",
        description: "The text that is added to the prompts of an agent in this project, from all \
                      enabled adaptations. get_prompt shows what was really sent.",
        parameters: PREVIEW_PARAMETERS,
        run: run_preview,
    }
}

/// The adaptations of the reader.
pub fn of<V: View>(reader: &Reader<V>) -> Result<&Adaptations, ToolError> {
    let none = "there are no adaptations here: this server was started without them";
    reader.adaptations().ok_or_else(|| ToolError::message(none))
}

/// The folder whose own adaptations count.
pub fn project<V: View>(reader: &Reader<V>) -> Option<&Path> {
    reader.scope().folder_path().map(Path::new)
}

pub fn error(error: &impl std::fmt::Display) -> ToolError {
    ToolError::message(error.to_string())
}

/// An adaptation as an object.
pub fn item(exit: &mut Exit<'_>, versioned: &VersionedItem, most: usize) -> Item {
    let of = &versioned.item;
    let mut item = Item::new();
    item.field(exit, "id", Some(&of.id)).number("version", versioned.version);
    item.field(exit, "title", Some(&of.title)).text(exit, "content", &of.content, most);
    item.word("enabled", if of.enabled { "yes" } else { "no" });
    item.flag("on_trial", of.trial.is_some()).field(exit, "rule", of.rule.as_deref());
    item.fields(exit, "tags", of.tags.iter().map(String::as_str));
    item.fields(exit, "agents", of.scope.agents.iter().map(String::as_str));
    item.fields(exit, "channels", of.scope.channels.iter().map(String::as_str));
    item.field(exit, "origin", Some(&versioned.origin));
    item
}

fn run_list<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let current = of(reader)?.store.current(project(reader)).map_err(|e| error(&e))?;
    let from = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let filter = ListFilter {
        agent: arguments.text("agent"),
        channel: arguments.text("channel"),
        tag: arguments.text("tag"),
        enabled: arguments.flag_if("enabled"),
    };
    let mut exit = reader.exit_of_none();
    let mut head = Item::new();
    head.number("version", current.state.version).flag("reload_needed", current.is_pending);
    let problems: Vec<String> = current.problems.iter().map(ToString::to_string).collect();
    head.fields(&mut exit, "problems", problems.iter().map(String::as_str));
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "adaptations");
    let wanted = current.state.items.iter().filter(|versioned| filter.has(versioned));
    for (at, versioned) in wanted.enumerate().skip(from) {
        if !answer.push(item(&mut exit, versioned, BRIEF_CHARS).done()) {
            return Ok(answer.finish(Some(at.to_string())));
        }
    }
    Ok(answer.finish(None))
}

fn run_get<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let id = arguments.text("id").unwrap_or_default();
    let Adaptations { store, .. } = of(reader)?;
    let current = store.current(project(reader)).map_err(|e| error(&e))?;
    let found = current.state.find(id, project(reader));
    let versioned = found.ok_or_else(|| {
        ToolError::message(format!("not_found: there is no adaptation {id}; see list_adaptations"))
    })?;
    let history = store.history(id, project(reader)).map_err(|e| error(&e))?;
    let mut exit = reader.exit_of_none();
    let changes = history.iter().rev().take(MAX_CHANGES).map(|change| {
        let mut item = Item::new();
        item.number("version", change.version).time("at", Some(change.at));
        item.word("enabled", if change.enabled { "yes" } else { "no" });
        item.field(&mut exit, "who", Some(&change.who));
        item.field(&mut exit, "why", change.why.as_deref());
        item.done()
    });
    let changes = changes.collect();
    let mut whole = item(&mut exit, versioned, usize::MAX);
    whole.list("changes", changes);
    Ok(only(arguments, whole.done()))
}

/// An answer with one adaptation.
pub fn only(arguments: &Arguments, adaptation: SafeValue) -> Answer {
    let mut answer = AnswerBuilder::new(arguments.limit(), Item::new().done(), "adaptations");
    // The first item always fits.
    let _ = answer.push(adaptation);
    answer.finish(None)
}

fn run_preview<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let current = of(reader)?.store.current(project(reader)).map_err(|e| error(&e))?;
    let agent = arguments.text("agent").unwrap_or_default();
    let channel = arguments.text("channel").unwrap_or(TEXT_CHANNEL);
    let preview = PreviewDocument::new(&current.state, agent, channel, project(reader));
    let mut exit = reader.exit_of_none();
    let mut head = Item::new();
    head.field(&mut exit, "agent", Some(agent)).field(&mut exit, "channel", Some(channel));
    head.number("version", preview.version).number("chars", preview.chars as u64);
    // The head of an answer has half of its room.
    head.text(&mut exit, "text", &preview.text, arguments.limit() / 2 - 1000);
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "included_ids");
    for (ids, how) in [
        (&preview.included_ids, "always"),
        (&preview.on_trial_ids, "in half of the sessions"),
        (&preview.left_out_ids, "left out: the text would be too long"),
    ] {
        for id in ids {
            let mut item = Item::new();
            item.field(&mut exit, "id", Some(id)).word("included", how);
            if !answer.push(item.done()) {
                return Ok(answer.finish(None));
            }
        }
    }
    Ok(answer.finish(None))
}
