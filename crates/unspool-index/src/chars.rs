//! Character classes and case folding. Tokenising, query parsing and matching all use these
//! functions, so that the index and the verification of its candidates agree.

/// The role of a character in splitting text into words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CharClass {
    /// Separates words.
    Separator,
    /// Continues a word.
    WordChar,
    /// A word by itself, in scripts written without spaces.
    Standalone,
}

pub(super) fn char_class(character: char) -> CharClass {
    if character.is_ascii() {
        return if character.is_ascii_alphanumeric() {
            CharClass::WordChar
        } else {
            CharClass::Separator
        };
    }
    if !character.is_alphanumeric() {
        return CharClass::Separator;
    }
    match u32::from(character) {
        // Kana, with iteration marks and the ideographic zero; ideographs; hangul syllables.
        0x3005..=0x3007
        | 0x3040..=0x30ff
        | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xff66..=0xff9f
        | 0x1_b000..=0x1_b16f
        | 0x2_0000..=0x3_23af => CharClass::Standalone,
        _ => CharClass::WordChar,
    }
}

/// The lower case of a character, always exactly one character. `İ` is the only one whose lower
/// case is two (`i` and a combining dot, which would split the word); it is not folded. Because
/// folding is one to one, it commutes with cutting: the words of a cut text are cuts of its words.
pub(super) fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        (_, _) => character,
    }
}

/// True if two adjacent characters belong to one word.
pub(super) fn in_same_word(before: Option<char>, after: Option<char>) -> bool {
    let joins =
        |character: Option<char>| character.is_some_and(|it| char_class(it) == CharClass::WordChar);
    joins(before) && joins(after)
}

/// True if a character extends the grapheme before it, so that a snippet must not be cut between
/// them. Not the full Unicode rules (that needs tables), but the common cases: marks, joiners,
/// selectors, skin tones and Hangul.
pub(super) fn extends_grapheme(before: char, character: char) -> bool {
    if before == '\u{200d}' {
        return true;
    }
    matches!(
        u32::from(character),
        0x0300..=0x036f
            | 0x0483..=0x0489
            | 0x0591..=0x05bd
            | 0x0610..=0x061a
            | 0x064b..=0x065f
            | 0x0900..=0x0903
            | 0x093a..=0x094f
            | 0x0e31
            | 0x0e34..=0x0e3a
            | 0x0e47..=0x0e4e
            | 0x1160..=0x11ff
            | 0x1ab0..=0x1aff
            | 0x1dc0..=0x1dff
            | 0x200d
            | 0x20d0..=0x20ff
            | 0x3099..=0x309a
            | 0xfe00..=0xfe0f
            | 0xfe20..=0xfe2f
            | 0x1_f3fb..=0x1_f3ff
            | 0xe_0020..=0xe_007f
            | 0xe_0100..=0xe_01ef
    )
}
