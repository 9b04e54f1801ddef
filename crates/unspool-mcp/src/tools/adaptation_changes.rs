//! `propose_adaptation`, and with `--allow-edits` `update_adaptation` and `reload_adaptations`. A
//! proposal changes nothing: it waits until a person applies it.

use unspool_model::adaptation::{Patch, TrialChange};
use unspool_query::adaptations::{Author, NewProposal};
use unspool_store::store::View;

use super::adaptations::{ID, error, item, of, only, project};
use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::item::Item;
use crate::reader::{Adaptations, Reader};
use crate::tool::{Parameter, Tool, ToolError};

const CONTENT: Parameter =
    Parameter::text("content", "The new text. Without it the text stays as it is.");
const WHY: Parameter = Parameter::text(
    "why",
    "What shows that it is needed: what happened how often, with sessions and turns.",
);

const PROPOSE_PARAMETERS: &[Parameter] = &[ID.required(), CONTENT, WHY.required()];
const UPDATE_PARAMETERS: &[Parameter] = &[
    ID.required(),
    Parameter::number("version", "The version that you read; it fails if it is another one.")
        .required(),
    CONTENT,
    Parameter::text("title", "The new title."),
    Parameter::flag("enabled", "Enable or disable it."),
    Parameter::one_of("trial", &["half", "all"], "Include it in half of the sessions, or in all."),
    WHY,
];

pub fn propose<V: View>() -> Tool<V> {
    Tool {
        name: "propose_adaptation",
        title: "Propose an adaptation",
        description: "Proposes to enable an adaptation, or to give it another text. It waits for a \
                      person, who applies or dismisses it; nothing changes before. Use it when the \
                      record shows a mistake several times, and say where it shows that.",
        parameters: PROPOSE_PARAMETERS,
        run: run_propose,
    }
}

pub fn update<V: View>() -> Tool<V> {
    Tool {
        name: "update_adaptation",
        title: "Change an adaptation",
        description: "Changes what you give of an adaptation and keeps the rest. The sessions that \
                      start from then on get it in their prompts.",
        parameters: UPDATE_PARAMETERS,
        run: run_update,
    }
}

pub fn reload<V: View>() -> Tool<V> {
    Tool {
        name: "reload_adaptations",
        title: "Reload adaptations",
        description: "Takes over what was changed in the files of adaptations by hand.",
        parameters: &[],
        run: run_reload,
    }
}

fn run_propose<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let Adaptations { store, .. } = of(reader)?;
    let id = arguments.text("id").unwrap_or_default().to_owned();
    let current = store.current(project(reader)).map_err(|e| error(&e))?;
    let found = current.state.find(&id, project(reader));
    let project = found.and_then(|versioned| versioned.project.clone());
    let patch =
        Patch { content: arguments.owned("content"), enabled: Some(true), ..Patch::default() };
    let (who, why) = ("agent".to_owned(), arguments.owned("why").unwrap_or_default());
    let new = NewProposal { id, project, patch, who, why, evidence: Vec::new() };
    let proposals = store.propose(&[new]).map_err(|e| error(&e))?;
    let mut head = Item::new();
    head.word("state", "a person has to apply it: `unspool adapt proposals`");
    let mut exit = reader.exit_of_none();
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "proposals");
    for proposal in &proposals {
        let mut item = Item::new();
        item.number("number", proposal.number).field(&mut exit, "id", Some(&proposal.id));
        item.number("chars", proposal.chars as u64);
        if !answer.push(item.done()) {
            break;
        }
    }
    Ok(answer.finish(None))
}

/// Refuses if edits are not allowed, whoever calls.
fn editable<V: View>(reader: &Reader<V>) -> Result<&Adaptations, ToolError> {
    let what = "changes are not allowed here; use propose_adaptation";
    let adaptations = of(reader)?;
    adaptations.allows_edits.then_some(adaptations).ok_or_else(|| ToolError::message(what))
}

fn run_update<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let Adaptations { store, .. } = editable(reader)?;
    let trial = arguments.text("trial").map(|trial| match trial {
        "half" => TrialChange::Half,
        _ => TrialChange::All,
    });
    let patch = Patch {
        title: arguments.owned("title"),
        content: arguments.owned("content"),
        enabled: arguments.flag_if("enabled"),
        trial,
    };
    if patch.is_empty() {
        return Err(ToolError::message("nothing to change: give content, title, enabled or trial"));
    }
    let author = Author { who: "mcp", why: arguments.text("why") };
    let (id, version) = (arguments.text("id").unwrap_or_default(), arguments.number("version"));
    let updated = store.update(id, project(reader), &patch, version, author);
    let versioned = updated.map_err(|e| error(&e))?;
    let mut exit = reader.exit_of_none();
    Ok(only(arguments, item(&mut exit, &versioned, usize::MAX).done()))
}

fn run_reload<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let Adaptations { store, .. } = editable(reader)?;
    let changed = store.reload(Author { who: "file", why: None }).map_err(|e| error(&e))?;
    let current = store.current(project(reader)).map_err(|e| error(&e))?;
    let mut exit = reader.exit_of_none();
    let mut head = Item::new();
    head.number("version", current.state.version);
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "changed");
    for id in &changed {
        let mut item = Item::new();
        item.field(&mut exit, "id", Some(id));
        if !answer.push(item.done()) {
            break;
        }
    }
    Ok(answer.finish(None))
}
