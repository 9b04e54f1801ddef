//! Formats numbers, durations, sizes and one-line summaries, the same on every surface.

/// `159 ms`, `12.4 s`, `3 m 12 s`, `2 h 5 m`.
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", seconds, milliseconds % 1000 / 100),
        60_000..3_600_000 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `1,729`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `9,999`, `12.3k`, `456k`, `7.8M`: at most six columns up to a thousand trillion.
pub fn compact(value: u64) -> String {
    if value < 10_000 {
        return number(value);
    }
    let mut unit = 1_000;
    let mut sign = 'k';
    for next in ['M', 'G', 'T', 'P'] {
        if value / unit < 1_000 {
            break;
        }
        unit *= 1_000;
        sign = next;
    }
    match value / unit {
        0..100 => format!("{}.{}{sign}", value / unit, value % unit * 10 / unit),
        whole => format!("{}{sign}", number(whole)),
    }
}

/// A sum of tokens: `88.1k + 132k cached`. Tokens that were read from a cache stand apart: they are
/// most of the tokens of a long session, and cost the least. Empty if nothing was counted.
pub fn token_sum(fresh: u64, cached: u64) -> String {
    match (fresh, cached) {
        (0, 0) => String::new(),
        (fresh, 0) => compact(fresh),
        (0, cached) => format!("{} cached", compact(cached)),
        (fresh, cached) => format!("{} + {} cached", compact(fresh), compact(cached)),
    }
}

/// The same within a sentence: `88.1k tokens + 132k cached`.
pub fn token_phrase(fresh: u64, cached: u64) -> String {
    match (fresh, cached) {
        (0, 0) => String::new(),
        (fresh, 0) => format!("{} tokens", compact(fresh)),
        (0, cached) => format!("{} cached tokens", compact(cached)),
        (fresh, cached) => format!("{} tokens + {} cached", compact(fresh), compact(cached)),
    }
}

/// `$1.20`, or `~$1.20` if it is estimated. Less than half a cent is not nothing.
pub fn cost(usd: f64, is_estimated: bool) -> String {
    if usd > 0.0 && usd < 0.005 {
        return "<$0.01".to_owned();
    }
    format!("{}${usd:.2}", if is_estimated { "~" } else { "" })
}

/// `598 bytes`, `4.2 KB`, `1.3 MB`.
pub fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{} KB", tenths(1_024)),
        _ => format!("{} MB", tenths(1_048_576)),
    }
}

/// `1 tool call`, `2 tool calls`.
pub fn count(value: usize, noun: &str) -> String {
    let ending = if value == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", number(value as u64))
}

/// The start of a text on one line, truncated to `limit` characters.
pub fn first_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (length, word) in text.split_whitespace().enumerate() {
        if length > 0 {
            out.push(' ');
        }
        out.push_str(word);
        // Cheap pre-check: a text with at most `limit` bytes has at most `limit` characters.
        if out.len() > limit
            && let Some((at, _)) = out.char_indices().nth(limit)
        {
            out.truncate(at);
            out.push('…');
            return out;
        }
    }
    out
}

/// The highlighter language of a file, by its name or extension.
pub fn language(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let ending = match name {
        "Dockerfile" => "dockerfile",
        "Makefile" => "make",
        "Cargo.lock" => "toml",
        _ => name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?.1,
    };
    let ending = ending.to_ascii_lowercase();
    let language = match ending.as_str() {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "ts" | "mts" | "cts" => "typescript",
        "js" | "mjs" | "cjs" => "javascript",
        "md" | "markdown" => "markdown",
        "sh" | "bash" | "zsh" => "bash",
        "yml" => "yaml",
        "rb" => "ruby",
        "kt" | "kts" => "kotlin",
        "cs" => "csharp",
        "h" => "c",
        "cc" | "cxx" | "hpp" => "cpp",
        "htm" => "html",
        "jsonl" => "json",
        "txt" | "log" => return None,
        other => other,
    };
    (language.len() <= 12).then(|| language.to_owned())
}
