//! Writes D2 syntax: keys and strings, escaped whatever they contain, and the style classes.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use crate::html::text::safe;
use crate::project::thoughtflow::{Label, Status};

/// The compiler rejects much longer keys.
const MAX_KEY_CHARS: usize = 200;

/// A string in double quotes (R-002-26). `$` starts a substitution, even in quotes.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    out.push('"');
    for c in safe(text).chars() {
        match c {
            '"' | '\\' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // Invalid in XML, which the compiler writes.
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A tooltip. The compiler shows it verbatim, but rejects text that would be broken markup in
/// Markdown (seen in 0.7): a zero-width space after `<` and `&` prevents tags and character
/// references.
pub fn tooltip_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        let begins = rest.peek().is_some_and(|next| match c {
            '<' => next.is_ascii_alphabetic() || "/!?".contains(*next),
            '&' => *next == '#',
            _ => false,
        });
        if begins {
            out.push('\u{200b}');
        }
    }
    quoted(&out)
}

/// Text for a comment, on one line.
pub fn comment_text(text: &str) -> String {
    let line = text.chars().take(MAX_KEY_CHARS).collect::<String>();
    safe(&line).replace(['\n', '\t'], " ")
}

/// The keys of a board: unique even for a case-insensitive compiler.
#[derive(Default)]
pub struct D2Keys {
    taken: FxHashSet<String>,
}

impl D2Keys {
    /// A key, in quotes.
    pub fn key(&mut self, id: &str) -> String {
        let short: String = id.chars().take(MAX_KEY_CHARS).collect();
        // `_` refers to the parent board, and an empty key is invalid.
        let base = if short.trim_matches(['_', ' ']).is_empty() { "step" } else { &short };
        let mut key = base.to_owned();
        let mut more = 1;
        while !self.taken.insert(key.to_lowercase()) {
            more += 1;
            key = format!("{base} ({more})");
        }
        quoted(&key)
    }
}

/// A class per kind of step and per run status (R-002-24). Colours of the light theme, since
/// diagrams have a white background.
pub fn classes(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "classes: {{")?;
    for label in Label::ALL {
        let (shape, fill, stroke) = shape_style(label);
        let style = format!("style: {{ fill: \"{fill}\"; stroke: \"{stroke}\"; font-size: 16 }}");
        writeln!(out, "  \"{}\": {{ shape: {shape}; width: 360; {style} }}", label.name())?;
    }
    for status in [Status::Completed, Status::Aborted, Status::Error, Status::Unknown] {
        let stroke = match status {
            Status::Completed => "#276a19",
            Status::Aborted => "#825500",
            Status::Error => "#bb0e35",
            Status::Unknown => "#575a72",
        };
        let style = format!("style: {{ fill: \"#f7f8fa\"; stroke: \"{stroke}\"; font-size: 22 }}");
        writeln!(out, "  \"run-{}\": {{ {style} }}", status.name())?;
    }
    writeln!(out, "  \"note\": {{ shape: text; style: {{ italic: true }} }}")?;
    writeln!(out, "  \"back\": {{ shape: text; style: {{ bold: true; font-size: 20 }} }}")?;
    writeln!(out, "}}")
}

/// The shape, the fill and the stroke of a step.
fn shape_style(label: Label) -> (&'static str, &'static str, &'static str) {
    match label {
        Label::UserMessage => ("rectangle", "#f1e9fc", "#7a2fd0"),
        Label::AssistantMessage => ("rectangle", "#e4f3f4", "#0d696f"),
        Label::AssistantCall => ("hexagon", "#e3ebfb", "#1b54c7"),
        Label::ToolCall => ("rectangle", "#fbeade", "#9c4103"),
        Label::ToolOutput => ("page", "#e6f3e3", "#276a19"),
        Label::ToolError => ("page", "#fbe3e9", "#bb0e35"),
        Label::Generic => ("rectangle", "#eff1f5", "#575a72"),
        Label::PolicySnapshot
        | Label::ToolSchemasSnapshot
        | Label::ContextPreamble
        | Label::ChannelPreamble => ("stored_data", "#eff1f5", "#825500"),
        Label::PromptAdaptations => ("document", "#eff1f5", "#825500"),
    }
}
