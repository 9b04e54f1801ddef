//! What stands between a name and its value in a sentence or in the columns of a table.

use super::verdict::AssignmentKind;

/// Verbs of sentences. After English and German names, and after those of other languages.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "is set to ", "is set to: ", "set to ", "set to: ", "was set to ", "has been set to ",
    "is now ", "is now: ", "reset to ", "was reset to ", "has been reset to ", "changed to ",
    "was changed to ", "has been changed to ", "will be ", "will be: ",
    "is ", "was ", "is: ", "was: ", "ist ", "ist: ", "lautet ", "lautet: ", "es ", "es: ", "est ",
    "est : ", "jest ", "é ", "è ", "är ",
];
const UNSPACED_VERBS: &[&str] = &["是", "为", "は"];

/// Reads the verb of a sentence, or the gap of a table, between a name and its value.
pub(super) fn words_after(
    bytes: &[u8],
    name: usize,
    gap: usize,
) -> Option<(AssignmentKind, usize)> {
    let spaced = gap > name;
    let rest = bytes.get(gap..).unwrap_or_default();
    let first = rest.first().copied().unwrap_or_default();
    let starts =
        |verb: &&&str| verb.as_bytes().first() == Some(&first) && rest.starts_with(verb.as_bytes());
    let verb = VERBS.iter().filter(|_| spaced).find(starts);
    Some(match verb.or_else(|| UNSPACED_VERBS.iter().find(starts)) {
        // What follows this verb is quoted word by word.
        Some(verb) if verb.starts_with("lautet") => (AssignmentKind::Line, gap + verb.len()),
        Some(verb) => (AssignmentKind::Sentence, gap + verb.len()),
        None if gap >= name + 2 || bytes.get(name) == Some(&b'\t') => (AssignmentKind::Table, gap),
        None => return None,
    })
}
