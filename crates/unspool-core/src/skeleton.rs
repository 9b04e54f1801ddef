//! A turn without what its parts hold: enough to cut it into pieces, to count and to map it. Who
//! shows a long turn has this of all of it, and the parts themselves only where somebody looks.

use std::sync::Arc;

use crate::id::{PartId, StepId};
use crate::part::{Body, Kind, Part, Place, ToolState};
use crate::session::Turn;

/// A turn with its outline. Its list of parts may be empty, or hold some of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Skeleton {
    pub turn: Turn,
    /// All parts that are shown, in their order.
    pub parts: Vec<Bone>,
}

/// What is known of a part that was not loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bone {
    pub id: PartId,
    pub place: Place,
    pub kind: Kind,
    pub step: Option<StepId>,
    pub tool: Option<Arc<str>>,
    pub state: Option<ToolState>,
}

impl Bone {
    pub fn of(part: &Part) -> Bone {
        let tool = if let Body::Tool(tool) = &part.body { Some(tool) } else { None };
        Bone {
            id: part.id,
            place: part.place,
            kind: part.body.kind(),
            step: part.step,
            tool: tool.map(|tool| Arc::from(tool.name.as_str())),
            state: tool.map(|tool| tool.state),
        }
    }

    /// It went wrong.
    pub fn is_failure(&self) -> bool {
        self.kind == Kind::Error || self.state == Some(ToolState::Failed)
    }

    /// It changed a file, or tried to.
    pub fn is_edit(&self) -> bool {
        let edits = |tool: &Arc<str>| crate::present::tools::is_edit(tool);
        self.kind == Kind::Patch || self.tool.as_ref().is_some_and(edits)
    }
}

impl Skeleton {
    /// Of a turn that is loaded whole.
    pub fn of(turn: &Turn) -> Vec<Bone> {
        turn.parts.iter().map(Bone::of).collect()
    }
}
