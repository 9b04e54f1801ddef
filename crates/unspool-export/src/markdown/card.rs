//! Paints tool calls and agents as Markdown: a summary line, the question, and the output, folded
//! under a title that describes it.

use unspool_view::block::{
    Badge, Block, Card, Code, Diff, Icon, Node, Question, QuestionItem, Span, Terminal, Tone, Tree,
    TreeDetail, text_of,
};
use unspool_view::present::{PartView, agents, format};

use super::inline::{escape, head, line};
use super::{block, blocks, details, gist_of, indent, is_short, join_blocks};

/// Adds a painted part. Parallel calls are the items of one list, below the title of their group.
pub fn add_part(out: &mut Vec<String>, view: &PartView, painted: String) {
    // A call that is shown as its agents.
    if painted.trim().is_empty() {
        return;
    }
    let Some(member) = &view.group else {
        out.push(painted);
        return;
    };
    // A single agent is an item already.
    let agent = painted.strip_prefix("- ").filter(|rest| !rest.contains("\n- "));
    let item = format!("- {}", indent(agent.unwrap_or(&painted), 2));
    out.extend(member.title.as_ref().map(|title| format!("*{title}*")));
    match out.last_mut().filter(|last| member.title.is_none() && last.starts_with("- ")) {
        Some(list) => list.push_str(&format!("\n\n{item}")),
        None => out.push(item),
    }
}

pub fn lay(card: &Card) -> String {
    let mut facts = vec![badge(&card.badge)];
    facts.extend(card.duration_ms.map(format::duration));
    let summary = head(&card.summary);
    let space = if summary.is_empty() { "" } else { " " };
    let title = format!("**{}**{space}{summary} · {}", escape(&card.title), facts.join(" · "));
    let questions = card.earlier.iter().chain(&card.question).map(question);
    let pieces = [title].into_iter().chain(questions);
    join_blocks(pieces.chain(body(&card.body, |run| fold_title(run, card))))
}

fn badge(badge: &Badge) -> String {
    let state = badge.state.as_ref().map(|state| format!(" {state}")).unwrap_or_default();
    format!("`{}`{state}", badge.word)
}

/// The content below a head. Each run of long blocks goes into one fold, if it has a title.
fn body(all: &[Block], title: impl Fn(&[Block]) -> Option<String>) -> Vec<String> {
    let runs = all.chunk_by(|one, other| !needs_no_fold(one) && !needs_no_fold(other));
    let lay = |run: &[Block]| {
        let inside = blocks(run);
        let is_open = inside.is_empty() || run.iter().all(needs_no_fold);
        match title(run).filter(|_| !is_open) {
            Some(title) => details(&title, &inside),
            None => inside,
        }
    };
    runs.map(lay).collect()
}

/// True for blocks that need no fold or have their own.
fn needs_no_fold(block: &Block) -> bool {
    match block {
        Block::Fold(_) | Block::File(_) | Block::Card(_) | Block::Question(_) => true,
        Block::Notice(notice) => is_short(&notice.text),
        Block::Terminal(terminal) => terminal.lines.is_empty(),
        Block::Paragraph { .. }
        | Block::Heading { .. }
        | Block::List(_)
        | Block::Quote { .. }
        | Block::Code(_)
        | Block::Table(_)
        | Block::Rule
        | Block::Diff(_)
        | Block::Fields { .. }
        | Block::Tree(_)
        | Block::Aside { .. } => false,
    }
}

/// The title of a fold: `Output · 12 lines`, `Diff +3 −1`. `None` for a single sentence.
fn fold_title(run: &[Block], card: &Card) -> Option<String> {
    if let [Block::Paragraph { spans }] = run
        && is_short(&text_of(spans))
    {
        return None;
    }
    let mut named: Vec<(&str, usize)> = Vec::new();
    let mut add =
        |name: &'static str, lines: usize| match named.last_mut().filter(|(last, _)| *last == name)
        {
            Some((_, sum)) => *sum += lines,
            None => named.push((name, lines)),
        };
    let mut changes = (0, 0);
    let mut exit_code = None;
    let mut is_input = false;
    for block in run {
        let was_named = std::mem::take(&mut is_input);
        match block {
            Block::Diff(diff) => {
                let (added, removed) = Diff::counts(diff);
                changes = (changes.0 + added, changes.1 + removed);
                add("Diff", 0);
            }
            Block::Terminal(terminal) => {
                add("Output", terminal.lines.len() + terminal.omitted);
                exit_code = exit_code.or(failure_code(terminal));
            }
            Block::Code(_) if was_named => add("Input", 0),
            Block::Code(code) => add(code_label(code, card), code.text.split('\n').count()),
            Block::Fields { .. } => add("Input", 0),
            // A long input value follows a paragraph with its name.
            Block::Paragraph { spans } if spans.iter().all(|span| span.style.dim) => {
                is_input = true;
                add("Input", 0);
            }
            Block::List(list) if list.items.iter().any(|item| item.check.is_some()) => {
                add("Tasks", 0);
            }
            Block::Notice(notice) if notice.tone == Tone::Failed => add("Error", 0),
            Block::Notice(_) => {}
            Block::Paragraph { .. }
            | Block::Heading { .. }
            | Block::List(_)
            | Block::Quote { .. }
            | Block::Table(_)
            | Block::Rule
            | Block::Tree(_)
            | Block::File(_)
            | Block::Aside { .. }
            | Block::Fold(_)
            | Block::Card(_)
            | Block::Question(_) => add("Output", 0),
        }
    }
    // For prose, the first words are more useful than a line count.
    let gist = || super::gist(run);
    let titles = named.iter().map(|(name, lines)| match (*name, *lines) {
        ("Diff", _) => format!("Diff +{} −{}", changes.0, changes.1),
        ("Error", _) => gist_of("Error", &failure_text(run)),
        ("Output", 0) => gist_of("Output", &gist()),
        (name, 0) => name.to_owned(),
        (name, lines) => format!("{name} · {}", format::count(lines, "line")),
    });
    let exit_code = exit_code.map(|code| format!("exit code {code}"));
    let titles: Vec<String> = titles.chain(exit_code).collect();
    let title = titles.join(" · ");
    Some(if title.is_empty() { gist_of("Note", &gist()) } else { title })
}

