//! How full a model's context window is. Only figures that agents report count: a window of unknown
//! size has no share that is in use.

use serde::{Deserialize, Serialize};

/// The context of a session after its last model call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ContextUse {
    /// The tokens of the last prompt, from a cache or not. `None` if there was no call yet, or none
    /// since the last compaction.
    pub tokens: Option<u64>,
    /// The size of the window of that call's model, if the agent reports it.
    pub window: Option<u64>,
    /// How often the context was compacted.
    pub compactions: u64,
    /// The tokens at which the agent last compacted this session by itself.
    #[serde(default)]
    pub compacts_at: Option<u64>,
}

impl ContextUse {
    /// The share of the window that is in use, rounded down.
    pub fn percent(&self) -> Option<u64> {
        let (tokens, window) = (self.tokens?, self.window.filter(|window| *window > 0)?);
        Some((u128::from(tokens) * 100 / u128::from(window)).min(100) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_needs_a_reported_window() {
        let used =
            |tokens, window| ContextUse { tokens, window, ..ContextUse::default() }.percent();
        assert_eq!(used(Some(88_000), Some(200_000)), Some(44));
        assert_eq!(used(Some(88_000), None), None);
        assert_eq!(used(Some(88_000), Some(0)), None);
        assert_eq!(used(None, Some(200_000)), None);
        assert_eq!(used(Some(u64::MAX), Some(1)), Some(100));
    }
}
