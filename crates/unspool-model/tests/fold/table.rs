//! Parts as short strings, so that a transcript is compared as a table.

use unspool_model::part::{Body, Part, Tool};
use unspool_model::session::Turn;

pub fn as_tool(part: &Part) -> Option<Tool> {
    if let Body::Tool(tool) = &part.body { Some((**tool).clone()) } else { None }
}

pub fn shown(turn: &Turn) -> Vec<String> {
    turn.parts.iter().map(show).collect()
}

/// A part as one short string. `…` marks open prose.
pub fn show(part: &Part) -> String {
    let open = |open: bool| if open { "…" } else { "" };
    match &part.body {
        Body::Text(text) => format!("text{}:{:?}", open(text.open), text.text),
        Body::Reasoning(r) if r.redacted => format!("reasoning{}:redacted", open(r.open)),
        Body::Reasoning(r) => format!("reasoning{}:{:?}", open(r.open), r.text),
        Body::Tool(tool) => show_tool(tool),
        Body::Agent(agents) => {
            let of: Vec<String> = agents
                .agents
                .iter()
                .map(|agent| format!("{} {}", agent.id, agent.state.name()))
                .collect();
            format!("agents of {}: {}", agents.call_id, of.join(", "))
        }
        Body::Notice(notice) => format!("notice:{}", notice.code),
        Body::Error(failure) => format!("error:{:?}", failure.text),
        Body::Data(data) => format!("data:{} {}", data.kind, data.payload.text()),
        Body::Interjection(words) => format!("interjection:{:?}", words.text),
        body @ (Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)) => body.kind().name().to_owned(),
    }
}

fn show_tool(tool: &Tool) -> String {
    let mut out = format!("tool {} {}", tool.call_id, tool.state.name());
    if let Some(output) = &tool.output {
        out += &format!(" {output:?}");
    }
    for earlier in &tool.earlier {
        let (question, answer) = (&earlier.question.items[0].question, &earlier.answer);
        out += &format!(" first asked {question:?}: {}", answer.decision.name());
    }
    match (&tool.question, &tool.answer) {
        (Some(question), None) => out += &format!(" asks {:?}", question.items[0].question),
        (Some(question), Some(answer)) => {
            out += &format!(" asked {:?}: {}", question.items[0].question, answer.decision.name());
        }
        (None, Some(answer)) => out += &format!(" answer: {}", answer.decision.name()),
        (None, None) => {}
    }
    out
}
