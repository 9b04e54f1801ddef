//! Landmarks: the parts that readers jump to and that outlines, lists and totals count. This is the
//! only definition of an error and of an edit; every surface and the store's SQL use it.

use serde::{Deserialize, Serialize};

use crate::part::{Body, Kind, Part, ToolState};
use crate::skeleton::PartSkeleton;
use crate::tools;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landmark {
    /// An error part or a failed call. A denied or interrupted call did not fail: somebody stopped
    /// it.
    Error,
    /// A call that edits files or tried to, or a change that the agent reported.
    Edit,
}

impl Landmark {
    pub const ALL: [Landmark; 2] = [Landmark::Error, Landmark::Edit];

    pub fn name(self) -> &'static str {
        match self {
            Landmark::Error => "error",
            Landmark::Edit => "edit",
        }
    }

    /// True for a part of this kind. Calls also have a tool and a state.
    pub fn matches(self, kind: Kind, tool: Option<&str>, state: Option<ToolState>) -> bool {
        match self {
            Landmark::Error => kind == Kind::Error || state == Some(ToolState::Failed),
            Landmark::Edit => kind == Kind::Patch || tool.is_some_and(tools::is_edit),
        }
    }
}

impl Part {
    pub fn is_landmark(&self, landmark: Landmark) -> bool {
        let tool = if let Body::Tool(tool) = &self.body { Some(tool) } else { None };
        let name = tool.map(|tool| tool.name.as_str());
        landmark.matches(self.body.kind(), name, tool.map(|tool| tool.state))
    }

    /// A failed edit is both.
    pub fn landmarks(&self) -> Vec<Landmark> {
        Landmark::ALL.into_iter().filter(|landmark| self.is_landmark(*landmark)).collect()
    }
}

impl PartSkeleton {
    pub fn is_landmark(&self, landmark: Landmark) -> bool {
        landmark.matches(self.kind, self.tool.as_deref(), self.state)
    }
}
