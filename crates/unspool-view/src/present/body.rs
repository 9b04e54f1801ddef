//! Blocks of each part kind. The match is exhaustive: a new kind must be added here.

use serde_json::Value;
use unspool_model::part::{
    Agent, AgentState, Agents, Body, Compaction, Failure, File, McpSnapshot, Notice, Patch,
    Reasoning, SourceLink, TaskList, Text,
};

use super::{ansi, diff, format, json, markdown, tools};
use crate::block::{
    Block, Code, Field, Fold, Icon, List, ListItem, Node, Notice as NoticeBlock, Span, Tone, Tree,
    TreeDetail,
};

/// More agents than this are shown as a count (R-003-27).
const MAX_SHOWN_AGENTS: usize = 5;
const MAX_SUMMARY_CHARS: usize = 160;

/// The blocks of a part's body.
pub fn body(body: &Body) -> Vec<Block> {
    match body {
        Body::Text(text) => text_blocks(text),
        Body::Reasoning(reasoning) => vec![reasoning_fold(reasoning)],
        Body::Tool(tool) => vec![Block::Card(Box::new(tools::card(tool)))],
        Body::Agent(agents) => vec![tree(agents)],
        Body::Interjection(interjection) => literal(&interjection.text),
        Body::TaskList(list) => vec![task_list(list)],
        Body::SkillLoad(skill) => {
            vec![fold(&format!("Skill {}", skill.name), &skill.text, markdown::blocks(&skill.text))]
        }
        Body::McpSnapshot(snapshot) => vec![servers(snapshot)],
        Body::ContextInfo(context) => {
            let text = tools::added_text(&context.text);
            vec![fold(&context.title, text, literal(text))]
        }
        Body::Compaction(compaction) => vec![compaction_fold(compaction)],
        Body::File(file) => file_blocks(file),
        Body::Source(source) => vec![source_link(source)],
        Body::Patch(patch) => patch_blocks(patch),
        // What it said is said elsewhere.
        Body::Notice(notice) if notice.code.is_empty() && notice.text.is_empty() => Vec::new(),
        Body::Notice(notice) => vec![notice_block(notice)],
        Body::Error(failure) => vec![error(failure)],
        Body::Data(data) => {
            let text = json::pretty(data.payload.text());
            vec![fold(&data.kind, &text, vec![json::block(data.payload.text())])]
        }
    }
}

/// Text as typed, without Markdown.
pub fn literal(text: &str) -> Vec<Block> {
    let text = text.trim_matches('\n');
    match text.trim().is_empty() {
        true => Vec::new(),
        false => vec![Block::Paragraph { spans: vec![Span::plain(text)] }],
    }
}

fn text_blocks(text: &Text) -> Vec<Block> {
    let mut blocks = markdown::blocks(&text.text);
    let items: Vec<ListItem> = text
        .citations
        .iter()
        .map(|citation| {
            let value = citation.value();
            // Some citations nest the source in an object of its own.
            let value = value.get("source").filter(|source| source.is_object()).unwrap_or(&value);
            let read = |key: &str| value.get(key).and_then(Value::as_str);
            let url = read("url").unwrap_or_default();
            let name = read("title").or_else(|| read("document_title")).unwrap_or(url);
            let mut spans =
                vec![Span::plain(format::first_line(name, MAX_SUMMARY_CHARS)).link(url)];
            if name.is_empty() {
                spans =
                    vec![Span::plain(format::first_line(citation.text(), MAX_SUMMARY_CHARS)).dim()];
            }
            if let Some(quote) = read("cited_text") {
                let quote = format::first_line(quote, MAX_SUMMARY_CHARS);
                spans.push(Span::plain(format!("  “{quote}”")).dim());
            }
            ListItem { check: None, blocks: vec![Block::Paragraph { spans }] }
        })
        .collect();
    if !items.is_empty() {
        blocks.push(Block::List(List { start: Some(1), tight: true, items }));
    }
    blocks
}

