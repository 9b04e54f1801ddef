//! `.aider.input.history`: what a person typed in a project, with times, as prompt_toolkit writes it.
//! The chat history has no times but the starts of sessions, so prompts get theirs from here if the
//! two files are beside each other. aider writes an entry before it writes the prompt.
//!
//! ```text
//!
//! # 2026-11-16 07:08:35.868205
//! +Add a helper
//! +in its own file
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use jiff::SignedDuration;
use jiff::civil::DateTime;

use crate::read::own_file::{Lines, OwnFile};
use crate::read::regular_file::open_regular;

const FILE_NAME: &str = ".aider.input.history";

/// A file of this name that the user names is no session, and says so.
pub const FILE: OwnFile = OwnFile {
    is_named: |path| path.file_name().is_some_and(|name| name == FILE_NAME),
    begins: None,
    lines: Lines::Whole(|_, _| Ok(Some(format!("{{\"aider\":\"{RECORD}\"}}\n").into_bytes()))),
    beside: None,
};

/// What stands for the file when it is read by itself.
pub const RECORD: &str = "typed";

/// Years of prompts. What comes after it has no times.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How many entries may be passed over that the chat history does not have: inputs that were
/// cancelled, and answers to questions that it does not tell.
const MAX_SKIPPED: usize = 16;

/// The argument of `--message` is written twice, in less than this.
const REPEATED_WITHIN: SignedDuration = SignedDuration::from_millis(10);

/// Entries in the order in which they were typed. Each is taken once.
#[derive(Default)]
pub struct TypedTimes {
    entries: Vec<(DateTime, String)>,
    next: usize,
}

impl TypedTimes {
    /// Of the file beside a chat history. Without one, nothing has a time.
    pub fn beside(history: &Path) -> TypedTimes {
        let read = |mut file: File| -> io::Result<String> {
            let mut bytes = Vec::new();
            file.by_ref().take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = open_regular(&history.with_file_name(FILE_NAME)).and_then(read);
        TypedTimes { entries: text.map(|text| entries(&text)).unwrap_or_default(), next: 0 }
    }

    /// A session began: what was typed before is not of it.
    pub fn begin_session(&mut self, start: DateTime) {
        let rest = self.entries.get(self.next..).unwrap_or_default();
        self.next += rest.iter().take_while(|(time, _)| *time < start).count();
    }

    /// When a prompt was typed.
    pub fn take_prompt(&mut self, text: &str) -> Option<DateTime> {
        self.take(text, MAX_SKIPPED)
    }

    /// Passes over an answer, so that no prompt with the same text gets its time.
    pub fn pass_answer(&mut self, text: &str) {
        self.take(text, 0);
    }

    fn take(&mut self, text: &str, skipped: usize) -> Option<DateTime> {
        let rest = self.entries.get(self.next..).unwrap_or_default();
        let at =
            rest.iter().take(skipped + 1).position(|(_, typed)| typed.trim() == text.trim())?;
        let (time, _) = rest.get(at)?;
        let repeated = rest.get(at + 1).is_some_and(|(again, typed)| {
            typed.trim() == text.trim() && again.duration_since(*time) < REPEATED_WITHIN
        });
        self.next += at + 1 + usize::from(repeated);
        Some(*time)
    }
}

fn entries(text: &str) -> Vec<(DateTime, String)> {
    let mut entries: Vec<(DateTime, String)> = Vec::new();
    for line in text.lines() {
        if let Some(time) = line.strip_prefix("# ") {
            let time = DateTime::strptime("%Y-%m-%d %H:%M:%S%.f", time.trim());
            entries.extend(time.map(|time| (time, String::new())));
        } else if let (Some(typed), Some((_, text))) = (line.strip_prefix('+'), entries.last_mut())
        {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(typed);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_the_time_at_which_it_was_typed() {
        let text = "\n# 2026-11-16 07:08:35.868205\n+Add a helper\n+in a file\n\
                    \n# 2026-11-16 07:08:43.4\n+n\n\
                    \n# 2026-11-16 07:08:50\n+n\n\
                    \n# 2026-11-16 07:09:10.604586\n+Again\n\
                    \n# 2026-11-16 07:09:10.604692\n+Again\n\
                    \n# 2026-11-16 07:09:20\n+Again\n";
        let time = |text: &str| Some(text.parse::<DateTime>().unwrap_or_default());
        let mut typed = TypedTimes { entries: entries(text), next: 0 };
        assert_eq!(typed.take_prompt("Other"), None);
        assert_eq!(
            typed.take_prompt("Add a helper\nin a file"),
            time("2026-11-16T07:08:35.868205")
        );
        // The answer to a question, and then a prompt with the same text.
        typed.pass_answer("n");
        typed.pass_answer("not typed");
        assert_eq!(typed.take_prompt("n"), time("2026-11-16T07:08:50"));
        typed.begin_session(time("2026-11-16T07:09:00").unwrap_or_default());
        assert_eq!(typed.take_prompt("Again"), time("2026-11-16T07:09:10.604586"));
        assert_eq!(typed.take_prompt("Again"), time("2026-11-16T07:09:20"));
        assert_eq!(typed.take_prompt("Again"), None);
    }
}
