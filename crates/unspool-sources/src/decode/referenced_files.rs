//! The files that a prompt mentions, as Gemini and Qwen Code put them behind it: between two marks,
//! each after a line with its name.

use unspool_model::part::File;

const START: &str = "--- Content from referenced files ---";
/// What an editor attached. Gemini writes no end behind it.
const CONTEXT_START: &str = "--- Content from referenced context ---";
const END: &str = "--- End of content ---";

/// Reads the texts of a message in order.
#[derive(Default)]
pub(super) struct ReferencedFiles {
    /// A text was read before: the marks are behind the user's words.
    begun: bool,
    inside: bool,
    /// The file whose content follows.
    name: Option<String>,
}

/// What a text of the message is.
pub(super) enum Referenced {
    File(File),
    /// Not in a mentioned file.
    Words(String),
}

impl ReferencedFiles {
    /// `None` for the marks themselves.
    pub fn read(&mut self, text: String) -> Option<Referenced> {
        let line = text.trim();
        let is_first = !std::mem::replace(&mut self.begun, true);
        if !is_first && matches!(line, START | CONTEXT_START) {
            self.inside = true;
            return None;
        }
        if self.inside && line == END {
            self.inside = false;
            return None;
        }
        if let Some(name) = mention_of(line).filter(|_| self.inside && self.name.is_none()) {
            self.name = Some(name.to_owned());
            return None;
        }
        // Without an end, what a hook adds stands right behind the last file.
        let is_file = self.name.is_some() || !line.starts_with("<hook_context>");
        if self.inside && is_file {
            let (media_type, url) = (None, None);
            return Some(Referenced::File(File {
                name: self.name.take(),
                media_type,
                url,
                text: Some(text),
            }));
        }
        Some(Referenced::Words(text))
    }

    /// The name of a file whose content is no text.
    pub fn take_name(&mut self) -> Option<String> {
        self.begun = true;
        self.name.take()
    }
}

/// The name in the line before the content of a file.
fn mention_of(line: &str) -> Option<&str> {
    line.strip_prefix("Content from ")?.strip_suffix(':')
}
