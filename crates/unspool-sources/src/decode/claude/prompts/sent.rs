//! Messages that are written down as they were sent, beside the log.

use unspool_model::prompt::{Piece, Role};

use super::super::super::{Emitter, Fields};
use super::context::ContextTexts;
use super::{PendingMessage, Texts, reply_piece, user_piece};

/// The pieces of a message as it was sent. All texts are kept: no part need have them.
pub(in crate::decode::claude) fn sent_pieces(
    emit: &mut Emitter<'_>,
    role: Role,
    message: &Fields<'_>,
) -> Vec<Piece> {
    let contexts = ContextTexts::default();
    let mut pending = PendingMessage::new("");
    if let Some(text) = message.string("content") {
        pending.add_text(emit, role, "/content", &text, &contexts);
    }
    for (block, nth) in message.list("content").zip(0u32..) {
        let at = format!("/content/{nth}");
        if role == Role::Assistant {
            reply_piece(emit, &mut pending, at, None, &block);
        } else {
            let texts = Texts { contexts: &contexts, outputs: Some(&[]) };
            user_piece(emit, &mut pending, at, role, &block, texts);
        }
    }
    pending.pieces
}
