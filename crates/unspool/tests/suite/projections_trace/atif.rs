//! A strict reader of ATIF trajectories: checks the fields of every object, and restores the order
//! of a step's parts from its `extra`.

use serde_json::{Map, Value};
use unspool_model::session::Transcript;

use super::Item;

/// All violations of the format.
pub fn problems(trajectory: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    check(trajectory, &mut wrong);
    wrong
}

fn check_fields<'a>(
    value: &'a Value,
    allowed: &[&str],
    wrong: &mut Vec<String>,
) -> &'a Map<String, Value> {
    let fields = value.as_object().unwrap_or_else(|| panic!("{value} is no object"));
    let strange = fields.keys().filter(|key| !allowed.contains(&key.as_str()));
    wrong.extend(strange.map(|key| format!("unknown field {key} in {allowed:?}")));
    let empty = fields.iter().filter(|(_, value)| value.is_null());
    wrong.extend(empty.map(|(key, _)| format!("{key} is null")));
    fields
}

fn check(trajectory: &Value, wrong: &mut Vec<String>) {
    let allowed = [
        "schema_version",
        "session_id",
        "trajectory_id",
        "agent",
        "steps",
        "final_metrics",
        "extra",
        "subagent_trajectories",
    ];
    let root = check_fields(trajectory, &allowed, wrong);
    assert_eq!(root["schema_version"], "ATIF-v1.8");
    let agent = check_fields(&root["agent"], &["name", "version", "model_name", "extra"], wrong);
    assert!(agent["name"].is_string() && agent["version"].is_string());
    let steps = root["steps"].as_array().unwrap();
    assert!(!steps.is_empty(), "the format wants a step");
    let mut referred: Vec<&str> = Vec::new();
    for (at, step) in (1..).zip(steps) {
        if step["step_id"] != at {
            wrong.push(format!("step {at} has the number {}", step["step_id"]));
        }
        check_step(step, &mut referred, wrong);
    }
    let totals = [
        "total_prompt_tokens",
        "total_completion_tokens",
        "total_cached_tokens",
        "total_cost_usd",
        "total_steps",
        "extra",
    ];
    let totals = check_fields(&root["final_metrics"], &totals, wrong);
    assert_eq!(totals["total_steps"], steps.len());
    let inside = root.get("subagent_trajectories").and_then(Value::as_array);
    let inside: Vec<&Value> = inside.into_iter().flatten().collect();
    let mut ids: Vec<&str> =
        inside.iter().map(|sub| sub["trajectory_id"].as_str().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    referred.sort_unstable();
    referred.dedup();
    if ids.len() != count || ids != referred {
        wrong.push(format!("{ids:?} are inside and {referred:?} referred to"));
    }
    inside.into_iter().for_each(|sub| check(sub, wrong));
}

fn check_step<'a>(step: &'a Value, referred: &mut Vec<&'a str>, wrong: &mut Vec<String>) {
    let for_all = ["step_id", "timestamp", "source", "message", "observation"];
    let for_all = [&for_all[..], &["is_copied_context", "llm_call_count", "extra"]].concat();
    let for_agents = ["model_name", "reasoning_content", "tool_calls", "metrics"];
    let fields = match step["source"].as_str().unwrap() {
        "agent" => check_fields(step, &[&for_all[..], &for_agents].concat(), wrong),
        "user" | "system" => check_fields(step, &for_all, wrong),
        other => panic!("a step of {other}"),
    };
    assert!(fields["message"].is_string());
    if let Some(at) = fields.get("timestamp") {
        at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    }
    if let Some(metrics) = fields.get("metrics") {
        let allowed = ["prompt_tokens", "completion_tokens", "cached_tokens", "extra"];
        let metrics = check_fields(metrics, &allowed, wrong);
        assert!(metrics["prompt_tokens"].as_u64() >= metrics["cached_tokens"].as_u64());
    }
    let mut calls: Vec<&Value> = Vec::new();
    for call in fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let allowed = ["tool_call_id", "function_name", "arguments", "extra"];
        let call = check_fields(call, &allowed, wrong);
        assert!(call["arguments"].is_object() && call["function_name"].is_string());
        calls.push(&call["tool_call_id"]);
    }
    for result in results(step) {
        let allowed = ["source_call_id", "content", "subagent_trajectory_ref", "extra"];
        let result = check_fields(result, &allowed, wrong);
        if let Some(id) = result.get("source_call_id")
            && !calls.contains(&id)
        {
            wrong.push(format!("a result of {id}, which is no call of its step"));
        }
        assert!(result.get("content").is_none_or(Value::is_string));
        let references = result.get("subagent_trajectory_ref").and_then(Value::as_array);
        for reference in references.into_iter().flatten() {
            check_fields(reference, &["trajectory_id", "session_id", "extra"], wrong);
            referred.push(reference["trajectory_id"].as_str().unwrap());
        }
    }
}

