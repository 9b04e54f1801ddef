//! Terminal output: lines of runs with their ANSI styles. `present` has parsed the escape
//! sequences, so a painter only maps styles.

use serde::{Deserialize, Serialize};

use super::is_false;

/// Program output with its colours as data: no surface ever receives an escape sequence.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Terminal {
    pub lines: Vec<Vec<AnsiRun>>,
    /// Lines dropped because the output exceeds the line limit.
    pub omitted: usize,
    pub exit_code: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AnsiRun {
    pub text: String,
    #[serde(flatten)]
    pub style: AnsiStyle,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AnsiStyle {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Color>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Color>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub bold: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dim: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub italic: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub underline: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub inverse: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub strike: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Color {
    /// The terminal's palette; 0 to 15 are the named colours.
    Indexed(u8),
    Rgb(u8, u8, u8),
}
