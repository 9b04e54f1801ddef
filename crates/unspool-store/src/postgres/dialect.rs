//! Translates a query from SQLite's SQL to PostgreSQL's. Only what the two spell differently;
//! functions of SQLite that PostgreSQL lacks are defined in its schema.

/// The query as PostgreSQL understands it.
pub fn translate(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 64);
    let mut rest = sql;
    let mut last_placeholder = 0_usize;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => literal(rest),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '?' => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                let number = rest[1..1 + digits].parse().unwrap_or(last_placeholder + 1);
                last_placeholder = last_placeholder.max(number);
                out.push_str(&format!("${number}"));
                rest = &rest[1 + digits..];
                continue;
            }
            first if first.is_ascii_alphabetic() || first == '_' => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let length = rest.bytes().take_while(is_word).count();
                let (word, after) = rest.split_at(length);
                rest = word_in(word, after, &mut out);
                continue;
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The length of a literal, with its quotes.
fn literal(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        if byte == b'\'' {
            match text.as_bytes().get(at + 1) {
                Some(b'\'') => {
                    bytes.next();
                }
                Some(_) | None => return at + 1,
            }
        }
    }
    text.len()
}

/// Writes a word, or what stands for it. Returns what is left of the query.
fn word_in<'s>(word: &str, after: &'s str, out: &mut String) -> &'s str {
    match word {
        // A blob: x'00ff'.
        "x" if after.starts_with('\'') => {
            let (digits, rest) = after.split_at(literal(after));
            out.push_str(&format!("'\\x{}'::bytea", digits.trim_matches('\'')));
            return rest;
        }
        // Its order of tables is a hint to SQLite's planner only.
        "CROSS" if after.trim_start().starts_with("JOIN") => return after.trim_start(),
        // A sum that cannot overflow, of whole numbers.
        "CAST" if after.starts_with("(total(") => {
            if let Some((summed, rest)) = cast_total(after) {
                out.push_str(&format!("clamped(sum({}))", translate(summed)));
                return rest;
            }
            out.push_str(word);
        }
        "INTEGER" => out.push_str("BIGINT"),
        "BLOB" => out.push_str("BYTEA"),
        "offset" => out.push_str("\"offset\""),
        _ => out.push_str(word),
    }
    after
}

/// What is summed in `(total(…) AS INTEGER)`, and what follows that.
fn cast_total(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("(total(")?;
    let mut depth = 1;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], inner[at + 1..].strip_prefix(" AS INTEGER)")?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn what_is_spelled_differently_is_translated() {
        let pairs = [
            ("SELECT a FROM b WHERE c = ?2 AND d = ?1", "SELECT a FROM b WHERE c = $2 AND d = $1"),
            ("a = ? AND b = ?", "a = $1 AND b = $2"),
            ("WHERE x = '?1 it''s ?' AND y = ?1", "WHERE x = '?1 it''s ?' AND y = $1"),
            ("coalesce(max(first), x'')", "coalesce(max(first), '\\x'::bytea)"),
            ("CAST(total(step.input) AS INTEGER)", "clamped(sum(step.input))"),
            ("CAST(total(coalesce(?1, 0)) AS INTEGER)", "clamped(sum(coalesce($1, 0)))"),
            ("session CROSS JOIN turn ON 1 = 1", "session JOIN turn ON 1 = 1"),
            ("SELECT offset, offsets FROM cursor", "SELECT \"offset\", offsets FROM cursor"),
            ("-- it's ?\nCAST(a AS BLOB)", "-- it's ?\nCAST(a AS BYTEA)"),
        ];
        for (sql, wanted) in pairs {
            assert_eq!(translate(sql), wanted);
        }
    }
}
