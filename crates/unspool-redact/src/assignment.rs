//! Finds the value assigned to a name: in an `.env` file, in JSON, YAML or source code, as a
//! command-line option, in a URL query, or in a sentence.

use super::line::{MAX_GAP_BYTES, block_scalar, ends_line, spaces, starts_line};
use super::pair::{is_argument, is_pair};
use super::quote::{closing, quote};
use super::verdict::{AssignmentKind, MAX_VALUE_BYTES};

/// Commands whose first argument is a name and whose second is its value.
#[rustfmt::skip]
const SET_COMMANDS: &[&str] = &[
    "setx ", "configure set ", "config set ", "secrets set ", "setenv ", "env ", "set -gx ", "set -xg ",
    "set -ux ", "set -xu ", "set -lx ", "set -x ", "set -g ", "set -u ", "set --export ",
];

/// Functions whose first argument is the name of an environment variable or a constant.
const SET_FUNCTIONS: &[&str] = &["variable(", "setenv(", "define(", "define( "];

/// Verbs of sentences. After English and German names, and after those of other languages.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "is ", "was ", "is: ", "was: ", "ist ", "ist: ", "lautet ", "lautet: ", "es ", "es: ", "est ",
    "est : ", "jest ", "é ", "è ", "är ",
];
const UNSPACED_VERBS: &[&str] = &["是", "为", "は"];

/// A value's byte range and the form of its assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) assignment: AssignmentKind,
}

/// The name of a value and what stands directly around it.
struct AssignedName {
    start: usize,
    /// After the closing quote or bracket of the name, if it has one.
    end: usize,
    /// The byte before the name, or 0.
    before: u8,
    /// The name of a constant or of an environment variable.
    constant: bool,
    /// A command-line option: `--token`.
    option: bool,
    quoted: bool,
    /// The first argument of one of the [`SET_COMMANDS`].
    set: bool,
    /// The first argument of one of the [`SET_FUNCTIONS`].
    called: bool,
    /// The value of an attribute `key` or `name`.
    keyed: bool,
    /// `:password`, a symbol of Clojure or Ruby, or `$env:PASSWORD`.
    symbol: bool,
    /// The key of a wireless network, which is quoted if a person chose it.
    wireless: bool,
}

/// What stands between a name and its value.
struct Operator {
    assignment: AssignmentKind,
    /// Where the value or the white space before it starts.
    end: usize,
    /// A colon, or a pair of `name` and `value` fields, which means the same.
    colon: bool,
    /// `set("password", "…")`: one argument after the other.
    listed: bool,
    /// `token%3D…%26`: the query is the value of another one.
    encoded: bool,
}

/// Finds the value assigned to the name at `from..to`.
pub(super) fn value_of(text: &str, from: usize, to: usize) -> Option<Value> {
    let bytes = text.as_bytes();
    let name = assigned_name(text, from, to)?;
    let mut operator = operator_after(bytes, &name)?;
    let mut start = spaces(bytes, operator.end);
    if let Some(after) = after_type(bytes, start, operator.assignment) {
        start = after;
        operator.assignment = AssignmentKind::Loose;
    }
    if operator.colon
        && let Some(below) = block_scalar(bytes, start, name.start)
    {
        start = below;
        operator.assignment = AssignmentKind::Line;
    }
    // b"…", r"…"
    if matches!(byte_at(bytes, start), b'b' | b'r' | b'u')
        && matches!(byte_at(bytes, start + 1), b'"' | b'\'')
    {
        start += 1;
    }
    if operator.listed && byte_at(bytes, start) == b'`' {
        return None;
    }
    if let Some(quote) = quote(bytes, start) {
        let start = start + quote.length;
        let end = closing(bytes, start, &quote);
        // `"token", "next": …`: the next string is a key.
        if operator.listed && byte_at(bytes, spaces(bytes, end + quote.length)) == b':' {
            return None;
        }
        return piece(text, start, end, kind_of_quoted(&name, &operator));
    }
    if operator.listed {
        return None;
    }
    let end = open_end(bytes, start, &operator);
    let is_inside_line = match operator.assignment {
        AssignmentKind::Line => !ends_line(bytes, end),
        AssignmentKind::Pair => is_argument(bytes, name.start, end),
        AssignmentKind::Environment
        | AssignmentKind::Option
        | AssignmentKind::Query
        | AssignmentKind::Field
        | AssignmentKind::Markup
        | AssignmentKind::Literal
        | AssignmentKind::Argument
        | AssignmentKind::Loose
        | AssignmentKind::Table
        | AssignmentKind::Sentence
        | AssignmentKind::Quoted => false,
    };
    let assignment = if is_inside_line { AssignmentKind::Loose } else { operator.assignment };
    piece(text, start, end, assignment)
}

