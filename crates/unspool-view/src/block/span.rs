//! Spans: runs of text in one style, the text of most blocks. Links are checked here, because
//! agent output is untrusted and every painter draws spans.

use serde::{Deserialize, Serialize};

use super::{Tone, is_false};

/// A run of text in one style.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Span {
    pub text: String,
    #[serde(flatten)]
    pub style: SpanStyle,
}

/// Semantic style of a span. Painters choose the colours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SpanStyle {
    #[serde(default, skip_serializing_if = "is_false")]
    pub strong: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub emphasis: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub strike: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub code: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dim: bool,
    /// A path on disk.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path: bool,
    /// Always `http:`, `https:` or `mailto:` and free of spaces and control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tone: Option<Tone>,
}

impl Span {
    pub fn plain(text: impl Into<String>) -> Span {
        Span { text: text.into(), style: SpanStyle::default() }
    }

    pub fn strong(mut self) -> Span {
        self.style.strong = true;
        self
    }

    pub fn code(mut self) -> Span {
        self.style.code = true;
        self
    }

    pub fn dim(mut self) -> Span {
        self.style.dim = true;
        self
    }

    pub fn path(mut self) -> Span {
        self.style.path = true;
        self
    }

    pub fn toned(mut self, tone: Tone) -> Span {
        self.style.tone = Some(tone);
        self
    }

    /// Links to `url` where that is safe to follow; otherwise stays plain text.
    pub fn link(mut self, url: &str) -> Span {
        self.style.link = safe_link(url);
        self
    }
}

/// Returns the URL if it is safe to link to. Agent output is hostile: only schemes that execute
/// nothing are allowed, and a relative link would point into our own pages.
pub fn safe_link(url: &str) -> Option<String> {
    let scheme = url.split_once(':')?.0.to_ascii_lowercase();
    let is_allowed = matches!(scheme.as_str(), "http" | "https" | "mailto");
    let clean = !url.chars().any(|c| c.is_control() || c.is_whitespace() || is_deceptive(c));
    (is_allowed && clean).then(|| url.to_owned())
}

/// Characters that disguise text: those that reorder what follows, annotations between lines, and
/// tags, which are invisible letters that a model reads and a person does not.
pub fn is_deceptive(c: char) -> bool {
    let reorders = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{061C}');
    reorders || matches!(c, '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// The text of the spans without their styles.
pub fn text_of(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}
