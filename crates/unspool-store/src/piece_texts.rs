//! Loads the texts of prompts: contents that are kept once, and parts of the transcript.

use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::prompt::{Piece, PieceTexts, PromptTree, RecordedPrompts};

use crate::rows::RowId;
use crate::store::{StoreError, StoredSession, View};

/// The texts of these pieces, each read once.
pub async fn piece_texts<V: View>(
    view: &V,
    row: RowId,
    session: SessionId,
    pieces: &[&Piece],
) -> Result<PieceTexts, StoreError> {
    let mut texts = PieceTexts::new(session);
    let (digests, parts) = texts.places(pieces.iter().copied());
    for snapshot in view.snapshots(row, digests).await? {
        let text = Json::parse(&snapshot.content).and_then(|content| content.read::<String>());
        texts.add_kept(snapshot.sha256, text.unwrap_or_default().into());
    }
    if !parts.is_empty() {
        let found = view.parts_by_id(row, parts).await?;
        found.into_iter().for_each(|part| texts.add_part(part));
    }
    Ok(texts)
}

/// The prompts of a session with the texts of their instructions. `None` if it has no prompts.
pub async fn recorded_prompts<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<Option<RecordedPrompts>, StoreError> {
    let tree = PromptTree::new(view.prompt_records(stored.row).await?);
    if tree.is_empty() {
        return Ok(None);
    }
    let session = stored.summary.session.id;
    let pieces: Vec<&Piece> = RecordedPrompts::pieces(&tree).collect();
    let texts = piece_texts(view, stored.row, session, &pieces).await?;
    Ok(Some(RecordedPrompts::new(tree, &texts)))
}
