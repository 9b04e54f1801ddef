//! Compares records with the schema of ATIF 1.8 and says where they differ. They are decoded anyway:
//! fields that the schema does not have are left out, everything else is kept.

use super::super::Fields;
use super::calls::{CallIndex, place_of};
use super::subagents::MAX_DEPTH;

/// How many problems of one record are named.
const MAX_PROBLEMS: usize = 5;

const ROOT: &[&str] = &[
    "schema_version",
    "session_id",
    "trajectory_id",
    "agent",
    "steps",
    "notes",
    "final_metrics",
    "continued_trajectory_ref",
    "extra",
    "subagent_trajectories",
];
const AGENT: &[&str] = &["name", "version", "model_name", "tool_definitions", "extra"];
const FINAL_METRICS: &[&str] = &[
    "total_prompt_tokens",
    "total_completion_tokens",
    "total_cached_tokens",
    "total_cost_usd",
    "total_steps",
    "extra",
];
const STEP: &[&str] = &[
    "step_id",
    "timestamp",
    "source",
    "model_name",
    "reasoning_effort",
    "message",
    "reasoning_content",
    "tool_calls",
    "observation",
    "metrics",
    "extra",
    "llm_call_count",
    "is_copied_context",
];
const METRICS: &[&str] = &[
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "cost_usd",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "extra",
];
const CALL: &[&str] = &["tool_call_id", "function_name", "arguments", "extra"];
const RESULT: &[&str] = &["source_call_id", "content", "subagent_trajectory_ref", "extra"];

/// True for the fields around the steps. A step has none of these but `extra`.
pub(super) fn is_root(fields: &Fields<'_>) -> bool {
    let is_root = |name: &str| ROOT.contains(&name) && name != "extra";
    let is_step = |name: &str| STEP.contains(&name) && name != "extra";
    fields.names().any(|name| is_root(&name)) || !fields.names().any(|name| is_step(&name))
}

/// The problems of a trajectory, or of the fields around its steps.
pub(super) fn trajectory(fields: &Fields<'_>) -> Vec<String> {
    let mut problems = Problems::default();
    problems.trajectory(fields, "", 0);
    problems.0
}

/// The problems of one step; `before` is the number of steps before it.
pub(super) fn step(fields: &Fields<'_>, before: u32, calls: &CallIndex) -> Vec<String> {
    let mut problems = Problems::default();
    problems.step(fields, &format!("steps[{before}]"), Some(calls));
    problems.0
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, path: &str, what: &str) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(format!("{path}: {what}"));
        }
    }

    /// Reports the fields that the schema does not have.
    fn names(&mut self, fields: &Fields<'_>, path: &str, known: &[&str]) {
        for name in fields.names().filter(|name| !known.contains(&&**name)) {
            self.add(&format!("{path}{name}"), "not a field of ATIF; it was left out");
        }
    }

    fn trajectory(&mut self, fields: &Fields<'_>, path: &str, depth: usize) {
        self.names(fields, path, ROOT);
        self.names(&fields.fields("agent"), &format!("{path}agent."), AGENT);
        let metrics = fields.fields("final_metrics");
        self.names(&metrics, &format!("{path}final_metrics."), FINAL_METRICS);
        for (nth, (_, step)) in fields.items("steps").enumerate() {
            let path = format!("{path}steps[{nth}]");
            if step.is_object() {
                self.step(&step, &path, None);
            } else {
                self.add(&path, "not an object; it was left out");
            }
        }
        let agents = fields.items("subagent_trajectories").enumerate();
        for (nth, (_, child)) in agents {
            let path = format!("{path}subagent_trajectories[{nth}].");
            if !child.is_object() || depth >= MAX_DEPTH {
                self.add(path.trim_end_matches('.'), "not an object, or too deep; it was left out");
                continue;
            }
            if !child.has("trajectory_id") {
                self.add(&format!("{path}trajectory_id"), "missing");
            }
            self.trajectory(&child, &path, depth + 1);
        }
    }

    fn step(&mut self, fields: &Fields<'_>, path: &str, calls: Option<&CallIndex>) {
        self.names(fields, &format!("{path}."), STEP);
        if fields.number("step_id").is_none() {
            self.add(&format!("{path}.step_id"), "missing, or not a number");
        }
        let source = fields.text("source").unwrap_or_default();
        if !["user", "agent", "system"].contains(&&*source) {
            let what = "neither user, agent nor system; the step is kept as data";
            self.add(&format!("{path}.source"), what);
        }
        let is_list = |name: &str| fields.raw(name).is_some_and(|raw| raw.starts_with('['));
        if !fields.is_text("message") && !is_list("message") {
            self.add(&format!("{path}.message"), "neither a text nor a list of content parts");
        }
        if fields.has("timestamp") && fields.time("timestamp").is_none() {
            self.add(&format!("{path}.timestamp"), "not a time with an offset from UTC");
        }
        self.names(&fields.fields("metrics"), &format!("{path}.metrics."), METRICS);
        for (nth, call) in fields.list("tool_calls").enumerate() {
            self.names(&call, &format!("{path}.tool_calls[{nth}]."), CALL);
        }
        self.results(fields, path, calls);
    }

    fn results(&mut self, fields: &Fields<'_>, path: &str, calls: Option<&CallIndex>) {
        let own: Vec<Fields<'_>> = fields.list("tool_calls").collect();
        for (nth, result) in fields.fields("observation").list("results").enumerate() {
            let path = format!("{path}.observation.results[{nth}].");
            self.names(&result, &path, RESULT);
            let Some(id) = result.text("source_call_id").filter(|id| !id.is_empty()) else {
                continue;
            };
            let is_known = place_of(&own, fields, &result).is_some()
                || calls.is_some_and(|calls| calls.find(&id).is_some());
            if !is_known {
                let what = "matches no tool call; the result stands by itself";
                self.add(&format!("{path}source_call_id"), what);
            }
        }
    }
}
