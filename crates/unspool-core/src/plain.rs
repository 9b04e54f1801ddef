//! Plain text: lines without their styles. What a pipe, a golden file and a search see.

use crate::lines::Line;

/// Lines as text: no styles, no trailing spaces, every line ended.
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
