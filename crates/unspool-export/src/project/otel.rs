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

use clock::nanos;
use rustc_hash::FxHashSet;
use serde_json::json;
use spans::{Delegation, ParentSpan, SpanBuilder};
use unspool_model::id::{SessionId, sha256};
use unspool_model::summary::Summary;
use value::Attributes;

use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};

pub const PROJECTION: Projection = Projection {
    name: "otel",
    title: "OpenTelemetry trace",
    extension: "json",
    media_type: "application/json",
    about: "an OpenTelemetry trace (OTLP/JSON, GenAI semantic conventions), with its sub-agents",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

/// The deepest nesting of sub-agents. Deeper ones are named but not included.
const MAX_AGENT_DEPTH: usize = 8;
/// The last release of the conventions that still contained generative AI.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

fn write(
    mut stream: SessionStream<'_>,
    _: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let session = &stream.head.session;
    let resource = json!({ "attributes": resource(&stream.head).into_values() });
    write!(out, "{{\"resourceSpans\":[{{\"resource\":{resource},\n\"scopeSpans\":[")?;
    write!(out, "{{\"scope\":{{\"name\":\"unspool\"}},\"spans\":[")?;
    let trace = sha256(session.id.to_string().as_bytes()).chars().take(32).collect();
    let seen = FxHashSet::from_iter([session.id]);
    let mut writer = Writer { out, trace, seen, between: "\n" };
    writer.session(&mut stream, None, 0)?;
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
    seen: FxHashSet<SessionId>,
    between: &'static str,
}

impl Writer<'_> {
    fn session(
        &mut self,
        stream: &mut SessionStream<'_>,
        parent_span: Option<ParentSpan>,
        depth: usize,
    ) -> Result<(), ProjectError> {
        let begin = stream.head.started.and_then(nanos);
        let begin =
            begin.or(parent_span.as_ref().map(|parent_span| parent_span.begin)).unwrap_or(0);
        let mut builder =
            SpanBuilder::new(&stream.head.session, self.trace.clone(), parent_span, begin);
        while let Some(turn) = stream.next_counted_turn()? {
            let turn_spans = builder.turn(&turn);
            for span in turn_spans.spans {
                self.out.write_all(self.between.as_bytes())?;
                serde_json::to_writer(&mut *self.out, &span).map_err(io::Error::from)?;
                self.between = ",\n";
            }
            for Delegation { agent, parent_span } in turn_spans.delegations {
                if depth >= MAX_AGENT_DEPTH {
                    continue;
                }
                if let Some(mut sub_agent) = stream.sub_agent(&agent)?
                    && self.seen.insert(sub_agent.head.session.id)
                {
                    self.session(&mut sub_agent, Some(parent_span), depth + 1)?;
                }
            }
        }
        Ok(())
    }
}
