//! The filter of a window: which parts it loads, and how a client writes it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unspool_model::landmark::Landmark;
use unspool_model::part::Kind;
use unspool_model::skeleton::PartSkeleton;
use unspool_model::tools::filtered_by;

/// Selects parts by kind, tool, failure or edit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartFilter {
    Kind(Kind),
    /// Calls of this tool; `memory` means all tools that keep or look up memories.
    Tool(String),
    Errors,
    Edits,
}

impl PartFilter {
    pub(super) fn has(&self, part_skeleton: &PartSkeleton) -> bool {
        match self {
            PartFilter::Kind(kind) => part_skeleton.kind == *kind,
            PartFilter::Tool(name) => {
                part_skeleton.tool.as_deref().is_some_and(|tool| filtered_by(name).contains(&tool))
            }
            PartFilter::Errors => part_skeleton.is_landmark(Landmark::Error),
            PartFilter::Edits => part_skeleton.is_landmark(Landmark::Edit),
        }
    }
}

impl FromStr for PartFilter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PartFilter, Self::Err> {
        match (text, text.split_once(':')) {
            ("errors", _) => Ok(PartFilter::Errors),
            ("edits", _) => Ok(PartFilter::Edits),
            (_, Some(("tool", name))) => Ok(PartFilter::Tool(name.to_owned())),
            (_, Some(("kind", name))) => {
                Kind::of_name(name).map(PartFilter::Kind).ok_or("unknown part kind")
            }
            _ => Err("invalid filter: expected errors, edits, kind:NAME or tool:NAME"),
        }
    }
}