fn assigned_name(text: &str, from: usize, to: usize) -> Option<AssignedName> {
    let bytes = text.as_bytes();
    let name = text.get(from..to)?;
    let exported = from >= 7 && text.get(from - 7..from).is_some_and(|word| word == "export ");
    let constant = is_constant(name) || exported;
    let quote = quote(bytes, to).filter(|_| !constant || byte_at(bytes, to) != b'`');
    let mut end = to + quote.as_ref().map_or(0, |quote| quote.length);
    if quote.is_some() && byte_at(bytes, end) == b']' {
        end += 1;
    }
    let before = bytes.get(from.saturating_sub(16)..from).unwrap_or_default();
    // Most names follow no command, which two bytes tell.
    let follows = |command: &&str| {
        let start = before.len().checked_sub(command.len());
        start.is_some_and(|start| before[start..].eq_ignore_ascii_case(command.as_bytes()))
    };
    Some(AssignedName {
        start: from,
        end,
        before: from.checked_sub(1).map_or(0, |before| byte_at(bytes, before)),
        constant,
        option: name.starts_with('-'),
        quoted: quote.is_some(),
        set: matches!(
            before,
            [.., b't' | b'T' | b'x' | b'X' | b'v' | b'V' | b'g' | b'u' | b'U', b' ']
        ) && SET_COMMANDS.iter().any(follows),
        called: matches!(before, [.., b'"' | b'\'']) && {
            let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'\\');
            let quotes = before.iter().rev().take_while(|byte| quote(byte)).count();
            let call = &before[..before.len() - quotes];
            let follows = |function: &&str| {
                let start = call.len().checked_sub(function.len());
                start.is_some_and(|start| call[start..].eq_ignore_ascii_case(function.as_bytes()))
            };
            SET_FUNCTIONS.iter().any(follows)
        },
        keyed: [&b"key=\""[..], b"name=\"", b"key=\\\"", b"name=\\\""]
            .iter()
            .any(|attribute| before.ends_with(attribute)),
        symbol: matches!(before, [.., other, b':'] if *other != b':') || before == b":",
        wireless: name.eq_ignore_ascii_case("psk"),
    })
}

