//! How urgently a reader should refresh after a write.

use serde::{Deserialize, Serialize};
use unspool_core::change::Change;
use unspool_store::recorder::ChangeSet;

/// How soon a view must show a write. Orders by urgency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Urgency {
    /// Only text grew: the refresh may be delayed (C-20).
    Text,
    /// A state changed, or something started or ended: refresh at once.
    State,
}

/// Classifies a publication: `Text` if every change only appends to an open part.
pub fn urgency(published: &ChangeSet) -> Urgency {
    let grew = |change: &Change| matches!(change, Change::PartDelta { .. });
    match &published.changes {
        Some(changes) if changes.iter().all(grew) => Urgency::Text,
        // Changes are not recorded when nothing subscribes, so they are unknown here.
        Some(_) | None => Urgency::State,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use unspool_core::change::{DeltaField, SkipReason};
    use unspool_core::id::{Id, PartId, SessionId};

    use super::*;

    fn published(changes: Option<Vec<Change>>) -> ChangeSet {
        ChangeSet {
            session: SessionId::of("claude-code", "a"),
            agent: "claude-code".to_owned(),
            agent_session_id: "a".to_owned(),
            from_seq: 1,
            seq: 2,
            changes: changes.map(Arc::new),
        }
    }

    #[test]
    fn only_what_makes_open_parts_longer_may_wait() {
        let part = PartId(Id::derive([b"part".as_slice()]));
        let grew = |field| Change::PartDelta { part, field, text: "more".to_owned() };
        let text = vec![grew(DeltaField::Text), grew(DeltaField::Output)];
        let closed = Change::PartUpdated { part, patch: Box::default() };
        assert_eq!(urgency(&published(Some(text.clone()))), Urgency::Text);
        assert_eq!(urgency(&published(Some([text, vec![closed]].concat()))), Urgency::State);
        let counted = Change::EventSkipped { reason: SkipReason::Duplicate };
        assert_eq!(urgency(&published(Some(vec![counted]))), Urgency::State);
        assert_eq!(urgency(&published(None)), Urgency::State);
        assert!(Urgency::State > Urgency::Text, "the more urgent is the greater");
    }
}
