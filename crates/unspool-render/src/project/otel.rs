//! Spans by the semantic conventions of OpenTelemetry for generative AI, as OTLP/JSON: one trace
//! for a session, `invoke_agent` for each turn, below it `chat` for each model call and
//! `execute_tool` for each tool, and a sub-agent's turns below the tool that started it. Messages
//! are structured values with their parts in order.
//!
//! Ids are digests of our ids, so the same session gives the same trace. Spans are written turn by
//! turn. A missing time is taken from a neighbour and marked `unspool.time.estimated`.

mod clock;
mod message;
mod provider;
mod spans;
mod value;

use std::io::{self, Write};

use rustc_hash::FxHashSet;
use serde_json::json;
use unspool_core::id::{SessionId, sha256};
use unspool_core::summary::Summary;

use super::{Options, ProjectError, Projection, Story, Way};
use clock::nanos;
use spans::{Above, Delegation, Telling};
use value::Attributes;

pub const PROJECTION: Projection = Projection {
    name: "otel",
    title: "OpenTelemetry trace",
    extension: "json",
    media_type: "application/json",
    about: "a trace of OpenTelemetry (OTLP/JSON, conventions for generative AI), with its sub-agents",
    way: Way::Told(write),
};

/// The deepest nesting of sub-agents. Deeper ones are named but not included.
const DEPTH: usize = 8;
/// The last release of the conventions that still contained generative AI.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

fn write(mut story: Story<'_>, _: &Options, out: &mut dyn Write) -> Result<(), ProjectError> {
    let session = &story.head.session;
    let resource = json!({ "attributes": resource(&story.head).into_values() });
    write!(out, "{{\"resourceSpans\":[{{\"resource\":{resource},\n\"scopeSpans\":[")?;
    write!(out, "{{\"scope\":{{\"name\":\"unspool\"}},\"spans\":[")?;
    let trace = sha256(session.id.to_string().as_bytes()).chars().take(32).collect();
    let known = FxHashSet::from_iter([session.id]);
    let mut writer = Writer { out, trace, known, between: "\n" };
    writer.session(&mut story, None, 0)?;
    writeln!(out, "\n],\"schemaUrl\":\"{SCHEMA}\"}}]}}]}}")?;
    Ok(())
}

fn resource(head: &Summary) -> Attributes {
    let session = &head.session;
    let mut all = Attributes::default();
    all.text("service.name", &session.agent);
    all.maybe_text("service.version", session.facts.version.as_deref());
    all.text("unspool.session.id", &session.id.to_string());
    all.text("unspool.session.completeness", head.completeness.name());
    all.maybe_text("unspool.session.title", head.title.as_deref());
    all.maybe_text("unspool.session.project", session.facts.project.as_deref());
    all.maybe_text("unspool.session.branch", session.facts.branch.as_deref());
    all
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    trace: String,
    /// Sessions in the trace. Each is written once, so cycles of agents end.
    known: FxHashSet<SessionId>,
    between: &'static str,
}

impl Writer<'_> {
    fn session(
        &mut self,
        story: &mut Story<'_>,
        above: Option<Above>,
        depth: usize,
    ) -> Result<(), ProjectError> {
        let begin = story.head.started.and_then(nanos);
        let begin = begin.or(above.as_ref().map(|above| above.begin)).unwrap_or(0);
        let mut telling = Telling::new(&story.head.session, self.trace.clone(), above, begin);
        while let Some(turn) = story.next_turn()? {
            let told = telling.turn(&turn);
            for span in told.spans {
                self.out.write_all(self.between.as_bytes())?;
                serde_json::to_writer(&mut *self.out, &span).map_err(io::Error::from)?;
                self.between = ",\n";
            }
            for Delegation { agent, above } in told.delegations {
                if depth >= DEPTH {
                    continue;
                }
                if let Some(mut sub_agent) = story.sub_agent(&agent)?
                    && self.known.insert(sub_agent.head.session.id)
                {
                    self.session(&mut sub_agent, Some(above), depth + 1)?;
                }
            }
        }
        Ok(())
    }
}
