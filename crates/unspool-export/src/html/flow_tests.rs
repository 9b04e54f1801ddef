#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Instant;

use serde_json::json;

use super::*;

fn run(steps: serde_json::Value) -> FlowRun {
    let conversation = json!({ "conversation_id": "c", "status": "completed", "steps": steps });
    FlowRun { number: 1, conversation: serde_json::from_value(conversation).unwrap(), before: 0 }
}

/// Model calls, each with reasoning, a reply and some tools.
fn long(calls: usize, tools: usize) -> FlowRun {
    let mut steps = vec![json!({ "step_id": "u", "label": "user_message" })];
    let mut given: Vec<String> = vec!["u".to_owned()];
    for call in 0..calls {
        let id = format!("call{call}");
        let depends: Vec<&str> =
            ["u"].into_iter().chain(given.iter().map(String::as_str)).collect();
        steps.push(json!({ "step_id": id, "label": "assistant_call", "depends_on": depends }));
        steps.push(json!({ "step_id": format!("r{call}"), "label": "generic", "depends_on": id,
            "payload_completed": { "kind": "reasoning", "text": "I think about it. ".repeat(20) } }));
        given = Vec::new();
        for tool in 0..tools {
            let tool = format!("t{call}x{tool}");
            steps.push(json!({ "step_id": tool, "label": "tool_call", "depends_on": id,
                "payload_started": { "name": "Bash", "arguments": { "command": "ls" } } }));
            let output = format!("{tool}-output");
            steps.push(json!({ "step_id": output, "label": "tool_output", "depends_on": tool,
                "payload_completed": { "output": "a\nb\n".repeat(200) } }));
            given.push(output);
        }
    }
    run(json!(steps))
}

#[test]
fn boxes_stand_in_their_lane_and_none_on_another() {
    for (calls, tools) in [(1, 0), (3, 1), (5, 7), (40, 3)] {
        let run = long(calls, tools);
        let lane = layout(&run.conversation);
        assert_eq!(lane.boxes.len(), run.conversation.steps.len());
        for (at, one) in lane.boxes.iter().enumerate() {
            assert!(one.x >= PADDING && one.x + BOX_WIDTH + PADDING <= lane.width, "{at}: {one:?}");
            assert!(one.y >= 0 && one.y + BOX_HEIGHT < lane.height, "{at}: {one:?}");
            for (nth, other) in lane.boxes.iter().enumerate().skip(at + 1) {
                let apart =
                    (one.x - other.x).abs() >= BOX_WIDTH || (one.y - other.y).abs() >= BOX_HEIGHT;
                assert!(apart, "{at} and {nth} of {calls} calls with {tools} tools");
            }
        }
    }
}

// Law 1: earlier steps are above a model call; the steps it led to are not.
#[test]
fn the_order_is_kept() {
    let run = long(20, 5);
    let lane = layout(&run.conversation);
    let labels: Vec<&str> = run.conversation.steps.iter().map(|step| step.label.as_str()).collect();
    for (at, label) in labels.iter().enumerate().filter(|(_, label)| **label == "assistant_call") {
        let call = lane.boxes[at];
        assert!(lane.boxes[..at].iter().all(|one| one.y < call.y), "{label} {at}");
        assert!(lane.boxes[at..].iter().all(|one| one.y >= call.y), "{label} {at}");
    }
}

#[test]
fn steps_without_a_model_call_stand_below_each_other_and_results_beside() {
    let run = run(json!([
        { "step_id": "u", "label": "user_message" },
        { "step_id": "t", "label": "tool_call", "depends_on": "u" },
        { "step_id": "o", "label": "tool_output", "depends_on": "t" },
        { "step_id": "m", "label": "assistant_message", "depends_on": "o" },
    ]));
    let lane = layout(&run.conversation);
    let [user, tool, output, said] = lane.boxes.as_slice() else { panic!("four boxes") };
    assert!(user.y < tool.y && tool.y < said.y);
    assert_eq!((tool.y, user.x, tool.x, said.x), (output.y, user.x, user.x, user.x));
    assert!(output.x > tool.x);
    assert_eq!(lane.edges.len(), 3);
    // The return line runs between the boxes.
    let rail = tool.y + BOX_HEIGHT + 9;
    assert!(lane.edges[2].contains(&format!("V{rail}H")), "{}", lane.edges[2]);
}

/// Drawing is fast enough for a request, and the output size is bounded.
#[test]
fn two_thousand_steps_are_drawn_at_once() {
    let run = long(250, 3);
    assert!(run.conversation.steps.len() >= 2000);
    let started = Instant::now();
    let drawn = picture("s", std::slice::from_ref(&run)).into_string();
    let took = started.elapsed();
    println!("{} steps: {} bytes in {took:?}", run.conversation.steps.len(), drawn.len());
    assert_eq!(drawn.matches("<a class=\"flow-step").count(), run.conversation.steps.len());
    assert!(drawn.len() < 3_000_000, "{}", drawn.len());
    assert!(took.as_secs() < 5, "{took:?}");
}

#[test]
fn a_step_leads_to_its_part_and_nothing_in_it_is_markup() {
    let hostile = "<script>\u{202e}\u{0}\"'&".to_owned() + &"x".repeat(1_000_000);
    let run = run(json!([
        { "step_id": "u-user-0", "label": "user_message", "payload_started": { "text": hostile } },
        { "step_id": "8f51a5ggwpfz2q2hvy8m-output", "label": "tool_output", "depends_on": "u-user-0",
          "payload_completed": { "output": hostile, "state": "completed" } },
        { "step_id": "\"><img>", "label": "assistant_message", "depends_on": "nobody" },
    ]));
    let drawn = picture("s1", std::slice::from_ref(&run)).into_string();
    assert!(
        drawn
            .contains("href=\"/s/s1?turn=1&amp;part=8f51a5ggwpfz2q2hvy8m#p-8f51a5ggwpfz2q2hvy8m\"")
    );
    assert!(drawn.contains("href=\"/s/s1?turn=1#t-c\""));
    assert!(!drawn.contains("<script") && !drawn.contains("<img"));
    assert!(!drawn.contains(['\u{202e}', '\u{0}']));
    assert!(drawn.len() < 10_000, "{}", drawn.len());
}
