//! Skeletons: a turn without the content of its parts, enough to segment, count and map it. Views
//! of a long turn load its skeleton completely and the parts only where they are visible.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{PartId, StepId};
use crate::part::{Kind, Part, Place, ToolState};
use crate::session::Turn;

/// A turn with the skeletons of all its parts. `turn.parts` may be empty or hold some of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Skeleton {
    pub turn: Turn,
    /// All visible parts, in order.
    pub parts: Vec<PartSkeleton>,
}

/// A part without its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartSkeleton {
    pub id: PartId,
    pub place: Place,
    pub kind: Kind,
    pub step: Option<StepId>,
    pub tool: Option<Arc<str>>,
    pub state: Option<ToolState>,
    /// Milliseconds, as the archive's columns have them: a skeleton is the same from rows and from
    /// loaded parts.
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
}

impl PartSkeleton {
    pub fn of(part: &Part) -> PartSkeleton {
        let tool = part.body.tool();
        PartSkeleton {
            id: part.id,
            place: part.place,
            kind: part.body.kind(),
            step: part.step,
            tool: tool.map(|tool| Arc::from(tool.name.as_str())),
            state: tool.map(|tool| tool.state),
            started_ms: part.started.map(|at| at.as_millisecond()),
            ended_ms: part.ended.map(|at| at.as_millisecond()),
        }
    }
}

impl Skeleton {
    /// The skeletons of a completely loaded turn.
    pub fn of(turn: &Turn) -> Vec<PartSkeleton> {
        turn.parts.iter().map(PartSkeleton::of).collect()
    }
}
