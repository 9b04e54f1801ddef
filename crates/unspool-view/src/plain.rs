//! Plain text: lines without their styles, for pipes and golden files.

use crate::lines::Line;

/// Writes lines as text: no styles, no trailing spaces, a newline after every line.
pub fn paint(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        for run in &line.runs {
            out.push_str(&run.text);
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}
