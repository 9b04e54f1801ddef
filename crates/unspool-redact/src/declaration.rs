//! What source code, and what it prints, puts between a name and its value besides an operator:
//! types, line ends, prefixes of strings and what wraps them.

use super::line::{MAX_GAP_BYTES, spaces};
use super::quote::quote;
use super::value_shape::MARK;

/// Types of strings that stand between a name and its value: `const apiToken string = "…"`.
#[rustfmt::skip]
const TYPES: &[&str] = &[
    "string", "*string", "[]byte", "as string", "nvarchar", "varchar", "char", "text",
];

/// What stands around a string in source code and in the output of a debugger.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "Some(", "Ok(", "Just ", "String::from(", "SecretString::from(", "Secret::new(", "SecretStr(",
    "[]byte(", "std::string(", "new String(",
];

/// Longest block of a variable in Terraform.
const MAX_BLOCK_BYTES: usize = 300;

/// Where the `=` stands after the type of a declared name: `apiToken string = "…"`,
/// `password[] = "…"`. A string must follow it.
pub(super) fn after_declared_type(bytes: &[u8], name: usize) -> Option<usize> {
    let rest = bytes.get(name..)?;
    let end = match rest.first()? {
        b'[' => {
            let size = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let length = rest[1..].iter().take(MAX_GAP_BYTES).take_while(size).count();
            (rest.get(length + 1) == Some(&b']')).then_some(name + length + 2)?
        }
        b' ' | b'\t' => {
            let start = spaces(bytes, name);
            let rest = bytes.get(start..)?;
            let starts = |kind: &&&str| {
                rest.get(..kind.len()).is_some_and(|s| s.eq_ignore_ascii_case(kind.as_bytes()))
            };
            let end = start + TYPES.iter().find(starts)?.len();
            // The length of a column or a variable.
            let length = bytes.get(end..)?.iter().take(8).position(|byte| *byte == b')');
            length.filter(|_| bytes.get(end) == Some(&b'(')).map_or(end, |length| end + length + 1)
        }
        _ => return None,
    };
    let operator = spaces(bytes, end);
    let sign = match bytes.get(operator..)? {
        [b':', b'=', ..] => operator + 1,
        [b'=', ..] => operator,
        _ => return None,
    };
    is_string(bytes, spaces(bytes, sign + 1)).then_some(sign)
}

/// The start of the value after an operator whose alternative is a string: `env("API_KEY") or "…"`,
/// `apiKey ?? "…"`.
pub(super) fn after_alternative(bytes: &[u8], name: usize) -> Option<usize> {
    let closed = name + usize::from(bytes.get(name) == Some(&b')'));
    let operator = spaces(bytes, closed);
    let length = match bytes.get(operator..)? {
        [b'|', b'|', ..] | [b'?', b'?' | b':', ..] => 2,
        [b'o', b'r', b' ', ..] if operator > closed => 2,
        _ => return None,
    };
    let start = spaces(bytes, operator + length);
    is_string(bytes, start).then_some(start)
}

/// The start of the value of `default` in the block that opens at an offset, as in
/// `variable "db_password" { default = "…" }` of Terraform.
pub(super) fn after_default(bytes: &[u8], open: usize) -> Option<usize> {
    let block = bytes.get(open..)?;
    let block = &block[..block.len().min(MAX_BLOCK_BYTES)];
    let block = &block[..block.iter().position(|byte| *byte == b'}').unwrap_or(block.len())];
    let word = b"default";
    let names = block.windows(word.len()).enumerate().filter(|(_, window)| window == word);
    let mut signs = names.map(|(found, _)| spaces(bytes, open + found + word.len()));
    let sign = signs.find(|sign| bytes.get(*sign) == Some(&b'='))?;
    Some(spaces(bytes, sign + 1))
}

/// Where a string begins, without its prefix and what wraps it: `b"…"`, `@"…"`, `Some("…")`,
/// `string(8) "…"`. The offset itself if no string begins there.
pub(super) fn string_start(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let wrapped = from + wrapper_length(rest);
    let inner = bytes.get(wrapped..).unwrap_or_default().iter();
    let prefix = inner.take(3).take_while(|byte| b"bBrRuUfLN@#$".contains(byte)).count();
    let start = wrapped + prefix;
    let plain = matches!(bytes.get(start), Some(b'"' | b'\'' | b'\\'));
    if start > from && plain && quote(bytes, start).is_some() { start } else { from }
}

fn is_string(bytes: &[u8], at: usize) -> bool {
    string_start(bytes, at) > at || quote(bytes, at).is_some()
}

fn wrapper_length(rest: &[u8]) -> usize {
    if !matches!(rest.first(), Some(b'S' | b'O' | b'J' | b'[' | b's' | b'n')) {
        return 0;
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| rest.starts_with(wrapper.as_bytes())) {
        return wrapper.len();
    }
    // `string(8) "…"`: var_dump of PHP.
    let Some(dumped) = rest.strip_prefix(b"string(") else { return 0 };
    let digits = dumped.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
    let closes = dumped.get(digits..).is_some_and(|rest| rest.starts_with(b") "));
    if closes { b"string(".len() + digits + 2 } else { 0 }
}

