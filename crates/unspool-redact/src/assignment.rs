//! Finds the value assigned to a name: in an `.env` file, in JSON, YAML or source code, as a
//! command-line option, in a URL query, or in a sentence.

use super::declaration::{
    after_alternative, after_declared_type, after_default, after_type, after_word, element_after,
    is_flag, string_below, string_of_language, string_start, word_diff,
};
use super::line::{block_scalar, ends_line, spaces, starts_line};
use super::pair::{is_argument, is_pair};
use super::quote::{closing, quote};
use super::sentence::words_after;
use super::verdict::{AssignmentKind, MAX_VALUE_BYTES};

/// Commands whose first argument is a name and whose second is its value.
#[rustfmt::skip]
const SET_COMMANDS: &[&str] = &[
    "setx ", "configure set ", "config set ", "secrets set ", "setenv ", "env ", "set -gx ", "set -xg ",
    "set --secret ", "set -ux ", "set -xu ", "set -lx ", "set -x ", "set -g ", "set -u ", "set --export ",
];

/// Functions whose first argument is the name of an environment variable or a constant.
const SET_FUNCTIONS: &[&str] = &["variable(", "setenv(", "define(", "define( "];

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
    /// The first argument of `#define` or of `set` in Tcl, whose second one is a string.
    defined: bool,
    /// A variable of Terraform, whose block follows.
    variable: bool,
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
    if name.option && is_flag(text, from) {
        return None;
    }
    let mut operator = operator_after(bytes, &name)?;
    let mut start = spaces(bytes, operator.end);
    if matches!(operator.assignment, AssignmentKind::Line | AssignmentKind::Loose)
        && let Some(after) = after_type(bytes, start)
    {
        start = after;
        operator.assignment = AssignmentKind::Loose;
    }
    if operator.colon
        && let Some(below) = block_scalar(bytes, start, name.start)
    {
        start = below;
        operator.assignment = AssignmentKind::Line;
    }
    let below = string_below(bytes, start).filter(|_| !operator.listed);
    if let Some(below) = below {
        start = below;
        if operator.assignment == AssignmentKind::Environment {
            operator.assignment = AssignmentKind::Loose;
        }
    }
    start = string_start(bytes, start);
    if operator.listed && byte_at(bytes, start) == b'`' {
        return None;
    }
    let string = string_of_language(bytes, start, operator.colon).filter(|_| !operator.listed);
    if let Some((start, end)) = string {
        return piece(text, start, end, kind_of_quoted(&name, &operator));
    }
    if let Some((start, end)) = word_diff(bytes, start).filter(|_| !operator.listed) {
        return piece(text, start, end, operator.assignment);
    }
    if let Some(quote) = quote(bytes, start) {
        let start = quote.content(bytes, start);
        let end = closing(bytes, start, &quote);
        // `"token", "next": …`: the next string is a key.
        if (operator.listed || below.is_some())
            && byte_at(bytes, spaces(bytes, end + quote.length)) == b':'
        {
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
    // `["password"]`, and `[password] => …`, which PHP prints.
    let opens = from > 0 && byte_at(bytes, from - 1) == b'[';
    let printed = || opens && bytes.get(end..).is_some_and(|rest| rest.starts_with(b"] =>"));
    if quote.is_some() && byte_at(bytes, end) == b']' || printed() {
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
        defined: matches!(before, [.., b' ' | b'\t']) && is_defining(before.trim_ascii_end()),
        variable: before.ends_with(b"variable \""),
        keyed: [&b"key=\""[..], b"name=\"", b"key=\\\"", b"name=\\\""]
            .iter()
            .any(|attribute| before.ends_with(attribute)),
        symbol: matches!(before, [.., other, b':'] if *other != b':') || before == b":",
        wireless: name.eq_ignore_ascii_case("psk"),
    })
}

/// True after `#define`, or `set` as the first word of a command.
fn is_defining(before: &[u8]) -> bool {
    let command = before.strip_suffix(b"set").map(<[u8]>::trim_ascii_end);
    before.ends_with(b"define")
        || command.is_some_and(|line| matches!(line, [] | [.., b'\n' | b';' | b'{' | b'"']))
}

/// Reads an operator that occurs in source code only, or the block that stands for one.
fn code_operator(bytes: &[u8], name: &AssignedName, gap: usize) -> Option<Operator> {
    let spaced = gap > name.end;
    let plain = |assignment, end| {
        Some(Operator { assignment, end, colon: false, listed: false, encoded: false })
    };
    match bytes.get(gap..)? {
        [b'|', b'|', b'=', ..] | [b'?', b'?', b'=', ..] => plain(AssignmentKind::Loose, gap + 3),
        [b'?', b'=', ..] if spaced => plain(AssignmentKind::Loose, gap + 2),
        [b')' | b'|' | b'?' | b'o', ..] => {
            let end = after_alternative(bytes, name.end)?;
            Some(Operator { listed: true, ..plain(AssignmentKind::Loose, end)? })
        }
        [b'<', b'-', ..] if spaced && quote(bytes, spaces(bytes, gap + 2)).is_some() => {
            plain(AssignmentKind::Loose, gap + 2)
        }
        [b'-', b'>', ..] if spaced => plain(AssignmentKind::Table, gap + 2),
        [0xE2, 0x86, 0x92, ..] if spaced => plain(AssignmentKind::Table, gap + 3),
        [b'{', ..] if name.variable => plain(AssignmentKind::Loose, after_default(bytes, gap)?),
        [first, ..] if spaced || *first == b'[' => {
            if name.defined && !name.set && quote(bytes, string_start(bytes, gap)).is_some() {
                return plain(AssignmentKind::Loose, gap);
            }
            plain(AssignmentKind::Loose, after_declared_type(bytes, name.end)? + 1)
        }
        _ => None,
    }
}

/// Reads the operator after a name. `None` if nothing is assigned.
fn operator_after(bytes: &[u8], name: &AssignedName) -> Option<Operator> {
    let at = |index: usize| byte_at(bytes, index);
    let plain =
        |assignment, end| Operator { assignment, end, colon: false, listed: false, encoded: false };
    let gap = spaces(bytes, name.end);
    let spaced = gap > name.end;
    if let Some(operator) = code_operator(bytes, name, gap) {
        return Some(operator);
    }
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
        [b'<', b'/', ..] => plain(AssignmentKind::Markup, gap + element_after(rest)?),
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
        // `key="password" value="…"`, `<meta name="csrf-token" content="…">`
        [b'v' | b'V' | b'c', ..] if name.quoted && spaced => {
            let end = after_word(bytes, gap, "value").or(after_word(bytes, gap, "content"))?;
            Operator { colon: true, ..plain(AssignmentKind::Loose, end) }
        }
        [b'|', ..] if spaced => plain(AssignmentKind::Loose, gap + 1),
        // The border of a table: `│`, `┃`, `║`.
        [0xE2, 0x94, 0x82 | 0x83, ..] | [0xE2, 0x95, 0x91, ..] if spaced => {
            plain(AssignmentKind::Loose, gap + 3)
        }
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
            let (assignment, end) = words_after(bytes, name.end, gap)?;
            plain(assignment, end)
        }
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

/// True for names of constants and environment variables.
pub(super) fn is_constant(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_lowercase() || byte == b'-')
}
