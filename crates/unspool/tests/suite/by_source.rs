//! One test per source for a check over all recordings, so that the sources run at the same time.
//!
//! `by_source!(check)` makes a module `check` with one test per folder of `fixtures/`. Each calls
//! the function `check` with the name of its folder.

use crate::case::{all_cases, name};

macro_rules! by_source {
    ($check:ident) => {
        $crate::by_source::by_source!(@sources tests $check);
    };
    // The only list of sources: the name of a test and of its folder.
    (@sources $rule:ident $($check:ident)?) => {
        $crate::by_source::by_source! { @$rule $($check)?:
            ai_sdk "ai-sdk", aider "aider", atif "atif", claude_code "claude-code", cline "cline",
            codex "codex", continue_dev "continue", copilot "copilot", droid "droid",
            gemini "gemini", kilo "kilo", mini_swe_agent "mini-swe-agent", opencode "opencode",
            pi "pi", qwen "qwen", rows "rows", thoughtflow "thoughtflow" }
    };
    (@tests $check:ident: $($test:ident $source:literal),+) => {
        mod $check {
            $(
                #[test]
                fn $test() {
                    super::$check($source);
                }
            )+
        }
    };
    (@names: $($test:ident $source:literal),+) => {
        [$($source),+]
    };
}
pub(crate) use by_source;

pub const SOURCES: [&str; 17] = by_source!(@sources names);

/// Fails if a check compared less than it must: it would pass without having looked. The minima are
/// in the order of `SOURCES`.
#[track_caller]
pub fn assert_seen(source: &str, seen: usize, minima: [usize; SOURCES.len()]) {
    let at = SOURCES.iter().position(|one| *one == source).unwrap();
    assert!(seen >= minima[at], "{source}: only {seen} were compared");
}

#[test]
fn every_folder_of_fixtures_has_its_tests() {
    let cases = all_cases();
    let mut folders: Vec<String> = cases.iter().map(|case| name(case.parent().unwrap())).collect();
    folders.dedup();
    assert_eq!(folders, SOURCES, "add the folder to `by_source!`");
    assert!(cases.len() > 240, "{}", cases.len());
}
