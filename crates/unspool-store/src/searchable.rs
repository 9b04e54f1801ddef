//! The searchable text of a part: everything that the agent or the user read or wrote. The index
//! and the verification of hits both use `fields`, so they cover the same text.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use unspool_model::part::{Body, EarlierQuestion, Question};

/// A searchable field of a part.
pub enum SearchField<'a> {
    Text(&'a str),
    /// Raw JSON, with escapes.
    Json(&'a str),
}

/// Visits the searchable fields of a part.
pub fn fields<'a>(body: &'a Body, visit: &mut dyn FnMut(SearchField<'a>)) {
    let mut text = |text: &'a str| {
        if !text.is_empty() {
            visit(SearchField::Text(text));
        }
    };
    match body {
        Body::Text(said) => text(&said.text),
        Body::Reasoning(thought) => text(&thought.text),
        Body::Tool(tool) => {
            text(&tool.name);
            text(tool.title.as_deref().unwrap_or_default());
            for EarlierQuestion { question, answer } in &tool.earlier {
                visit_question(question, &mut text);
                text(&answer.text);
            }
            if let Some(question) = &tool.question {
                visit_question(question, &mut text);
            }
            if let Some(answer) = &tool.answer {
                text(&answer.text);
            }
            text(&tool.input_text);
            text(tool.output.as_deref().unwrap_or_default());
            for json in [&tool.input, &tool.result].into_iter().flatten() {
                visit(SearchField::Json(json.text()));
            }
        }
        Body::Agent(agents) => {
            for agent in &agents.agents {
                text(&agent.name);
                text(&agent.task);
            }
        }
        Body::Interjection(said) => text(&said.text),
        Body::TaskList(list) => list.items.iter().for_each(|item| text(&item.text)),
        Body::SkillLoad(skill) => {
            text(&skill.name);
            text(&skill.text);
        }
        Body::McpSnapshot(snapshot) => {
            for server in &snapshot.servers {
                text(&server.name);
                server.tools.iter().for_each(|tool| text(tool));
            }
        }
        Body::ContextInfo(info) => {
            text(&info.title);
            text(&info.text);
        }
        Body::Compaction(compaction) => text(&compaction.summary),
        Body::File(file) => {
            text(file.name.as_deref().unwrap_or_default());
            // Inline data such as an image is not text.
            text(file.url.as_deref().filter(|url| !url.starts_with("data:")).unwrap_or_default());
            text(file.text.as_deref().unwrap_or_default());
        }
        Body::Source(source) => {
            for piece in [&source.url, &source.title, &source.quote].into_iter().flatten() {
                text(piece);
            }
        }
        Body::Patch(patch) => {
            text(patch.path.as_deref().unwrap_or_default());
            text(&patch.diff);
        }
        Body::Notice(notice) => {
            text(&notice.code);
            text(&notice.text);
        }
        Body::Error(failure) => {
            text(failure.code.as_deref().unwrap_or_default());
            text(&failure.text);
        }
        Body::Data(data) => {
            text(&data.kind);
            visit(SearchField::Json(data.payload.text()));
        }
    }
}

fn visit_question<'a>(question: &'a Question, text: &mut impl FnMut(&'a str)) {
    for item in &question.items {
        text(item.header.as_deref().unwrap_or_default());
        text(&item.question);
        for option in &item.options {
            text(&option.label);
            text(option.description.as_deref().unwrap_or_default());
        }
    }
}

/// The searchable fields as text, JSON with unescaped strings.
pub fn texts(body: &Body) -> Vec<Cow<'_, str>> {
    let mut texts = Vec::new();
    fields(body, &mut |field| texts.push(field_text(field)));
    texts
}

/// A field as text.
pub fn field_text(field: SearchField<'_>) -> Cow<'_, str> {
    match field {
        SearchField::Text(text) => Cow::Borrowed(text),
        SearchField::Json(raw) => Cow::Owned(unescape_json(raw)),
    }
}

/// JSON with unescaped strings and all punctuation, so that users find the text as displayed.
pub fn unescape_json(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, quoted)) =
        memchr(b'"', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        out.push_str(before);
        let (string, behind) = end_of_string(quoted)
            .and_then(|end| quoted.split_at_checked(end))
            .unwrap_or((quoted, ""));
        push_string(&mut out, string);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The end of the string that starts here: after the next unescaped quote.
fn end_of_string(quoted: &str) -> Option<usize> {
    let bytes = quoted.as_bytes();
    let mut from = 1;
    loop {
        let at = from + memchr2(b'"', b'\\', bytes.get(from..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        from = at + 2;
    }
}

/// Appends the value of a JSON string, or the text unchanged if it is not one.
fn push_string(out: &mut String, quoted: &str) {
    let start = out.len();
    if push_simple(out, quoted).is_some() {
        return;
    }
    out.truncate(start);
    match serde_json::from_str::<String>(&unspool_model::json::replace_lone_surrogates(quoted)) {
        Ok(text) => out.push_str(&text),
        Err(_) => out.push_str(quoted),
    }
}

/// Fast path of `push_string`: one pass, no intermediate copy. None for lone surrogates and
/// invalid JSON.
fn push_simple(out: &mut String, quoted: &str) -> Option<()> {
    let mut rest = quoted.get(1..quoted.len().checked_sub(1)?).filter(|_| quoted.ends_with('"'))?;
    // Branch-free, so that the compiler vectorises it.
    if rest.bytes().fold(false, |control, byte| control | (byte < b' ')) {
        return None;
    }
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at_checked(at)?;
        out.push_str(before);
        let mut length = 2;
        out.push(match escape.as_bytes().get(1)? {
            simple @ (b'"' | b'\\' | b'/') => char::from(*simple),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                length = 6;
                let digits = escape.get(2..length)?;
                let digits = digits.bytes().all(|it| it.is_ascii_hexdigit()).then_some(digits)?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        });
        rest = escape.get(length..)?;
    }
    out.push_str(rest);
    Some(())
}

#[cfg(test)]
#[path = "searchable_tests.rs"]
mod tests;