/// The first line of a reasoning text.
pub fn reasoning_summary(reasoning: &Reasoning) -> String {
    if reasoning.redacted && reasoning.text.is_empty() {
        return "Redacted reasoning".to_owned();
    }
    // Models put titles in bold; drop the `**`.
    format::first_line(&reasoning.text.replace("**", ""), MAX_SUMMARY_CHARS)
}

fn reasoning_fold(reasoning: &Reasoning) -> Block {
    let title = match reasoning.duration_ms {
        Some(duration) => format!("Reasoning · {}", format::duration(duration)),
        None => "Reasoning".to_owned(),
    };
    Block::Fold(Fold {
        title: vec![Span::plain(title).dim()],
        summary: reasoning_summary(reasoning),
        open: false,
        tone: Tone::Muted,
        blocks: thought_blocks(reasoning),
    })
}

/// Reasoning outside thinking mode: dimmed, in place, without a panel (C-10).
pub fn plain_reasoning(reasoning: &Reasoning) -> Vec<Block> {
    vec![Block::Aside { blocks: thought_blocks(reasoning) }]
}

fn thought_blocks(reasoning: &Reasoning) -> Vec<Block> {
    if reasoning.redacted && reasoning.text.is_empty() {
        return vec![notice(Tone::Muted, None, "Redacted reasoning")];
    }
    markdown::blocks(&reasoning.text)
}

fn tree(agents: &Agents) -> Block {
    let runs = agents.agents.iter().any(|agent| !agent.state.is_terminal());
    Block::Tree(Tree {
        detail: if runs { TreeDetail::Full } else { TreeDetail::Compact },
        shown: MAX_SHOWN_AGENTS,
        nodes: agents.agents.iter().map(node).collect(),
    })
}

pub fn node(agent: &Agent) -> Node {
    let icon = match agent.state {
        AgentState::Pending => Icon::Pending,
        AgentState::Running => Icon::Running,
        AgentState::Background => Icon::Background,
        AgentState::Completed => Icon::Completed,
        AgentState::Failed => Icon::Failed,
        AgentState::Interrupted => Icon::Interrupted,
    };
    let mut label = vec![Span::plain(format::first_line(&agent.name, 80)).strong()];
    if !agent.task.is_empty() {
        label
            .push(Span::plain(format!("  {}", format::first_line(&agent.task, MAX_SUMMARY_CHARS))));
    }
    if agent.background && agent.state != AgentState::Background {
        label.push(Span::plain("  in the background").dim());
    }
    let note = agent.activity.as_deref().map(|text| format::first_line(text, MAX_SUMMARY_CHARS));
    Node {
        session: None,
        key: agent.id.clone(),
        icon,
        label,
        state: agent.state.name().into(),
        note: note.map(Span::plain).into_iter().collect(),
        children: Vec::new(),
    }
}

fn task_list(list: &TaskList) -> Block {
    let items = list.items.iter().map(|item| {
        let check = item.state.into();
        tools::task_item(check, &item.text)
    });
    Block::List(List { start: None, tight: true, items: items.collect() })
}

fn servers(snapshot: &McpSnapshot) -> Block {
    let fields = snapshot.servers.iter().map(|server| {
        let mut value = Vec::new();
        if let Some(status) = &server.status {
            value.push(Span::plain(format!("{status}  ")).strong());
        }
        value.push(Span::plain(server.tools.join(", ")));
        Field::new(server.name.clone(), value)
    });
    let names: Vec<&str> = snapshot.servers.iter().map(|server| server.name.as_str()).collect();
    fold("MCP servers", &names.join(", "), vec![Block::Fields { fields: fields.collect() }])
}

fn compaction_fold(compaction: &Compaction) -> Block {
    let mut title = "Conversation compacted".to_owned();
    if let Some(trigger) = &compaction.trigger {
        title.push_str(&format!(" · {trigger}"));
    }
    match (compaction.tokens_before, compaction.tokens_after) {
        (Some(before), Some(after)) => title.push_str(&format!(
            " · {} → {} tokens",
            format::number(before),
            format::number(after)
        )),
        (Some(before), None) => title.push_str(&format!(" · {} tokens", format::number(before))),
        (None, Some(after)) => title.push_str(&format!(" · → {} tokens", format::number(after))),
        (None, None) => {}
    }
    if let Some(duration) = compaction.duration_ms {
        title.push_str(&format!(" · {}", format::duration(duration)));
    }
    fold(&title, &compaction.summary, markdown::blocks(&compaction.summary))
}