/// Reads the operator after a name. `None` if nothing is assigned.
fn operator_after(bytes: &[u8], name: &AssignedName) -> Option<Operator> {
    let at = |index: usize| byte_at(bytes, index);
    let plain =
        |assignment, end| Operator { assignment, end, colon: false, listed: false, encoded: false };
    let gap = spaces(bytes, name.end);
    let spaced = gap > name.end;
    let rest = bytes.get(gap..).unwrap_or_default();
    let line = || match starts_line(bytes, name.start) {
        true => AssignmentKind::Line,
        false => AssignmentKind::Loose,
    };
    Some(match rest {
        [b'=', b'>', ..] => plain(AssignmentKind::Loose, gap + 2),
        [b'=', ..] => {
            let end = gap + rest.iter().take_while(|byte| **byte == b'=').count();
            let kind = kind_of_equals(name, spaced, at(end));
            let pair = kind == AssignmentKind::Loose && !spaced && !matches!(at(end), b' ' | b'\t');
            let kind = match pair {
                true if name.wireless && starts_line(bytes, name.start) => AssignmentKind::Line,
                true if is_pair(bytes, name.start) => AssignmentKind::Pair,
                true | false => kind,
            };
            plain(kind, end)
        }
        [b'%', b'3', b'd' | b'D', ..] if !spaced => {
            Operator { encoded: true, ..plain(AssignmentKind::Query, gap + 3) }
        }
        [b':', b':', ..] => return None,
        [b':', next, ..] => {
            Operator { colon: true, ..plain(line(), gap + 1 + usize::from(*next == b'=')) }
        }
        // Full-width colon and equals sign.
        [0xEF, 0xBC, 0x9A | 0x9D, ..] => Operator { colon: true, ..plain(line(), gap + 3) },
        // A property list: `<key>password</key> <string>…`.
        [b'<', b'/', b'k', b'e', b'y', b'>', ..] => {
            let gap = rest[6..].iter().take(MAX_GAP_BYTES).take_while(|b| b.is_ascii_whitespace());
            let tag = gap.count() + 6;
            rest[tag..].starts_with(b"<string>").then_some(())?;
            plain(AssignmentKind::Markup, spaces(bytes, name.end) + tag + 8)
        }
        [b'>', ..] if (name.before == b'<' || name.keyed) && !spaced => {
            plain(AssignmentKind::Markup, gap + 1)
        }
        [b',', ..] if name.quoted => {
            let pair = after_word(bytes, gap + 1, "value");
            Operator {
                colon: pair.is_some(),
                listed: pair.is_none(),
                ..plain(AssignmentKind::Loose, pair.unwrap_or(gap + 1))
            }
        }
        // `key="password" value="…"`
        [b'v' | b'V', ..] if name.quoted && spaced => {
            let end = after_word(bytes, gap, "value")?;
            Operator { colon: true, ..plain(AssignmentKind::Loose, end) }
        }
        [b'|', ..] if spaced => plain(AssignmentKind::Loose, gap + 1),
        // The quote may be an escaped one.
        _ if (name.option || name.set) && spaced && quote(bytes, gap).is_some() => {
            plain(AssignmentKind::Option, gap)
        }
        _ if name.symbol && spaced && quote(bytes, gap).is_some() => {
            plain(AssignmentKind::Field, gap)
        }
        // `- name: DB_PASSWORD`, and on the next line `value: …`.
        [b'\n' | b'\r' | b'\\', ..] => {
            plain(AssignmentKind::Line, after_word(bytes, gap, "value")?)
        }
        _ if (name.option || name.set) && spaced => plain(AssignmentKind::Option, gap),
        _ => {
            let (assignment, end) = words_after(bytes, name, gap)?;
            plain(assignment, end)
        }
    })
}

/// Reads the verb of a sentence, or the gap of a table, between a name and its value.
fn words_after(bytes: &[u8], name: &AssignedName, gap: usize) -> Option<(AssignmentKind, usize)> {
    let spaced = gap > name.end;
    let rest = bytes.get(gap..).unwrap_or_default();
    let first = rest.first().copied().unwrap_or_default();
    let starts =
        |verb: &&&str| verb.as_bytes().first() == Some(&first) && rest.starts_with(verb.as_bytes());
    let verb = VERBS.iter().filter(|_| spaced).find(starts);
    Some(match verb.or_else(|| UNSPACED_VERBS.iter().find(starts)) {
        // What follows this verb is quoted word by word.
        Some(verb) if verb.starts_with("lautet") => (AssignmentKind::Line, gap + verb.len()),
        Some(verb) => (AssignmentKind::Sentence, gap + verb.len()),
        None if gap >= name.end + 2 || byte_at(bytes, name.end) == b'\t' => {
            (AssignmentKind::Table, gap)
        }
        None => return None,
    })
}

/// The kind of an assignment with `=`, by its name, the space before the `=` and the byte after it.
fn kind_of_equals(name: &AssignedName, spaced: bool, after: u8) -> AssignmentKind {
    if name.option {
        AssignmentKind::Option
    } else if matches!(name.before, b'?' | b'&') && !spaced {
        AssignmentKind::Query
    } else if name.constant && !spaced && !matches!(after, b' ' | b'\t') {
        AssignmentKind::Environment
    } else if name.wireless && !spaced && after == b'"' {
        AssignmentKind::Field
    } else {
        AssignmentKind::Loose
    }
}

