//! Which lines before a line consists of, where a change only lays the same text out anew: a formatter
//! run. It compares tokens, so that a line that was broken or joined keeps its writers.

use std::ops::Range;

/// Words and signs with the lines that they stand in. Formatters add and remove a comma before a
/// closing bracket, and choose between the two kinds of quotes: both are read as the same.
struct Tokens<'a> {
    lines: &'a [&'a str],
    /// The line that is read.
    line: usize,
    rest: &'a str,
    /// Read already.
    next: Option<(usize, &'a str)>,
}

impl<'a> Tokens<'a> {
    fn new(lines: &'a [&'a str]) -> Tokens<'a> {
        Tokens { lines, line: 0, rest: lines.first().copied().unwrap_or_default(), next: None }
    }

    fn read(&mut self) -> Option<(usize, &'a str)> {
        loop {
            let rest = self.rest.trim_start();
            let Some(first) = rest.chars().next() else {
                self.line += 1;
                self.rest = self.lines.get(self.line)?;
                continue;
            };
            let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let (token, after) = rest.split_at(word.unwrap_or(rest.len()).max(first.len_utf8()));
            self.rest = after;
            return Some((self.line, if token == "'" { "\"" } else { token }));
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let token = self.next.take().or_else(|| self.read())?;
        if token.1 == "," {
            self.next = self.read();
            if let Some((_, ")" | "]" | "}")) = self.next {
                return self.next.take();
            }
        }
        Some(token)
    }
}

/// For each line the lines before of which it consists, if the tokens of both texts are the same; None
/// if they are not. A blank line consists of none, unless each line was kept by itself.
pub fn source_lines(old: &[&str], new: &[&str]) -> Option<Vec<Range<usize>>> {
    let mut lines = vec![0..0; new.len()];
    let mut is_by_line = old.len() == new.len();
    let (mut old_tokens, mut new_tokens) = (Tokens::new(old), Tokens::new(new));
    loop {
        let ((old_line, old), (new_line, new)) = match (old_tokens.next(), new_tokens.next()) {
            (Some(old), Some(new)) => (old, new),
            (None, None) => break,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        if old != new {
            return None;
        }
        is_by_line &= old_line == new_line;
        let range: &mut Range<usize> = &mut lines[new_line];
        if range.start == range.end {
            range.start = old_line;
        }
        range.end = old_line + 1;
    }
    match is_by_line {
        true => Some((0..new.len()).map(|at| at..at + 1).collect()),
        false => Some(lines),
    }
}

#[cfg(test)]
#[path = "reflow_tests.rs"]
mod tests;
