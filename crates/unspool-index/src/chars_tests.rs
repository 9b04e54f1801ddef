use super::chars::{CharClass, char_class, fold};

/// The index relies on it: folding neither splits nor joins words, and is idempotent.
#[test]
fn folding_keeps_the_role_of_every_character() {
    for character in '\0'..=char::MAX {
        let folded = fold(character);
        assert_eq!(char_class(character), char_class(folded), "{character:?} {folded:?}");
        assert_eq!(fold(folded), folded, "{character:?}");
    }
}

#[test]
fn scripts_without_spaces_have_words_of_one_character() {
    for character in "中文々〇かなカナー한글ｶﾅ𠀀".chars() {
        assert_eq!(char_class(character), CharClass::Standalone, "{character:?}");
    }
    for character in "aZ0éßЖΩकתع②Ⅷ".chars() {
        assert_eq!(char_class(character), CharClass::WordChar, "{character:?}");
    }
    for character in "_-./\\\" \n、。・！😀\u{301}\u{200d}".chars() {
        assert_eq!(char_class(character), CharClass::Separator, "{character:?}");
    }
}