/// The kind of an assignment whose value is in quotes.
fn kind_of_quoted(name: &AssignedName, operator: &Operator) -> AssignmentKind {
    match operator.assignment {
        kind @ (AssignmentKind::Environment
        | AssignmentKind::Option
        | AssignmentKind::Query
        | AssignmentKind::Markup
        | AssignmentKind::Argument
        | AssignmentKind::Quoted
        | AssignmentKind::Table) => kind,
        AssignmentKind::Sentence => AssignmentKind::Quoted,
        AssignmentKind::Pair => AssignmentKind::Literal,
        // `"API_SECRET": "…"`. After `=` it would be a constant in source code.
        AssignmentKind::Line | AssignmentKind::Loose if name.constant && operator.colon => {
            AssignmentKind::Environment
        }
        AssignmentKind::Field | AssignmentKind::Line => AssignmentKind::Field,
        AssignmentKind::Literal | AssignmentKind::Loose => {
            if operator.listed && !name.called {
                AssignmentKind::Argument
            } else if name.quoted || name.symbol {
                AssignmentKind::Field
            } else {
                AssignmentKind::Literal
            }
        }
    }
}

/// The byte at an index, or 0 after the end.
fn byte_at(bytes: &[u8], index: usize) -> u8 {
    bytes.get(index).copied().unwrap_or_default()
}

fn piece(text: &str, start: usize, end: usize, assignment: AssignmentKind) -> Option<Value> {
    let end = text.floor_char_boundary(end);
    (start < end && text.is_char_boundary(start)).then_some(Value { start, end, assignment })
}

/// The end of an unquoted value.
fn open_end(bytes: &[u8], start: usize, operator: &Operator) -> usize {
    let assignment = operator.assignment;
    let most = bytes.len().min(start + MAX_VALUE_BYTES);
    let mut end = start;
    while end < most {
        let byte = bytes[end];
        let next = bytes.get(end + 1).copied().unwrap_or_default();
        let stops = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'<' | b'>' | 0 => true,
            b'\\' => matches!(next, b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'\n' | b'u'),
            b'&' => assignment == AssignmentKind::Query || next == b'&',
            b'#' => assignment == AssignmentKind::Query,
            b'%' if operator.encoded => matches!(bytes.get(end + 1..end + 3), Some(b"26" | b"23")),
            b';' | b',' | b')' | b'}' | b']' | b'|' => {
                assignment != AssignmentKind::Environment && assignment != AssignmentKind::Option
                    || matches!(next, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'\\' | 0)
            }
            0x1b => true,
            _ => false,
        };
        if stops {
            break;
        }
        end += 1;
    }
    while end > start && matches!(bytes[end - 1], b'.' | b':' | b'!' | b'?' | b',') {
        end -= 1;
    }
    end
}

/// The start of the value after `…, "value": ` or after a line `value: `.
fn after_word(bytes: &[u8], from: usize, word: &str) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let mut gap = 0;
    while let Some(byte) = rest.get(gap).filter(|_| gap < MAX_GAP_BYTES) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'\\' => gap += 1,
            // An escaped newline.
            b'n' | b'r' if gap > 0 && rest.get(gap - 1) == Some(&b'\\') => gap += 1,
            _ => break,
        }
    }
    let rest = rest.get(gap..)?;
    let found = rest.get(..word.len())?.eq_ignore_ascii_case(word.as_bytes());
    let after = rest.get(word.len()..)?;
    let quotes =
        after.iter().take(16).take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    let colon = after.get(quotes).is_some_and(|byte| matches!(byte, b':' | b'='));
    (found && colon).then_some(from + gap + word.len() + quotes + 1)
}

/// The start of the value after a type annotation: `token: string = "…"`.
fn after_type(bytes: &[u8], from: usize, assignment: AssignmentKind) -> Option<usize> {
    if !matches!(assignment, AssignmentKind::Line | AssignmentKind::Loose) {
        return None;
    }
    let rest = bytes.get(from..)?;
    let typed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:&<>[]?|' ".contains(byte);
    let length = rest.iter().take(MAX_GAP_BYTES).take_while(|byte| typed(byte)).count();
    let assigns = rest.get(length) == Some(&b'=') && rest.get(length + 1) != Some(&b'=');
    let name = rest.get(..length)?;
    // Without a space, `=` may be base64 padding.
    let apart = name.last() == Some(&b' ') || name.iter().all(u8::is_ascii_alphabetic);
    (length >= 2 && assigns && apart).then(|| spaces(bytes, from + length + 1))
}

/// True for names of constants and environment variables.
pub(super) fn is_constant(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_lowercase() || byte == b'-')
}
