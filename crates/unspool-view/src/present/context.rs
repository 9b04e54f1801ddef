//! How full a model's context window is, in words.

use unspool_model::context::ContextUse;

use super::format;

/// `context 88.0k of 200k (44 %)`, or `context 88.0k` if the size of the window is not known, and
/// where it compacted before. `None` before the first model call and right after a compaction.
pub fn context_text(used: &ContextUse) -> Option<String> {
    let tokens = format::compact(used.tokens?);
    let limit = used.compacts_at.map(|at| format!(", compacts at about {}", format::compact(at)));
    let fill = match (used.window, used.percent()) {
        (Some(window), Some(percent)) => {
            format!("context {tokens} of {} ({percent} %)", format::compact(window))
        }
        (_, _) => format!("context {tokens}"),
    };
    Some(fill + &limit.unwrap_or_default())
}

/// `compacted 2 times`. `None` if it never was.
pub fn compactions_text(used: &ContextUse) -> Option<String> {
    match used.compactions {
        0 => None,
        1 => Some("compacted once".to_owned()),
        count => Some(format!("compacted {} times", format::number(count))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_shown_only_of_a_reported_window() {
        let used = ContextUse {
            tokens: Some(88_000),
            window: Some(200_000),
            compactions: 2,
            compacts_at: None,
        };
        assert_eq!(context_text(&used).as_deref(), Some("context 88.0k of 200k (44 %)"));
        let again = ContextUse { compacts_at: Some(167_000), ..used };
        let text = "context 88.0k of 200k (44 %), compacts at about 167k";
        assert_eq!(context_text(&again).as_deref(), Some(text));
        assert_eq!(compactions_text(&used).as_deref(), Some("compacted 2 times"));
        let unknown = ContextUse { window: None, compactions: 0, ..used };
        assert_eq!(context_text(&unknown).as_deref(), Some("context 88.0k"));
        assert_eq!(compactions_text(&unknown), None);
        assert_eq!(context_text(&ContextUse { tokens: None, ..used }), None);
    }
}
