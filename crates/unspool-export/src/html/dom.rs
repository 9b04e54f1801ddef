//! The ids of the elements that live updates, links and scripts address. Only this file spells
//! their prefixes; the scripts of `unspool-server` import them from `ids.js`, which `script`
//! generates.

use std::fmt::Display;

const TURN: &str = "t-";
const TURN_HEAD: &str = "h-";
const USER: &str = "u-";
const PART: &str = "p-";
const REASONING: &str = "g-";

pub fn turn(id: impl Display) -> String {
    format!("{TURN}{id}")
}

/// The header of a turn.
pub fn turn_head(id: impl Display) -> String {
    format!("{TURN_HEAD}{id}")
}

/// The user's message in a turn.
pub fn user(turn: impl Display) -> String {
    format!("{USER}{turn}")
}

pub fn part(id: impl Display) -> String {
    format!("{PART}{id}")
}

/// A reasoning block, by its first part.
pub fn reasoning(first_part: impl Display) -> String {
    format!("{REASONING}{first_part}")
}

/// The module with the prefixes that scripts need.
pub fn script() -> String {
    format!(
        "// Prefixes of element ids.\n\nexport const ID = {{ turn: \"{TURN}\", user: \"{USER}\", part: \"{PART}\" }};\n"
    )
}

#[cfg(test)]
#[path = "dom_tests.rs"]
mod tests;