/// The text of the failure notice.
fn failure_text(run: &[Block]) -> String {
    let failure = run.iter().find_map(|block| {
        let Block::Notice(notice) = block else { return None };
        (notice.tone == Tone::Failed).then(|| notice.text.clone())
    });
    failure.unwrap_or_default()
}

/// The label of a code block: command, file content, input or output.
fn code_label(code: &Code, card: &Card) -> &'static str {
    let is_command = card.summary.first().is_some_and(|span| span.style.code);
    if is_command && code.language.as_deref() == Some("bash") {
        "Command"
    } else if code.first_line.is_some() {
        "Content"
    } else if matches!(card.icon, Icon::Pending | Icon::Running) {
        "Input"
    } else {
        "Output"
    }
}

fn failure_code(terminal: &Terminal) -> Option<i64> {
    terminal.exit_code.filter(|code| *code != 0)
}

/// The agents of a call, and below them their prompts and reports, folded: these are not text of
/// the parent agent.
pub fn lay_agents(all: &[Block]) -> String {
    let Some((tree, rest)) = all.split_first() else { return String::new() };
    let report = |run: &[Block]| Some(gist_of("Report", &super::gist(run)));
    join_blocks([block(tree)].into_iter().chain(body(rest, report)))
}

pub fn lay_tree(tree: &Tree) -> String {
    nodes(&tree.nodes, tree.detail, 0).join("\n")
}

fn nodes(all: &[Node], detail: TreeDetail, depth: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for node in all {
        let (pad, label) = ("  ".repeat(depth), head(&node.label));
        let note = Some(&node.note).filter(|note| detail == TreeDetail::Full && !note.is_empty());
        let note = note.map(|note| format!(" · {}", head(note))).unwrap_or_default();
        lines.push(format!("{pad}- {label} · {}{note}", badge(&agents::badge(node))));
        lines.extend(nodes(&node.children, detail, depth + 1));
    }
    lines
}

/// The questions and answers, without repetition.
pub fn question(question: &Question) -> String {
    let mut pieces: Vec<String> = question.items.iter().flat_map(question_text).collect();
    if let Some(answer) = question.overall_answer() {
        let (decision, remark) = answer.decision_text();
        let remark = remark.map(|remark| format!(" · {}", escape(remark))).unwrap_or_default();
        let inferred = if answer.is_inferred() { " (answer not in the log)" } else { "" };
        let by = question.answered_by().map(|by| format!(" · {}", escape(by))).unwrap_or_default();
        let said = format!("{} {}{remark}{inferred}{by}", answer.glyph(), escape(decision));
        match pieces.last_mut() {
            // Without options, the answer goes directly below its question.
            Some(last) if question.items.last().is_some_and(|item| item.options.is_empty()) => {
                last.push_str(&format!("\\\n{said}"));
            }
            Some(_) | None => pieces.push(said),
        }
    } else if let Some(by) = question.answered_by() {
        pieces.push(escape(by));
    }
    join_blocks(pieces)
}

fn question_text(item: &QuestionItem) -> Vec<String> {
    let header = item.header.as_deref().map(str::trim).filter(|header| !header.is_empty());
    let header = header.map(|header| format!("**{}** · ", escape(header))).unwrap_or_default();
    let mut said = format!("**?** {header}{}", escape(item.question.trim()));
    let options = item.options.iter().map(|option| {
        let label = one_line(option.label.trim());
        let label = if option.chosen { format!("**{label}**") } else { label };
        let more = option.description.as_deref().map(str::trim).filter(|more| !more.is_empty());
        let more = more.map(|more| format!(" · {}", one_line(more))).unwrap_or_default();
        format!("- {} {label}{more}", item.glyph(option.chosen))
    });
    let options: Vec<String> = options.collect();
    let chosen: Vec<&str> =
        item.options.iter().filter(|one| one.chosen).map(|one| one.label.as_str()).collect();
    // Omit an answer that only repeats the chosen options.
    let answer = item.answer.as_deref().map(str::trim).filter(|text| *text != chosen.join(", "));
    let answer = answer.filter(|text| !text.is_empty()).map(|text| format!("→ {}", escape(text)));
    if options.is_empty() {
        said.extend(answer.map(|answer| format!("\\\n{answer}")));
        return vec![said];
    }
    [Some(said), Some(options.join("\n")), answer].into_iter().flatten().collect()
}

fn one_line(text: &str) -> String {
    line(&[Span::plain(text)])
}