fn file_blocks(file: &File) -> Vec<Block> {
    let mut blocks = vec![Block::File(tools::file_reference(file))];
    if let Some(text) = file.text.as_deref().filter(|text| !text.is_empty()) {
        let language = file.name.as_deref().and_then(format::language);
        let code = Code { language, text: text.to_owned(), first_line: None };
        blocks.push(fold("Content", text, vec![Block::Code(code)]));
    }
    blocks
}

fn source_link(source: &SourceLink) -> Block {
    let url = source.url.as_deref().unwrap_or_default();
    let title = source.title.as_deref().unwrap_or(url);
    let mut spans = vec![Span::plain(format::first_line(title, MAX_SUMMARY_CHARS)).link(url)];
    if title != url && !url.is_empty() {
        spans.push(Span::plain(format!("  {url}")).dim());
    }
    if let Some(quote) = &source.quote {
        spans.push(Span::plain(format!("\n“{}”", quote.trim())).dim());
    }
    Block::Paragraph { spans }
}

fn patch_blocks(patch: &Patch) -> Vec<Block> {
    let mut diffs = diff::patch(&patch.diff);
    for diff in diffs.iter_mut().filter(|diff| diff.path.is_none()) {
        diff.path = patch.path.clone();
    }
    if !diffs.is_empty() {
        return diffs.into_iter().map(Block::Diff).collect();
    }
    let spans = vec![Span::plain(patch.path.clone().unwrap_or_default()).path()];
    let mut blocks = vec![Block::Paragraph { spans }];
    if !patch.diff.is_empty() {
        let text = patch.diff.clone();
        let language = Some("diff".to_owned());
        blocks.push(Block::Code(Code { language, text, first_line: None }));
    }
    blocks
}

fn notice_block(notice: &Notice) -> Block {
    let tone = match notice.code.as_str() {
        // Output of a local command, with its colours.
        "command-output" => return Block::Terminal(ansi::terminal(&notice.text)),
        "interrupted" => Tone::Interrupted,
        "hook-feedback" | "hook-blocked" | "retry" | "denied" | "refusal" => Tone::Warning,
        _ => Tone::Muted,
    };
    let label = notice_label(&notice.code);
    let repeats = notice.text.eq_ignore_ascii_case(label);
    self::notice(tone, Some(label).filter(|_| !repeats), &notice.text)
}

/// The words for a code. A code without words of its own is shown as it is: nothing is hidden
/// because it is unknown.
fn notice_label(code: &str) -> &str {
    match code {
        "informational" => "note",
        "mode-change" => "mode",
        "task-notification" => "background task",
        "tool-notification" => "tool",
        "hook-feedback" => "hook",
        "hook-blocked" => "blocked by a hook",
        "prompt-removed" => "prompt removed",
        "no-reply" => "no reply",
        other => other,
    }
}

fn notice(tone: Tone, code: Option<&str>, text: &str) -> Block {
    let code = code.filter(|code| !code.is_empty()).map(Into::into);
    Block::Notice(NoticeBlock { tone, code, text: text.to_owned() })
}

fn error(failure: &Failure) -> Block {
    let mut code = failure.code.clone().unwrap_or_else(|| "error".to_owned());
    if let Some(status) = failure.status {
        code.push_str(&format!(" {status}"));
    }
    notice(Tone::Failed, Some(&code), &failure.text)
}

fn fold(title: &str, text: &str, blocks: Vec<Block>) -> Block {
    Block::Fold(Fold {
        title: vec![Span::plain(format::first_line(title, MAX_SUMMARY_CHARS))],
        summary: format::first_line(text, MAX_SUMMARY_CHARS),
        open: false,
        tone: Tone::Muted,
        blocks,
    })
}