/// The start of a string on the line after an operator: `"password":` and the value below it.
pub(super) fn string_below(bytes: &[u8], operator: usize) -> Option<usize> {
    let line = match bytes.get(operator..)? {
        [b'\n', ..] => operator + 1,
        [b'\r', b'\n', ..] => operator + 2,
        _ => return None,
    };
    let diff = usize::from(bytes.get(line) == Some(&b'+'));
    let start = spaces(bytes, line + diff);
    (start > line && is_string(bytes, start)).then_some(start)
}

/// The value of a string without quotes: that of Perl, or that of Lua, which after a colon is a link of
/// a wiki.
pub(super) fn string_of_language(bytes: &[u8], at: usize, colon: bool) -> Option<(usize, usize)> {
    perl_string(bytes, at).or_else(|| long_string(bytes, at).filter(|_| !colon))
}

/// The value of `q{…}` and `q(…)` in Perl.
fn perl_string(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = bytes.get(at..)?;
    let open = match rest {
        [b'q', b'q', b'{' | b'(', ..] => 2,
        [b'q', b'{' | b'(', ..] => 1,
        _ => return None,
    };
    let close = if rest[open] == b'{' { b'}' } else { b')' };
    let value = &rest[open + 1..rest.len().min(open + 1 + 2 * MAX_BLOCK_BYTES)];
    let length = value.iter().position(|byte| *byte == close || *byte == b'\n')?;
    (value[length] == close).then_some((at + open + 1, at + open + 1 + length))
}

/// The value of `[[…]]` in Lua.
fn long_string(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let value = bytes.get(at..)?.strip_prefix(b"[[")?;
    let value = &value[..value.len().min(2 * MAX_BLOCK_BYTES)];
    let length = value.iter().position(|byte| b"[]\"'\n".contains(byte))?;
    value[length..].starts_with(b"]]").then_some((at + 2, at + 2 + length))
}

/// The value in `[-old-]{+new+}`, which `git diff --word-diff` prints: the new one, or the old one
/// where that is replaced already or there is none.
pub(super) fn word_diff(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(2 * MAX_BLOCK_BYTES)];
    let inside = |open: &[u8], close: &[u8], from: usize| {
        let value = rest.get(from..)?.strip_prefix(open)?;
        let length = value.windows(2).position(|pair| pair == close || pair[0] == b'\n')?;
        let start = from + open.len();
        value[length..].starts_with(close).then_some((start, start + length))
    };
    let old = inside(b"[-", b"-]", 0);
    let new = inside(b"{+", b"+}", old.map_or(0, |(_, end)| end + 2));
    let new =
        new.filter(|(start, _)| old.is_none() || !rest[*start..].starts_with(MARK.as_bytes()));
    new.or(old).map(|(start, end)| (at + start, at + end))
}

/// True for the option at an offset, if it stands before a name: `config set --secret dbPassword …`.
pub(super) fn is_flag(text: &str, at: usize) -> bool {
    let command = text.get(..at).unwrap_or_default();
    command.ends_with("config set ") || command.ends_with("config get ")
}

/// Elements that hold a name, and the element beside them that holds the value: a property list,
/// the configuration of Hadoop.
const NAMED_ELEMENTS: &[(&str, &str)] =
    &[("</key>", "<string>"), ("</name>", "<value>"), ("</Name>", "<Value>")];

/// The length of the end of the element with a name, and of the tag before the value.
pub(super) fn element_after(rest: &[u8]) -> Option<usize> {
    let (end, tag) = NAMED_ELEMENTS.iter().find(|(end, _)| rest.starts_with(end.as_bytes()))?;
    let mut value = end.len();
    while let Some(byte) = rest.get(value).filter(|_| value - end.len() < MAX_GAP_BYTES) {
        // Line ends may be escaped.
        let escaped = matches!(byte, b'n' | b'r') && rest[value - 1] == b'\\';
        if !byte.is_ascii_whitespace() && *byte != b'\\' && !escaped {
            break;
        }
        value += 1;
    }
    rest[value..].starts_with(tag.as_bytes()).then_some(value + tag.len())
}

/// The start of the value after `…, "value": ` or after a line `value: `.
pub(super) fn after_word(bytes: &[u8], from: usize, word: &str) -> Option<usize> {
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
pub(super) fn after_type(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let typed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:&<>[]?|' ".contains(byte);
    let length = rest.iter().take(MAX_GAP_BYTES).take_while(|byte| typed(byte)).count();
    let assigns = rest.get(length) == Some(&b'=') && rest.get(length + 1) != Some(&b'=');
    let name = rest.get(..length)?;
    // Without a space, `=` may be base64 padding.
    let apart = name.last() == Some(&b' ') || name.iter().all(u8::is_ascii_alphabetic);
    (length >= 2 && assigns && apart).then(|| spaces(bytes, from + length + 1))
}
