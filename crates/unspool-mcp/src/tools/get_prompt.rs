//! `get_prompt`: what a model call was sent.

use unspool_model::prompt::Role;
use unspool_query::prompts::{SessionPrompts, prompts};
use unspool_store::blocking::block_on;
use unspool_store::store::{StoredSession, View};
use unspool_view::present::prompt::{Call, PromptDifference, ShownPiece};

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue, TextPiece};
use crate::reader::Reader;
use crate::tool::{AFTER, Parameter, SESSION, Tool, ToolError};

/// The beginning of a piece, unless the client asks for one piece.
const PIECE_CHARS: usize = 200;
/// Room for the fields of a piece beside its text.
const FIELDS_CHARS: usize = 160;

const PARAMETERS: &[Parameter] = &[
    SESSION,
    Parameter::number("turn", "The turn of the call."),
    Parameter::number("step", "The number of the call in its turn: 1 by default."),
    Parameter::number("piece", "The number of a piece, to read it in full."),
    Parameter::text(
        "compare",
        "`previous`, or a call as TURN.STEP: only the pieces that it was not sent.",
    ),
    Parameter::text("find", "Only calls, or pieces, that have this text."),
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_prompt",
        title: "What a model call was sent",
        description: "What the model calls of a session were sent: instructions, tool schemas, files, \
                      memory, messages. Without `turn`: all calls with their sizes. With `turn` (and \
                      `step`): the pieces of that call in order, each with its beginning. With \
                      `piece`: that one in full. With `compare`: only what is not in the prompt of \
                      another call. It tells whether a rule was in the prompt.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let stored = reader.session(arguments)?;
    let prompts = block_on(prompts(&reader.view, &stored))?;
    let mut exit = reader.exit(&stored)?;
    if prompts.is_empty() {
        return Err(ToolError::message(format!(
            "nothing is known about the prompts of this session: {} does not write them down, or did \
             not in that version",
            exit.text(&stored.summary.session.agent)
        )));
    }
    let Some(turn) = arguments.small_number("turn") else {
        return calls(&mut exit, &stored, &prompts, arguments);
    };
    let step = arguments.small_number("step").unwrap_or(1);
    let call = one(&prompts, turn, step)?;
    let pieces = block_on(prompts.pieces(&reader.view, &call))?;
    let head = call_item(&mut exit, &stored, &call);
    match arguments.number("piece") {
        Some(number) => piece(&mut exit, head, &pieces, number, arguments),
        None => {
            let before = compared(&prompts, &call, arguments)?;
            all_pieces(&mut exit, head, &call, &pieces, before.as_ref(), arguments)
        }
    }
}

fn one(prompts: &SessionPrompts, turn: u32, step: u32) -> Result<Call<'_>, ToolError> {
    prompts.calls_of(turn, Some(step)).into_iter().next().ok_or_else(|| {
        ToolError::message(format!(
            "no prompt is known of call {step} of turn {turn}; get_prompt without `turn` lists the \
             calls"
        ))
    })
}

/// The call that another one is compared with.
fn compared<'a>(
    prompts: &'a SessionPrompts,
    call: &Call<'a>,
    arguments: &Arguments,
) -> Result<Option<Call<'a>>, ToolError> {
    match arguments.text("compare") {
        None => Ok(None),
        Some("previous") => Ok(prompts.before(call)),
        Some(place) => {
            let place = place.split_once('.').and_then(|(turn, step)| {
                Some((turn.parse::<u32>().ok()?, step.parse::<u32>().ok()?))
            });
            let (turn, step) = place
                .ok_or_else(|| ToolError::message("`compare` is `previous`, or TURN.STEP: 3.1"))?;
            one(prompts, turn, step).map(Some)
        }
    }
}

/// All calls, or those whose prompts have a text. Only redacted text is searched.
fn calls(
    exit: &mut Exit<'_>,
    stored: &StoredSession,
    prompts: &SessionPrompts,
    arguments: &Arguments,
) -> Result<Answer, ToolError> {
    if arguments.text("find").is_some() || arguments.text("compare").is_some() {
        return Err(ToolError::message(
            "`find` and `compare` need `turn`: they look into one call",
        ));
    }
    let skipped = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let head = Item::new().id("session", &stored.summary.session.id).done();
    let mut answer = AnswerBuilder::new(arguments.limit(), head, "calls");
    for (at, (call, difference)) in prompts.differences().iter().enumerate().skip(skipped) {
        let mut item = call_fields(exit, call);
        if let Some(difference) = difference {
            item.text(exit, "since_the_call_before", &difference.words(), 200);
        }
        if !answer.push(item.done()) {
            return Ok(answer.finish(Some(at.to_string())));
        }
    }
    Ok(answer.finish(None))
}

