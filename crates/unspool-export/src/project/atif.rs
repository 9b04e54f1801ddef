//! Trajectories in the Agent Trajectory Interchange Format (ATIF v1.8, Harbor): one agent step per
//! model call with its tool calls and results, user and system steps between them, and nested
//! trajectories of sub-agents. The format cannot express the order of text, reasoning and calls
//! within a step, nor signatures: `extra.unspool.parts` of a step keeps both.
//!
//! Steps are written as turns are read. Only fields of the format are written.

mod schema;
mod steps;

use std::io::{self, Write};

use rustc_hash::FxHashSet;
use schema::{Extra, FinalMetrics, Step};
use serde::Serialize;
use serde_json::{Value, json};
use unspool_model::document::time;
use unspool_model::id::SessionId;
use unspool_model::price::Prices;
use unspool_model::session::Usage;
use unspool_model::summary::Summary;

use super::calls::{call_reference, prompt_tokens};
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};

pub const PROJECTION: Projection = Projection {
    name: "atif",
    title: "ATIF trajectory",
    extension: "json",
    media_type: "application/json",
    about: "a trajectory in Harbor's interchange format ATIF v1.8, with its sub-agents inside",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

/// The deepest nesting of sub-agents. Deeper ones are named but not included.
const MAX_AGENT_DEPTH: usize = 8;

fn write(
    mut stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let mut seen = FxHashSet::from_iter([stream.head.session.id]);
    let mut writer = Writer { out, prices: &options.prices, seen: &mut seen };
    writer.trajectory(&mut stream, 0)?;
    out.write_all(b"\n")?;
    Ok(())
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    prices: &'a Prices,
    /// Sessions that are or will be in the document. Each is written once, so cycles of agents end.
    seen: &'a mut FxHashSet<SessionId>,
}

/// Totals of the written steps.
#[derive(Default)]
struct Sums {
    steps: u64,
    usage: Usage,
}

impl Writer<'_> {
    fn trajectory(
        &mut self,
        stream: &mut SessionStream<'_>,
        depth: usize,
    ) -> Result<(), ProjectError> {
        let session = &stream.head.session;
        self.out.write_all(b"{\"schema_version\":\"ATIF-v1.8\",\"session_id\":")?;
        self.put(&session.agent_session_id)?;
        self.out.write_all(b",\"trajectory_id\":")?;
        self.put(&session.id)?;
        self.out.write_all(b",\"agent\":")?;
        self.put(&agent(&stream.head))?;
        self.out.write_all(b",\n\"steps\":[")?;
        let mut sums = Sums::default();
        // The sub-agents whose trajectories follow, by their own ids.
        let mut started: Vec<String> = Vec::new();
        while let Some(turn) = stream.next_counted_turn()? {
            let agents = self.agents(stream, &turn, depth, &mut started)?;
            for step in steps::of_turn(&stream.head.session, &turn, &agents, self.prices) {
                self.step(step, &mut sums)?;
            }
        }
        if sums.steps == 0 {
            // The format requires at least one step.
            let message = "Nothing is recorded of this session.".to_owned();
            self.step(Step::new("system", message, Extra::default()), &mut sums)?;
        }
        self.out.write_all(b"\n],\"final_metrics\":")?;
        self.put(&final_metrics(&stream.head, &sums, self.prices))?;
        self.out.write_all(b",\"extra\":")?;
        self.put(&facts(&stream.head))?;
        let mut between = ",\n\"subagent_trajectories\":[\n";
        for id in &started {
            if let Some(mut agent) = stream.sub_agent(id)? {
                self.out.write_all(between.as_bytes())?;
                self.trajectory(&mut agent, depth + 1)?;
                between = ",\n";
            }
        }
        if between == ",\n" {
            self.out.write_all(b"]")?;
        }
        self.out.write_all(b"}")?;
        Ok(())
    }

    /// The sub-agents of a turn whose trajectories are nested in this one.
    fn agents(
        &mut self,
        stream: &SessionStream<'_>,
        turn: &unspool_model::session::Turn,
        depth: usize,
        started: &mut Vec<String>,
    ) -> Result<FxHashSet<String>, ProjectError> {
        let mut included = FxHashSet::default();
        for id in steps::agent_ids(turn) {
            if depth >= MAX_AGENT_DEPTH || included.contains(id) {
                continue;
            }
            let here = started.iter().any(|seen| seen == id);
            if !here {
                let Some(agent) = stream.sub_agent(id)? else { continue };
                // It is nested elsewhere in the document, where references cannot reach it.
                if !self.seen.insert(agent.head.session.id) {
                    continue;
                }
                started.push(id.to_owned());
            }
            included.insert(id.to_owned());
        }
        Ok(included)
    }

    fn step(&mut self, mut step: Step, sums: &mut Sums) -> Result<(), ProjectError> {
        self.out.write_all(if sums.steps == 0 { b"\n" } else { b",\n" })?;
        sums.steps += 1;
        step.step_id = sums.steps;
        sums.usage.add(step.usage);
        self.put(&step)
    }

    fn put(&mut self, value: &impl Serialize) -> Result<(), ProjectError> {
        serde_json::to_writer(&mut *self.out, value).map_err(io::Error::from)?;
        Ok(())
    }
}

fn agent(head: &Summary) -> Value {
    let session = &head.session;
    let version = session.facts.version.as_deref().unwrap_or("unknown");
    let mut agent = json!({ "name": session.agent, "version": version });
    if let Some(model) = head.models.first() {
        agent["model_name"] = json!(model);
    }
    if let Some(kind) = session.parent.as_ref().and_then(|parent| parent.kind.as_ref()) {
        agent["extra"] = json!({ "unspool": { "kind": kind } });
    }
    agent
}

fn final_metrics(head: &Summary, sums: &Sums, prices: &Prices) -> FinalMetrics {
    let usage = sums.usage;
    let used = |count: u64| (usage != Usage::default()).then_some(count);
    let estimated = head.spending_with_agents.estimated_usd(prices);
    FinalMetrics {
        total_prompt_tokens: used(prompt_tokens(usage)),
        total_completion_tokens: used(usage.output),
        total_cached_tokens: used(usage.cache_read),
        // Only the cost that the agent reported.
        total_cost_usd: head.spending_with_agents.reported_usd().filter(|cost| cost.is_finite()),
        total_steps: sums.steps,
        extra: schema::extra_metrics(usage, estimated),
    }
}

/// Session fields that the format does not have.
fn facts(head: &Summary) -> Value {
    let session = &head.session;
    let mut own = json!({
        "state": session.state.name(),
        "completeness": head.completeness.name(),
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            own[name] = value;
        }
    };
    put("title", head.title.as_ref().map(|title| json!(title)));
    put("project", session.facts.project.as_ref().map(|project| json!(project)));
    put("branch", session.facts.branch.as_ref().map(|branch| json!(branch)));
    put("started_at", time(head.started).map(Value::String));
    put("ended_at", time(head.ended).map(Value::String));
    let parent = session.parent.as_ref();
    let parent = parent.map(|from| {
        let call_id = call_reference(session, &from.call_id);
        json!({ "session": from.session, "call_id": call_id })
    });
    put("parent", parent);
    let forked = session.forked_from.as_ref();
    put("forked_from", forked.map(|from| json!({ "session": from.session, "turn": from.turn })));
    json!({ "unspool": own })
}
