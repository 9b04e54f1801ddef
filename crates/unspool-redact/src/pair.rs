//! Recognises `name=value` among other pairs, in which a value need not look random.

use super::line::{MAX_GAP_BYTES, ends_line, starts_line};

/// Options of commands whose value is a list of pairs.
const PAIR_OPTIONS: &[&str] =
    &["--set", "--set-string", "-var", "--var", "-o", "-e", "-F", "-d", "--form", "--data", "put"];

/// True if `name=` is one of several pairs, as in a connection string or the arguments of a command,
/// or starts its line, as in a file of properties.
pub(super) fn is_pair(bytes: &[u8], name: usize) -> bool {
    let before = bytes.get(name.saturating_sub(MAX_GAP_BYTES)..name).unwrap_or_default();
    let before = before.strip_suffix(b"'").or(before.strip_suffix(b"\"")).unwrap_or(before);
    match before {
        [.., b';' | b','] => true,
        [words @ .., b' '] if !starts_line(bytes, name) => {
            let word = words.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
            let option = PAIR_OPTIONS.iter().any(|option| option.as_bytes() == word);
            option || word.contains(&b'=') && !word.contains(&b'(') && !word.ends_with(b",")
        }
        _ => starts_line(bytes, name),
    }
}

/// True if what follows a pair shows that it is an argument in source code.
pub(super) fn is_argument(bytes: &[u8], name: usize, end: usize) -> bool {
    let next = bytes.get(end).copied().unwrap_or_default();
    matches!(next, b')' | b'(' | b'.')
        || starts_line(bytes, name) && (next == b',' || !ends_line(bytes, end))
}