fn results(step: &Value) -> impl Iterator<Item = &Value> {
    step["observation"]["results"].as_array().into_iter().flatten()
}

/// The parts of a trajectory, restored in order as documented.
pub fn items(trajectory: &Value) -> Vec<Item> {
    let steps = trajectory["steps"].as_array().unwrap();
    steps.iter().flat_map(items_of_step).collect()
}

fn items_of_step(step: &Value) -> Vec<Item> {
    let extra = &step["extra"]["unspool"];
    let mut said = TextCursor::of(&step["message"]);
    let mut thought = TextCursor::of(&step["reasoning_content"]);
    let mut calls = step["tool_calls"].as_array().into_iter().flatten();
    let mut items = Vec::new();
    for part in extra["parts"].as_array().into_iter().flatten() {
        let kind = part["kind"].as_str().unwrap();
        let item = match (kind, &part["chars"]) {
            ("tool", _) => {
                let id = calls.next().unwrap()["tool_call_id"].as_str().unwrap();
                assert_eq!(part["call_id"], id);
                let mut own = results(step).filter(|result| result["source_call_id"] == id);
                let content = own.next().map_or("", |own| own["content"].as_str().unwrap_or(""));
                (format!("tool {id}"), content.to_owned())
            }
            ("reasoning", chars) => (kind.to_owned(), thought.next(chars)),
            (_, Value::Null) => super::otel::held(part),
            (_, chars) => (kind.to_owned(), said.next(chars)),
        };
        items.push(item);
    }
    // A step that only carries a part has a label as its text.
    let label = items.first().map(|(kind, _)| format!("[{kind}]")).unwrap_or_default();
    assert!(said.0.is_empty() || said.0 == label || items.is_empty(), "{} is left over", said.0);
    assert!(thought.0.is_empty() && calls.next().is_none(), "something has no place");
    if extra["prompt"] == true {
        items.iter_mut().for_each(|(kind, _)| *kind = format!("user {kind}"));
    }
    items
}

/// Splits a joined text by lengths.
struct TextCursor(String, bool);

impl TextCursor {
    fn of(text: &Value) -> TextCursor {
        TextCursor(text.as_str().unwrap_or_default().to_owned(), false)
    }

    fn next(&mut self, chars: &Value) -> String {
        let chars = chars.as_u64().unwrap() as usize;
        if chars == 0 {
            return String::new();
        }
        if self.1 {
            self.0 = self.0.strip_prefix("\n\n").unwrap().to_owned();
        }
        self.1 = true;
        let piece: String = self.0.chars().take(chars).collect();
        self.0 = self.0[piece.len()..].to_owned();
        piece
    }
}

/// Compares the steps' tokens with those of the session.
pub fn sums(transcript: &Transcript, trajectory: &Value) -> Vec<String> {
    let usage = transcript.usage();
    let mut found = [0; 2];
    for step in trajectory["steps"].as_array().unwrap() {
        found[0] += step["metrics"]["prompt_tokens"].as_u64().unwrap_or(0);
        found[1] += step["metrics"]["completion_tokens"].as_u64().unwrap_or(0);
    }
    let expected = [usage.input + usage.cache_read + usage.cache_write, usage.output];
    let totals = &trajectory["final_metrics"];
    let total = |name: &str| totals[name].as_u64().unwrap_or(0);
    let totals = [total("total_prompt_tokens"), total("total_completion_tokens")];
    let wrong = expected != found || expected != totals;
    wrong
        .then(|| format!("{expected:?} tokens became {found:?}, in all {totals:?}"))
        .into_iter()
        .collect()
}

/// A trajectory as readable text.
pub fn readable(trajectory: &Value) -> String {
    let mut out = String::new();
    write(&mut out, 0, trajectory);
    out
}

fn write(out: &mut String, indent: usize, trajectory: &Value) {
    for (key, value) in trajectory.as_object().unwrap() {
        match key.as_str() {
            "steps" => value
                .as_array()
                .unwrap()
                .iter()
                .for_each(|step| super::lines(out, indent, "step", step)),
            "subagent_trajectories" => value.as_array().unwrap().iter().for_each(|sub| {
                out.push_str(&format!("{}sub-agent\n", "  ".repeat(indent)));
                write(out, indent + 1, sub);
            }),
            _ => super::lines(out, indent, key, value),
        }
    }
}
