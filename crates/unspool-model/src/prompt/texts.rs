//! The texts of pieces. A piece names the place of its text: a part of the transcript, or a content
//! that is kept once. Whoever has the archive loads them; here they are looked up, and given only if
//! they are what was sent (law 10).

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Piece, PieceText, PromptMessage, PromptTree};
use crate::assemble::part_id;
use crate::id::{PartId, SessionId};
use crate::part::{Body, Part};
use crate::provenance::Name;

/// Texts of pieces by the place where they are.
pub struct PieceTexts {
    session: SessionId,
    kept: FxHashMap<String, Arc<str>>,
    parts: FxHashMap<PartId, Part>,
}

/// The prompts of a session with the texts of their instructions, tools and user's words. The rest
/// of the conversation is left out: its texts are in the transcript.
#[derive(Clone, Debug, Default)]
pub struct RecordedPrompts {
    pub tree: PromptTree,
    /// By the place of the text and the digest of what was sent.
    pub texts: FxHashMap<(PieceText, u64), Arc<str>>,
}

impl PieceText {
    /// The part that has the text.
    fn part(&self, session: SessionId) -> Option<PartId> {
        match self {
            PieceText::Kept(_) | PieceText::Binary => None,
            PieceText::Prose(name) => part_id(session, name),
            PieceText::Input(call) | PieceText::Output(call) => {
                part_id(session, &Name::Call(call.clone()))
            }
        }
    }
}

impl PieceTexts {
    pub fn new(session: SessionId) -> PieceTexts {
        PieceTexts { session, kept: FxHashMap::default(), parts: FxHashMap::default() }
    }

    /// The contents and the parts that these pieces refer to.
    pub fn places<'a>(
        &self,
        pieces: impl IntoIterator<Item = &'a Piece>,
    ) -> (Vec<String>, Vec<PartId>) {
        let mut digests: FxHashSet<&String> = FxHashSet::default();
        let mut parts: FxHashSet<PartId> = FxHashSet::default();
        for piece in pieces {
            if let PieceText::Kept(digest) = &piece.text {
                digests.insert(digest);
            }
            parts.extend(piece.text.part(self.session));
        }
        (digests.into_iter().cloned().collect(), parts.into_iter().collect())
    }

    pub fn add_kept(&mut self, sha256: String, text: Arc<str>) {
        self.kept.insert(sha256, text);
    }

    pub fn add_part(&mut self, part: Part) {
        self.parts.insert(part.id, part);
    }

    /// The text of a piece, if it is stored and the one that was sent.
    pub fn text(&self, piece: &Piece) -> Option<Arc<str>> {
        let body = || Some(&self.parts.get(&piece.text.part(self.session)?)?.body);
        match &piece.text {
            PieceText::Kept(digest) => self.kept.get(digest).filter(|text| piece.is(text)).cloned(),
            PieceText::Binary => None,
            PieceText::Prose(_) => {
                let body = body()?;
                let reasoning = || body.reasoning().map(|reasoning| reasoning.text.as_str());
                let text = body.prose().or_else(reasoning);
                text.filter(|text| piece.is(text)).map(Into::into)
            }
            PieceText::Input(_) => {
                let Body::Tool(tool) = body()? else { return None };
                // Feeds write the same input with other spaces.
                let input = tool.input.as_ref()?;
                if piece.is(input.text()) || input.canonical_digest() == piece.digest {
                    return Some(input.text().into());
                }
                // Some tools take a text.
                input.read::<String>().filter(|text| piece.is(text)).map(Into::into)
            }
            PieceText::Output(_) => {
                let Body::Tool(tool) = body()? else { return None };
                tool.output.as_deref().filter(|text| piece.is(text)).map(Into::into)
            }
        }
    }
}

impl RecordedPrompts {
    /// The pieces whose texts it needs: each message once.
    pub fn pieces(tree: &PromptTree) -> impl Iterator<Item = &Piece> {
        let messages =
            tree.messages().filter(|message: &&PromptMessage| !message.is_conversation());
        messages.flat_map(|message| &message.pieces).filter(|piece| !piece.is_conversation())
    }

    pub fn new(tree: PromptTree, texts: &PieceTexts) -> RecordedPrompts {
        let with_text =
            |piece: &Piece| Some(((piece.text.clone(), piece.digest), texts.text(piece)?));
        let texts = RecordedPrompts::pieces(&tree).filter_map(with_text).collect();
        RecordedPrompts { tree, texts }
    }

    pub fn text(&self, piece: &Piece) -> Option<&Arc<str>> {
        self.texts.get(&(piece.text.clone(), piece.digest))
    }
}