fn call_item(exit: &mut Exit<'_>, stored: &StoredSession, call: &Call<'_>) -> SafeValue {
    let mut item = call_fields(exit, call);
    item.id("session", &stored.summary.session.id).done()
}

fn call_fields(exit: &mut Exit<'_>, call: &Call<'_>) -> Item {
    let mut item = Item::new();
    if let Some((turn, step)) = call.step {
        item.number("turn", turn).number("step", step);
    }
    let record = call.prompt.call();
    let times = call.times;
    item.time("at", record.at).time("sent_at", times.sent);
    item.time("first_token_at", times.first_token).time("ended_at", times.ended);
    item.flag("no_reply", call.no_reply).field(exit, "model", record.model.as_deref());
    item.number("messages", call.prompt.message_count()).number("chars", call.prompt.chars());
    item.count("unknown_messages", call.prompt.unknown_messages().into());
    item
}

/// The pieces of a call with their beginnings.
fn all_pieces(
    exit: &mut Exit<'_>,
    head: SafeValue,
    call: &Call<'_>,
    pieces: &[ShownPiece<'_>],
    before: Option<&Call<'_>>,
    arguments: &Arguments,
) -> Result<Answer, ToolError> {
    let skipped = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let difference = before.map(|before| PromptDifference::between(&before.prompt, &call.prompt));
    let wanted = arguments.text("find");
    let mut answer = AnswerBuilder::new(arguments.limit(), head, "pieces");
    for (number, shown) in pieces.iter().enumerate().skip(skipped) {
        if difference.as_ref().is_some_and(|difference| !difference.has_added(shown)) {
            continue;
        }
        let text = shown.text.as_deref().map(|text| exit.text(text));
        if wanted.is_some_and(|wanted| !text.as_ref().is_some_and(|text| text.contains(wanted))) {
            continue;
        }
        let mut item = Item::new();
        item.number("piece", number as u64);
        piece_fields(&mut item, exit, shown);
        if let Some(text) = text {
            item.text(exit, "text", &text, PIECE_CHARS);
        }
        if !answer.push(item.done()) {
            return Ok(answer.finish(Some(number.to_string())));
        }
    }
    Ok(answer.finish(None))
}

fn piece_fields(item: &mut Item, exit: &mut Exit<'_>, shown: &ShownPiece<'_>) {
    let role = match shown.role {
        Role::Head => "head",
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    item.word("kind", shown.piece.kind.name()).word("role", role);
    item.field(exit, "at", Some(&shown.at)).field(exit, "label", shown.piece.label.as_deref());
    item.number("chars", shown.piece.chars).flag("unknown", shown.is_unknown());
}

/// One piece in full.
fn piece(
    exit: &mut Exit<'_>,
    head: SafeValue,
    pieces: &[ShownPiece<'_>],
    number: u64,
    arguments: &Arguments,
) -> Result<Answer, ToolError> {
    let shown = usize::try_from(number).ok().and_then(|number| pieces.get(number));
    let Some(shown) = shown else {
        return Err(ToolError::message(format!(
            "the prompt has no piece {number}; it has {} pieces, counted from 0",
            pieces.len()
        )));
    };
    let from = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let mut answer = AnswerBuilder::new(arguments.limit(), head, "pieces");
    let mut item = Item::new();
    item.number("piece", number);
    piece_fields(&mut item, exit, shown);
    let Some(text) = shown.text.as_deref() else {
        let _ = answer.push(item.done());
        return Ok(answer.finish(None));
    };
    let room = answer.room().saturating_sub(item.chars() + FIELDS_CHARS);
    let piece = TextPiece::of(exit, text, from, room);
    item.count("from", piece.from as u64).piece("text", &piece);
    let _ = answer.push(item.done());
    Ok(answer.finish(piece.next.map(|next| next.to_string())))
}
