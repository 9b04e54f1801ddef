//! The frame around adaptations that are added to a prompt. It is how they are found again in what an
//! agent recorded, wherever the agent put them:
//!
//! `<unspool-adaptations version="7" ids="short metric" sha256="…">…</unspool-adaptations>`

use crate::id::sha256;

const START: &str = "<unspool-adaptations";
const END: &str = "</unspool-adaptations>";

/// A frame in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdaptationFrame<'t> {
    /// Where the whole frame stands, in bytes; `end` is exclusive.
    pub start: usize,
    pub end: usize,
    /// The text in it, without the line ends beside the tags.
    pub content: &'t str,
    pub version: Option<&'t str>,
    /// The adaptations in it, if it names them.
    pub ids: Option<Vec<&'t str>>,
    /// The digest of its text, or the beginning of it.
    pub sha256: Option<&'t str>,
}

impl AdaptationFrame<'_> {
    /// True if the text is another one than its digest says.
    pub fn is_altered(&self) -> bool {
        let agrees = |digest: &str| {
            !digest.is_empty() && sha256(self.content.as_bytes()).starts_with(digest)
        };
        self.sha256.is_some_and(|digest| !agrees(digest))
    }
}

/// The frames in a text, in order. A frame without an end is none.
pub fn adaptation_frames(text: &str) -> Vec<AdaptationFrame<'_>> {
    let mut frames = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(START).map(|at| from + at) {
        let head = start + START.len();
        // A tag ends before another one begins.
        let Some(head_end) = text[head..].find(['<', '>']).map(|at| head + at) else { break };
        let attributes = &text[head..head_end];
        let is_tag = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        if !is_tag || !text[head_end..].starts_with('>') {
            from = head_end;
            continue;
        }
        let inner = head_end + 1;
        let Some(inner_end) = text[inner..].find(END).map(|at| inner + at) else { break };
        let end = inner_end + END.len();
        let content = &text[inner..inner_end];
        let content = content.strip_prefix('\n').unwrap_or(content);
        let content = content.strip_suffix('\n').unwrap_or(content);
        let ids = attribute(attributes, "ids").map(|ids| {
            let ids = ids.split(|c: char| c == ',' || c.is_whitespace());
            ids.filter(|id| !id.is_empty()).collect()
        });
        let version = attribute(attributes, "version");
        let sha256 = attribute(attributes, "sha256");
        frames.push(AdaptationFrame { start, end, content, version, ids, sha256 });
        from = end;
    }
    frames
}

/// The value of `name="value"`.
fn attribute<'t>(attributes: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = attributes;
    while let Some((key, after)) = rest.split_once("=\"") {
        let (value, behind) = after.split_once('"')?;
        if key.trim() == name {
            return Some(value);
        }
        rest = behind;
    }
    None
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
