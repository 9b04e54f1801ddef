//! How full the context window of a session's model is. The archive has the last prompt, the session
//! what its agent says about the windows of models.

use unspool_model::context::ContextUse;
use unspool_store::store::{LastPrompt, StoreError, StoredSession, View};

/// The use of the context. `None` if nothing is known about it.
pub async fn context<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<Option<ContextUse>, StoreError> {
    let LastPrompt { tokens, model, compactions, compacted_at } =
        view.last_prompt(stored.row).await?;
    let windows = &stored.summary.session.facts.context_windows;
    let window = model.and_then(|model| windows.get(&model).copied());
    let used = ContextUse { tokens, window, compactions, compacts_at: compacted_at };
    Ok((tokens.is_some() || compactions > 0).then_some(used))
}
