use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::part::{Part, Place, Reasoning, Text, Tool, ToolState};
use unspool_model::session::{Trigger, Turn, TurnState};

use super::*;

fn part(nth: i64, body: Body) -> Part {
    Part {
        id: PartId(SessionId::of("part", &nth.to_string()).0),
        place: Place(nth),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Default::default(),
        body,
    }
}

fn text(text: &str, open: bool) -> Body {
    Body::Text(Text { text: text.to_owned(), open, ..Text::default() })
}

fn call(state: ToolState) -> Body {
    let output = Some("so far".to_owned());
    Body::Tool(Box::new(Tool { state, output, input_text: "{\"pa".to_owned(), ..Tool::default() }))
}

// Law 12
#[test]
fn a_guest_sees_nothing_that_still_grows() {
    let thought = Reasoning { text: "hm".to_owned(), open: true, ..Reasoning::default() };
    let bodies = [
        text("whole", false),
        Body::Reasoning(thought),
        call(ToolState::Completed),
        call(ToolState::Running),
        text("ghp_a1B2", true),
    ];
    let parts: Vec<Part> = (0..).zip(bodies).map(|(nth, body)| part(nth, body)).collect();
    let running = Turn {
        id: TurnId(SessionId::of("turn", "1").0),
        number: 1,
        trigger: Trigger::User,
        user: Vec::new(),
        thinking_mode: true,
        state: TurnState::Running,
        abandoned: false,
        inherited: false,
        started: None,
        ended: None,
        steps: Vec::new(),
        parts,
        origin: Default::default(),
    };
    let shown = without_growing_parts(running.clone());
    let places: Vec<i64> = shown.parts.iter().map(|part| part.place.0).collect();
    assert_eq!(places, [0, 2, 3]);
    let outputs: Vec<Option<&str>> = shown.parts[1..]
        .iter()
        .map(|part| {
            let Body::Tool(tool) = &part.body else { panic!("a tool") };
            tool.output.as_deref()
        })
        .collect();
    assert_eq!(outputs, [Some("so far"), None]);
    // The turn of an agent that is gone grows no more.
    let left = Turn { state: TurnState::Unknown, ..running };
    assert_eq!(without_growing_parts(left.clone()), left);
}
