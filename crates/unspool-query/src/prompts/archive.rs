//! What the model calls of many sessions were sent, added up.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::prompt::{PieceKind, SourceShare};
use unspool_store::store::{SessionFilter, StoreError, View};
use unspool_view::present::prompt::PromptContext;

use super::prompts;

/// The prompts of all sessions that pass a filter.
#[derive(Default)]
pub struct ArchiveContext {
    pub context: PromptContext,
    /// Sessions with known prompts, and their calls.
    pub sessions: u64,
    pub calls: u64,
    /// Sessions whose agents do not write down what calls were sent.
    pub without_prompts: u64,
}

/// Characters and tokens.
type Sum = (u64, u64);

/// Adds up what the calls of sessions were sent. Each session is read once, and one at a time.
pub async fn context_of_sessions<V: View>(
    view: &V,
    filter: SessionFilter,
) -> Result<ArchiveContext, StoreError> {
    let known = view.sessions_with_prompts().await?;
    let mut total = ArchiveContext::default();
    let mut sums: FxHashMap<(PieceKind, Option<String>), Sum> = FxHashMap::default();
    let mut called: FxHashSet<String> = FxHashSet::default();
    for stored in view.sessions(filter).await? {
        if !known.contains(&stored.row) {
            total.without_prompts += 1;
            continue;
        }
        let prompts = prompts(view, &stored).await?;
        let PromptContext { sources, unused_tools } = prompts.context(view).await?;
        total.sessions += 1;
        total.calls += prompts.calls().count() as u64;
        let unused: FxHashSet<&str> =
            unused_tools.iter().filter_map(|share| share.source.as_deref()).collect();
        for SourceShare { kind, source, chars, tokens } in sources.iter().cloned() {
            let tool = source.as_deref().filter(|_| kind == PieceKind::ToolSchema);
            if let Some(tool) = tool.filter(|tool| !unused.contains(tool)) {
                called.insert(tool.to_owned());
            }
            let sum = sums.entry((kind, source)).or_default();
            *sum = (sum.0 + chars, sum.1 + tokens);
        }
    }
    let share = |((kind, source), (chars, tokens))| SourceShare { kind, source, chars, tokens };
    let mut sources: Vec<SourceShare> = sums.into_iter().map(share).collect();
    sources.sort_by(|a, b| (b.chars, a.kind, &a.source).cmp(&(a.chars, b.kind, &b.source)));
    let is_unused = |share: &&SourceShare| {
        share.kind == PieceKind::ToolSchema
            && share.source.as_ref().is_some_and(|tool| !called.contains(tool))
    };
    let unused_tools = sources.iter().filter(is_unused).cloned().collect();
    total.context = PromptContext { sources, unused_tools };
    Ok(total)
}
