//! `get_findings`: what fixed rules find in a session, or in the newest sessions of the project. The
//! rules are those of `unspool reflect`; what they quote is redacted before it is cut.

use unspool_query::findings::Findings;
use unspool_query::params::RULES;
use unspool_store::blocking::block_on;
use unspool_store::store::{SessionFilter, View};
use unspool_view::finding::Rule;
use unspool_view::present::findings::PlacedFinding;

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::reader::Reader;
use crate::tool::{AFTER, AGENT, PROJECT, Parameter, SESSION, SINCE, Tool, ToolError, UNTIL};

/// Sessions that are looked at if none is named: each has to be read once.
const MAX_SESSIONS: usize = 50;
/// Places that a finding names.
const MAX_PLACES: usize = 3;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        description: "Only this session: its id or a prefix. Without it: the newest 50 sessions, with \
                      what repeats over several of them.",
        ..SESSION
    },
    Parameter::one_of("rule", RULES, "Only what this rule finds."),
    AGENT,
    PROJECT,
    SINCE,
    UNTIL,
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "get_findings",
        title: "Find what went wrong",
        description: "What went wrong in a session or in this project, or cost more than it had to, \
                      found by fixed rules: failures, calls and reads that repeat, edits that missed, \
                      denied calls, slow steps, lost instructions. Each with how often it happened, \
                      how often it could have, what it cost, and the parts that show it. Use it to \
                      review work, and before you propose an adaptation.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let from = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let (sessions, more) = match arguments.text("session") {
        Some(text) => (vec![reader.named(text)?], false),
        None => {
            let filter = SessionFilter {
                agent: arguments.owned("agent"),
                project: reader.project(arguments)?,
                since: arguments.time("since")?,
                until: arguments.time("until")?,
                ..SessionFilter::default()
            };
            reader.sessions(filter, MAX_SESSIONS)?
        }
    };
    let looked_at = sessions.len();
    let read = |stored| block_on(reader.reflection().session(&reader.view, stored));
    let mut found = Findings::of(sessions.iter().map(read).collect::<Result<_, _>>()?);
    if let Some(rule) = arguments.text("rule").and_then(Rule::of_name) {
        found.retain(|other| other == rule);
    }
    let mut exit = reader.exit_of_none();
    let mut head = Item::new();
    head.number("sessions", looked_at as u64).flag("older_sessions_left_out", more);
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "findings");
    for (at, placed) in found.placed().iter().enumerate().skip(from) {
        if !answer.push(finding(&mut exit, placed, &found)) {
            return Ok(answer.finish(Some(at.to_string())));
        }
    }
    Ok(answer.finish(None))
}

fn finding(exit: &mut Exit<'_>, placed: &PlacedFinding<'_>, found: &Findings) -> SafeValue {
    let finding = placed.finding;
    let mut item = Item::new();
    item.word("rule", finding.rule.name()).field(exit, "title", Some(&finding.title));
    item.number("count", finding.count).number("of", finding.opportunities);
    item.word("unit", finding.rule.unit()).number("sessions", placed.sessions);
    let cost = finding.cost;
    item.number_if("calls", cost.calls).number_if("duration_ms", cost.duration_ms);
    item.number_if("tokens", cost.tokens).flag("tokens_are_estimated", cost.tokens_are_estimated);
    let places = found.places(placed).into_iter().take(MAX_PLACES).map(|(session, evidence)| {
        let mut place = Item::new();
        place.id("session", &session).number("turn", evidence.turn);
        place.number_if("step", evidence.step);
        if let Some(part) = &evidence.part {
            place.id("part", part);
        }
        place.field(exit, "what", Some(&evidence.what));
        place.done()
    });
    let places = places.collect();
    item.list("places", places).word("what_may_help", finding.rule.hint());
    item.done()
}
