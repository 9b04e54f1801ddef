//! The current activity of a live session in one line, from the newest parts of its last turn.

use serde::{Deserialize, Serialize};
use unspool_model::part::{Body, Part, Tool};
use unspool_model::session::Turn;

use super::{body, format};
use crate::block::{Block, text_of};

/// Maximum length of a command or question.
const MAX_SUMMARY_CHARS: usize = 120;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// `Bash: npm test`, `writing`, `thinking`, `2 sub-agents`.
    Working { what: String },
    /// A question to the user is open.
    Waiting { question: String },
}

impl Activity {
    /// The activity of this turn. An open question comes first, because it blocks the agent. Then
    /// running sub-agents, before running calls, which only wait for them. Otherwise open prose.
    pub fn of(turn: &Turn) -> Activity {
        let newest = || turn.parts.iter().rev();
        if let Some(question) = newest().find_map(open_question) {
            return Activity::Waiting { question };
        }
        let working = |what: String| Activity::Working { what };
        let agents: usize = newest().map(running_agents).sum();
        if agents > 0 {
            return working(format::count(agents, "sub-agent"));
        }
        let mut running = newest().filter_map(running_tool);
        if let Some(tool) = running.next() {
            let more = running.count();
            let what = call(tool);
            return working(if more > 0 { format!("{what}, and {more} more") } else { what });
        }
        let open = newest().find_map(open_prose);
        working(open.unwrap_or("working").to_owned())
    }
}

fn running_tool(part: &Part) -> Option<&Tool> {
    if let Body::Tool(tool) = &part.body
        && !tool.state.is_terminal()
    {
        return Some(tool);
    }
    None
}

fn open_question(part: &Part) -> Option<String> {
    let tool = running_tool(part)?;
    let question = tool.question.as_ref().filter(|_| tool.answer.is_none())?;
    let question_text = question.items.iter().map(|item| item.question.as_str());
    let question_text =
        question_text.map(str::trim).find(|question_text| !question_text.is_empty());
    Some(question_text.map_or_else(
        || call(tool),
        |question_text| format::first_line(question_text, MAX_SUMMARY_CHARS),
    ))
}

fn running_agents(part: &Part) -> usize {
    if let Body::Agent(group) = &part.body {
        group.agents.iter().filter(|agent| !agent.state.is_terminal()).count()
    } else {
        0
    }
}

fn open_prose(part: &Part) -> Option<&'static str> {
    if let Body::Text(text) = &part.body {
        text.open.then_some("writing")
    } else if let Body::Reasoning(reasoning) = &part.body {
        reasoning.open.then_some("thinking")
    } else {
        None
    }
}

/// A call as in the head of its card.
fn call(tool: &Tool) -> String {
    let shown = body(&Body::Tool(Box::new(tool.clone())));
    let head = shown.iter().find_map(|block| {
        let Block::Card(card) = block else { return None };
        let summary = text_of(&card.summary);
        let summary = format::first_line(&summary, MAX_SUMMARY_CHARS);
        Some(if summary.is_empty() {
            card.title.clone()
        } else {
            format!("{}: {summary}", card.title)
        })
    });
    head.unwrap_or_else(|| tool.name.clone())
}
