//! Standard output on a terminal. Characters that a terminal would execute, or that disguise text,
//! are written as escapes; in JSON they keep their meaning. Pipes and files get the exact bytes.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use unspool_view::block::is_deceptive;

/// Standard output for data that contains what agents wrote.
pub fn stdout() -> Box<dyn Write> {
    let out = io::BufWriter::new(io::stdout().lock());
    if io::stdout().is_terminal() { Box::new(TerminalWriter::new(out)) } else { Box::new(out) }
}

/// Escapes what it passes on.
pub struct TerminalWriter<W> {
    out: W,
    /// The beginning of a character whose end has not arrived.
    pending: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    pub fn new(out: W) -> TerminalWriter<W> {
        TerminalWriter { out, pending: Vec::new() }
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.pending) {
            Ok(_) => self.pending.len(),
            // An invalid byte is not the beginning of a character: it is shown as unknown.
            Err(error) if error.error_len().is_some() => self.pending.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.pending.split_off(whole);
        let text = std::mem::replace(&mut self.pending, rest);
        self.out.write_all(escape(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The text with escapes in place of control characters, except line ends and tabs.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !matches!(c, '\n' | '\t') || is_deceptive(c) {
            // JSON has pairs for characters above U+FFFF. Writing to a string does not fail.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_terminal_has_no_control_characters_and_the_same_value() {
        let value =
            serde_json::json!({ "a\u{9b}31m": "x\u{202e}y\u{7f}é✓\u{1b}\u{e0041}𝕏", "n": 1 });
        let json = serde_json::to_string_pretty(&value).unwrap();
        // In pieces, which split characters.
        for size in 1..8 {
            let mut out = Vec::new();
            let mut writer = TerminalWriter::new(&mut out);
            json.as_bytes().chunks(size).for_each(|piece| writer.write_all(piece).unwrap());
            let text = String::from_utf8(out).unwrap();
            let is_hostile =
                |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{e0041}');
            assert!(!text.contains(is_hostile), "{text:?}");
            assert!(text.contains("é✓") && text.contains('𝕏'));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
    }
}
