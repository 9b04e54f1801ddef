//! The frame around adaptations that are added to a prompt. It is how they are found again in what an
//! agent recorded, wherever the agent put them:
//!
//! `<unspool-adaptations version="7" ids="short metric" sha256="…">…</unspool-adaptations>`
//!
//! Gemini writes `&lt;` and `&gt;` for the brackets of everything that a hook adds, those in the text
//! included (seen in 0.61.0). Such a frame is read like the other one: its digest is of the text before
//! that.

use std::borrow::Cow;

use crate::id::sha256;

/// How a frame is written: the ends of its two tags.
struct Brackets {
    start: &'static str,
    close: &'static str,
    end: &'static str,
}

const PLAIN: Brackets =
    Brackets { start: "<unspool-adaptations", close: ">", end: "</unspool-adaptations>" };
const ESCAPED: Brackets = Brackets {
    start: "&lt;unspool-adaptations",
    close: "&gt;",
    end: "&lt;/unspool-adaptations&gt;",
};
/// What both beginnings have. Frames are looked for by it.
const NAME: &str = "unspool-adaptations";

/// A frame in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdaptationFrame<'t> {
    /// Where the whole frame stands, in bytes; `end` is exclusive.
    pub start: usize,
    pub end: usize,
    /// The text in it as it was before an agent escaped it, without the line ends beside the tags.
    pub content: Cow<'t, str>,
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
    // No frame of these brackets ends behind here: a second search would take as long as the first.
    let mut endless = [false; 2];
    while let Some(name) = text[from..].find(NAME).map(|at| from + at) {
        let head = name + NAME.len();
        let before = &text[from..head];
        let found =
            [PLAIN, ESCAPED].into_iter().zip(0..).find(|(it, _)| before.ends_with(it.start));
        from = head;
        let Some((brackets, nth)) = found.filter(|(_, nth)| !endless[*nth]) else { continue };
        // A tag ends before another one begins.
        let Some(head_end) = text[head..].find(['<', '>', '&']).map(|at| head + at) else { break };
        let attributes = &text[head..head_end];
        let is_tag = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        if !is_tag || !text[head_end..].starts_with(brackets.close) {
            continue;
        }
        let inner = head_end + brackets.close.len();
        let Some(inner_end) = text[inner..].find(brackets.end).map(|at| inner + at) else {
            endless[nth] = true;
            continue;
        };
        let (start, end) = (head - brackets.start.len(), inner_end + brackets.end.len());
        let content = &text[inner..inner_end];
        let content = content.strip_prefix('\n').unwrap_or(content);
        let content = content.strip_suffix('\n').unwrap_or(content);
        let ids = attribute(attributes, "ids").map(|ids| {
            let ids = ids.split(|c: char| c == ',' || c.is_whitespace());
            ids.filter(|id| !id.is_empty()).collect()
        });
        let version = attribute(attributes, "version");
        let sha256 = attribute(attributes, "sha256");
        let content = match nth {
            0 => Cow::Borrowed(content),
            _ => unescaped(content, sha256),
        };
        frames.push(AdaptationFrame { start, end, content, version, ids, sha256 });
        from = end;
    }
    frames
}

/// A text without the brackets that an agent escaped. The agent leaves `&` as it is, so a text that had
/// `&lt;` before cannot be told from one that had `<`: the digest decides between the two.
fn unescaped<'t>(text: &'t str, digest: Option<&str>) -> Cow<'t, str> {
    let brackets = text.replace("&lt;", "<").replace("&gt;", ">");
    let is_of =
        |text: &str| digest.is_some_and(|digest| sha256(text.as_bytes()).starts_with(digest));
    if brackets != text && (is_of(&brackets) || !is_of(text)) {
        return Cow::Owned(brackets);
    }
    Cow::Borrowed(text)
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
