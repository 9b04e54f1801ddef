//! How long the calls of each tool usually take, which is what a slow one is compared with.

use rustc_hash::FxHashMap;

/// Below this many measured calls of a tool nothing is usual.
const MIN_MEASURED: u64 = 20;

/// The time that 95 % of the calls of a tool stay below, by tool.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolTimes(FxHashMap<String, u64>);

impl ToolTimes {
    /// From the tool, the number of its measured calls and their 95th percentile in milliseconds.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a str, u64, Option<u64>)>) -> ToolTimes {
        let usual = tools.into_iter().filter(|(_, measured, _)| *measured >= MIN_MEASURED);
        ToolTimes(usual.filter_map(|(tool, _, p95)| Some((tool.to_owned(), p95?))).collect())
    }

    pub(super) fn p95(&self, tool: &str) -> Option<u64> {
        self.0.get(tool).copied()
    }
}
