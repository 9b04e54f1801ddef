//! A tool call with its input and result parsed once, and the accessors that all tool presenters
//! share.

use serde_json::Value;
use unspool_model::part::{Tool, ToolState};

use super::envelope;
use crate::block::{Block, Question, Span};

/// A tool call with its JSON parsed.
pub struct ParsedCall<'a> {
    pub tool: &'a Tool,
    pub input: Value,
    pub result: Value,
}

/// The card content that a tool presenter returns.
#[derive(Default)]
pub struct CardContent {
    pub title: String,
    /// One line.
    pub summary: Vec<Span>,
    pub body: Vec<Block>,
    pub question: Option<Question>,
    /// The body already shows why the call failed.
    pub error_shown: bool,
}

impl CardContent {
    pub fn new(title: impl Into<String>, summary: Vec<Span>) -> CardContent {
        CardContent { title: title.into(), summary, ..CardContent::default() }
    }

    pub fn with(mut self, body: Vec<Block>) -> CardContent {
        self.body = body;
        self
    }
}

impl<'a> ParsedCall<'a> {
    pub fn new(tool: &'a Tool) -> ParsedCall<'a> {
        let value = |json: &Option<unspool_model::json::Json>| {
            json.as_ref().map(unspool_model::json::Json::value).unwrap_or_default()
        };
        ParsedCall { tool, input: value(&tool.input), result: value(&tool.result) }
    }

    /// The input is still incomplete.
    pub fn is_streaming(&self) -> bool {
        self.tool.input.is_none() && !self.tool.input_text.is_empty()
    }

    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// The first of these input keys that holds a string.
    pub fn text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.input.get(key)?.as_str())
    }

    pub fn number(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| self.input.get(key)?.as_u64())
    }

    /// Cline reads several files at once: the first of them, and how many more there are.
    fn first_of_files(&self) -> Option<(&str, usize)> {
        let files = self.input.get("files")?.as_array()?;
        let path = files.first()?.get("path")?.as_str()?;
        Some((path, files.len() - 1))
    }

    pub fn path(&self) -> Option<&str> {
        let keys = [
            "file_path",
            "filePath",
            "filepath",
            "path",
            "absolute_path",
            "notebook_path",
            "dir_path",
            "dirpath",
            "directory_path",
        ];
        self.text(&keys).or_else(|| self.result.get("filePath")?.as_str())
    }

    /// The path as a summary, or the call's own title.
    pub fn path_summary(&self) -> Vec<Span> {
        match self.path() {
            Some(path) => vec![Span::plain(super::line(path)).path()],
            None => match self.first_of_files() {
                Some((path, 0)) => vec![Span::plain(super::line(path)).path()],
                Some((path, more)) => vec![
                    Span::plain(super::line(path)).path(),
                    Span::plain(format!("  and {more} more")),
                ],
                None => self.title_summary(),
            },
        }
    }

    pub fn title_summary(&self) -> Vec<Span> {
        let title = self.tool.title.as_deref().filter(|title| !title.trim().is_empty());
        title.map(|title| Span::plain(super::line(title))).into_iter().collect()
    }

    /// The call failed, was denied or was interrupted.
    pub fn is_failed(&self) -> bool {
        match self.tool.state {
            ToolState::Failed | ToolState::Denied | ToolState::Interrupted => true,
            ToolState::Pending | ToolState::Running | ToolState::Completed => false,
        }
    }

    /// What the agent reminds the model of after the output.
    pub fn reminder(&self) -> Option<&str> {
        envelope::open(self.tool.output.as_deref()?).reminder
    }

    /// The output without what the agent puts around it for the model, unless the call failed.
    pub fn output(&self) -> Option<&str> {
        let output = envelope::open(self.tool.output.as_deref()?).text;
        (!self.is_failed() && !output.trim().is_empty()).then_some(output)
    }

    /// The error text of a failed call.
    pub fn error(&self) -> Option<String> {
        if !self.is_failed() {
            return None;
        }
        let text = self.tool.output.as_deref().or_else(|| self.result.as_str())?;
        let text = envelope::open(text).text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}
