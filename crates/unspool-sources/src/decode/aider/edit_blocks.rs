//! Edit blocks in a reply: a line with a path, and a fence with `<<<<<<< SEARCH`, `=======` and
//! `>>>>>>> REPLACE`. The other edit formats (whole files, unified diffs) stay in the text.

/// A piece of a reply, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Edit(Edit),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Edit {
    pub path: String,
    pub search: String,
    pub replace: String,
}

/// Cuts a reply at its edit blocks.
pub(super) fn pieces(reply: &str) -> Vec<Piece> {
    let lines: Vec<&str> = reply.lines().collect();
    let mut found = Vec::new();
    let mut text: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at).copied() {
        if let Some((edits, after)) = fence_at(&lines, at, text.last().copied()) {
            text.pop();
            push_text(&mut found, &mut text);
            found.extend(edits.into_iter().map(Piece::Edit));
            at = after;
        } else {
            text.push(line);
            at += 1;
        }
    }
    push_text(&mut found, &mut text);
    found
}

fn push_text(found: &mut Vec<Piece>, text: &mut Vec<&str>) {
    let joined = text.join("\n");
    text.clear();
    if !joined.trim().is_empty() {
        found.push(Piece::Text(joined.trim_matches('\n').to_owned()));
    }
}

/// The edits of a fence that begins here, and the line after the fence.
fn fence_at(lines: &[&str], at: usize, before: Option<&str>) -> Option<(Vec<Edit>, usize)> {
    let fence: String = lines.get(at)?.chars().take_while(|letter| *letter == '`').collect();
    let path = before.map(str::trim).filter(|path| !path.is_empty() && !path.contains("```"))?;
    if fence.len() < 3 || !lines.get(at + 1)?.starts_with("<<<<<<< ") {
        return None;
    }
    let path = path.trim_matches(['`', '*', ':']).to_owned();
    let (mut edits, mut next) = (Vec::new(), at + 1);
    loop {
        let line = lines.get(next)?;
        if line.trim_end() == fence {
            return (!edits.is_empty()).then_some((edits, next + 1));
        }
        if line.starts_with("<<<<<<< ") {
            let middle = position(lines, next, |line| line == "=======")?;
            let end = position(lines, middle, |line| line.starts_with(">>>>>>> "))?;
            edits.push(Edit {
                path: path.clone(),
                search: lines.get(next + 1..middle)?.join("\n"),
                replace: lines.get(middle + 1..end)?.join("\n"),
            });
            next = end + 1;
        } else if line.trim().is_empty() {
            next += 1;
        } else {
            // Something else is in the fence: leave it as it is.
            return None;
        }
    }
}

fn position(lines: &[&str], from: usize, is: impl Fn(&str) -> bool) -> Option<usize> {
    (from..lines.len()).find(|at| lines.get(*at).is_some_and(|line| is(line.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_stand_where_the_model_wrote_them() {
        let reply = "First.\n\na.py\n```python\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n\n\
                     Then:\n\n```bash\nls\n```";
        let edit = Edit { path: "a.py".into(), search: "x".into(), replace: "y".into() };
        assert_eq!(
            pieces(reply),
            [
                Piece::Text("First.".into()),
                Piece::Edit(edit),
                Piece::Text("Then:\n\n```bash\nls\n```".into()),
            ]
        );
        // A fence without a path or without an end is text.
        for text in ["```\n<<<<<<< SEARCH\nx", "a\n```\n<<<<<<< SEARCH\nx\n=======\ny", "plain"] {
            assert_eq!(pieces(text), [Piece::Text(text.into())]);
        }
    }
}
