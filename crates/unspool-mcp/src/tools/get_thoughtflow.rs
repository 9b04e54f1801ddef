//! `get_thoughtflow`: the runs of a session as steps that depend on each other.

use unspool_export::export::runs;
use unspool_export::html::flow::FlowRun;
use unspool_export::project::thoughtflow::{FlowStep, Label};
use unspool_store::store::View;

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::reader::Reader;
use crate::tool::{AFTER, Parameter, SESSION, Tool, ToolError};

/// Steps loaded for one answer.
const MAX_STEPS: usize = 200;
/// The beginning of a payload, unless the client asks for another length.
const PAYLOAD_CHARS: usize = 160;
const MAX_PAYLOAD_CHARS: usize = 4_000;

const PARAMETERS: &[Parameter] = &[
    SESSION,
    Parameter::number("turn", "Begin with the run of this turn."),
    Parameter::number("text_chars", "Characters told of each payload: 160 by default."),
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_thoughtflow",
        title: "The flow of a session's steps",
        description: "A session as ThoughtFlow steps: what each step was (message, tool call, output, \
                      error), which steps it depends on, when and how long. Use it to see what ran at \
                      the same time and what waited for what; get_turn reads better.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let stored = reader.session(arguments)?;
    let begin = (arguments.small_number("turn").unwrap_or(0), 0);
    let (turn, skip) = arguments.after(parse_cursor)?.unwrap_or(begin);
    let most = arguments.number("text_chars").map_or(PAYLOAD_CHARS, |asked| {
        usize::try_from(asked).unwrap_or(MAX_PAYLOAD_CHARS).min(MAX_PAYLOAD_CHARS)
    });
    let redactor = reader.exit(&stored)?.into_redactor();
    let page = runs(&reader.view, &stored, turn, skip, MAX_STEPS, redactor)?;
    let mut exit = reader.exit(&stored)?;
    let head = Item::new().id("session", &stored.summary.session.id).done();
    let mut answer = AnswerBuilder::new(arguments.limit(), head, "steps");
    for FlowRun { number, conversation, before } in &page.runs {
        for (at, step) in conversation.steps.iter().enumerate() {
            let is_first = at + before == 0;
            let status = is_first.then(|| conversation.status.name());
            let item = step_item(&mut exit, *number, status, step, most);
            if !answer.push(item) {
                return Ok(answer.finish(Some(format!("{number}.{}", before + at))));
            }
        }
    }
    Ok(answer.finish(page.later.map(|(turn, skip)| format!("{turn}.{skip}"))))
}

/// A step; the first one of a run says how the run ended.
fn step_item(
    exit: &mut Exit<'_>,
    turn: u32,
    status: Option<&'static str>,
    step: &FlowStep,
    most: usize,
) -> SafeValue {
    let mut item = Item::new();
    item.number("turn", turn);
    if let Some(status) = status {
        item.word("run", status);
    }
    item.field(exit, "step", Some(&step.step_id));
    let label = Label::of_name(&step.label);
    if label == Label::Generic {
        // A label of another program.
        item.field(exit, "label", Some(&step.label));
    } else {
        item.word("label", label.name());
    }
    item.fields(exit, "depends_on", step.depends_on.0.iter().take(16).map(String::as_str));
    item.field(exit, "started_at", step.started_at.as_deref());
    item.number_if("duration_ms", step.duration_ms);
    for (name, payload) in
        [("payload", &step.payload_started), ("completed", &step.payload_completed)]
    {
        let text = payload.as_ref().map_or("", |payload| payload.text());
        item.text(exit, name, text, most);
    }
    item.done()
}

/// A turn, and steps of it that were told.
fn parse_cursor(cursor: &str) -> Option<(u32, usize)> {
    let (turn, skip) = cursor.split_once('.')?;
    Some((turn.parse().ok()?, skip.parse().ok()?))
}
