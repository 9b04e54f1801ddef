//! What the model calls of a session were sent. The archive has each prompt as the difference to an
//! earlier one and each message once; here they are put together, and the texts of pieces are looked
//! up where they are: in parts of the transcript, or in content that is kept once. A text is only
//! given if it is the one that was sent (law 10).

mod document;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::assemble::part_id;
use unspool_model::id::{PartId, SessionId};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part};
use unspool_model::prompt::{
    CallPrompt, MessageDigest, Piece, PieceText, PromptMessage, PromptTree, Role,
};
use unspool_model::provenance::Name;
use unspool_store::rows::RowId;
use unspool_store::store::{StepRequest, StoreError, StoredSession, View};
use unspool_view::present::prompt::{Call, PromptDifference, ShownPiece};

pub use document::{PromptDocument, PromptsDocument};

/// The prompts of a session, with the steps that they belong to.
pub struct SessionPrompts {
    session: SessionId,
    row: RowId,
    tree: PromptTree,
    steps: FxHashMap<Arc<str>, StepRequest>,
}

/// Texts of pieces by the place where they are.
#[derive(Default)]
pub struct PieceTexts {
    kept: FxHashMap<String, Arc<str>>,
    parts: FxHashMap<PartId, Part>,
    session: Option<SessionId>,
}

/// Loads what is known about the prompts of a session.
pub async fn prompts<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<SessionPrompts, StoreError> {
    let tree = PromptTree::new(view.prompt_records(stored.row).await?);
    let mut steps = FxHashMap::default();
    if !tree.is_empty() {
        for step in view.step_requests(stored.row).await? {
            if let Some(request) = step.request.clone() {
                steps.insert(request, step);
            }
        }
    }
    Ok(SessionPrompts { session: stored.summary.session.id, row: stored.row, tree, steps })
}

impl SessionPrompts {
    /// The calls, in the order in which they were made.
    pub fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.tree.calls().map(|prompt| self.with_step(prompt))
    }

    fn with_step<'a>(&self, prompt: CallPrompt<'a>) -> Call<'a> {
        let step = self.steps.get(&prompt.call().request);
        Call {
            prompt,
            step: step.map(|step| (step.turn, step.step)),
            usage: step.map(|step| step.usage).unwrap_or_default(),
        }
    }

    /// The calls of a turn, or the one of one of its steps. A call without a reply is in no turn.
    pub fn calls_of(&self, turn: u32, step: Option<u32>) -> Vec<Call<'_>> {
        let is_wanted = |call: &Call<'_>| {
            call.step
                .is_some_and(|(of, number)| of == turn && step.is_none_or(|step| step == number))
        };
        self.calls().filter(is_wanted).collect()
    }

    /// The call made before this one, whose prompt it is compared with: its base, else the one that
    /// was recorded before it.
    pub fn before(&self, call: &Call<'_>) -> Option<Call<'_>> {
        let request = &call.prompt.call().request;
        let base = call.prompt.call().base.as_ref().and_then(|base| self.tree.call(base));
        let mut last = None;
        let recorded = || {
            for other in self.tree.calls() {
                if other.call().request == *request {
                    return last;
                }
                last = Some(other);
            }
            None
        };
        base.or_else(recorded).map(|prompt| self.with_step(prompt))
    }

    /// All calls, each with what changed since the one before it.
    pub fn differences<'a>(&'a self) -> Vec<(Call<'a>, Option<PromptDifference>)> {
        let mut before: Option<CallPrompt<'a>> = None;
        let with_difference = |call: Call<'a>| {
            let last = before.replace(call.prompt);
            let difference = last.map(|last| PromptDifference::between(&last, &call.prompt));
            (call, difference)
        };
        self.calls().map(with_difference).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The texts of these messages.
    pub async fn texts<V: View>(
        &self,
        view: &V,
        messages: impl IntoIterator<Item = &PromptMessage>,
    ) -> Result<PieceTexts, StoreError> {
        let mut digests: FxHashSet<&String> = FxHashSet::default();
        let mut ids: FxHashSet<PartId> = FxHashSet::default();
        for piece in messages.into_iter().flat_map(|message| &message.pieces) {
            if let PieceText::Kept(digest) = &piece.text {
                digests.insert(digest);
            }
            ids.extend(part_of(self.session, &piece.text));
        }
        let digests = digests.into_iter().cloned().collect();
        let mut kept = FxHashMap::default();
        for snapshot in view.snapshots(self.row, digests).await? {
            let text = Json::parse(&snapshot.content).and_then(|content| content.read::<String>());
            kept.insert(snapshot.sha256, text.unwrap_or_default().into());
        }
        let mut parts = FxHashMap::default();
        if !ids.is_empty() {
            let found = view.parts_by_id(self.row, ids.into_iter().collect()).await?;
            parts.extend(found.into_iter().map(|part| (part.id, part)));
        }
        Ok(PieceTexts { kept, parts, session: Some(self.session) })
    }

    /// The pieces of a prompt, in the order of the request, with their texts.
    pub async fn pieces<'a, V: View>(
        &self,
        view: &V,
        call: &Call<'a>,
    ) -> Result<Vec<ShownPiece<'a>>, StoreError> {
        let messages = messages_of(call);
        let texts = self.texts(view, messages.iter().filter_map(|(_, message)| *message)).await?;
        Ok(shown(call, &messages, &texts))
    }

    /// The calls whose prompts have this text in one piece.
    pub async fn find<V: View>(&self, view: &V, text: &str) -> Result<Vec<Call<'_>>, StoreError> {
        let texts = self.texts(view, self.tree.messages()).await?;
        let has = |message: &&PromptMessage| {
            let mut pieces = message.pieces.iter();
            pieces.any(|piece| texts.text(piece).is_some_and(|held| held.contains(text)))
        };
        let found: FxHashSet<MessageDigest> =
            self.tree.messages().filter(has).map(|message| message.digest).collect();
        Ok(self.tree.calls_with(&found).into_iter().map(|call| self.with_step(call)).collect())
    }
}

/// The instructions and tools of a call, and its messages with their numbers.
fn messages_of<'a>(call: &Call<'a>) -> Vec<(Option<u32>, Option<&'a PromptMessage>)> {
    let head = call.prompt.head().map(|head| (None, Some(head)));
    let messages = call.prompt.messages().map(|(number, message)| (Some(number), message));
    head.into_iter().chain(messages).collect()
}

fn shown<'a>(
    call: &Call<'a>,
    messages: &[(Option<u32>, Option<&'a PromptMessage>)],
    texts: &PieceTexts,
) -> Vec<ShownPiece<'a>> {
    let list = call.prompt.call().list;
    let mut pieces = Vec::new();
    for (number, message) in messages {
        for piece in message.iter().flat_map(|message| &message.pieces) {
            let at = match number {
                Some(number) => list.pointer(*number, &piece.at),
                None => piece.at.clone(),
            };
            let role = message.map_or(Role::User, |message| message.role);
            let text = texts.text(piece);
            pieces.push(ShownPiece { role, message: *number, piece, at, text });
        }
    }
    pieces
}

/// The part that has the text of a piece.
fn part_of(session: SessionId, text: &PieceText) -> Option<PartId> {
    match text {
        PieceText::Kept(_) | PieceText::Binary => None,
        PieceText::Prose(name) => part_id(session, name),
        PieceText::Input(call) | PieceText::Output(call) => {
            part_id(session, &Name::Call(call.clone()))
        }
    }
}

impl PieceTexts {
    /// The text of a piece, if it is stored and the one that was sent.
    pub fn text(&self, piece: &Piece) -> Option<Arc<str>> {
        let part = || self.parts.get(&part_of(self.session?, &piece.text)?);
        match &piece.text {
            PieceText::Kept(digest) => self.kept.get(digest).filter(|text| piece.is(text)).cloned(),
            PieceText::Binary => None,
            PieceText::Prose(_) => {
                let body = &part()?.body;
                let reasoning = || match body {
                    Body::Reasoning(reasoning) => Some(reasoning.text.as_str()),
                    Body::Text(_)
                    | Body::Tool(_)
                    | Body::Agent(_)
                    | Body::Interjection(_)
                    | Body::TaskList(_)
                    | Body::SkillLoad(_)
                    | Body::McpSnapshot(_)
                    | Body::ContextInfo(_)
                    | Body::Compaction(_)
                    | Body::File(_)
                    | Body::Source(_)
                    | Body::Patch(_)
                    | Body::Notice(_)
                    | Body::Error(_)
                    | Body::Data(_) => None,
                };
                let text = body.prose().or_else(reasoning);
                text.filter(|text| piece.is(text)).map(Into::into)
            }
            PieceText::Input(_) => {
                let Body::Tool(tool) = &part()?.body else { return None };
                // Feeds write the same input with other spaces.
                let input = tool.input.as_ref()?;
                if piece.is(input.text()) || input.canonical_digest() == piece.digest {
                    return Some(input.text().into());
                }
                // Some tools take a text.
                input.read::<String>().filter(|text| piece.is(text)).map(Into::into)
            }
            PieceText::Output(_) => {
                let Body::Tool(tool) = &part()?.body else { return None };
                tool.output.as_deref().filter(|text| piece.is(text)).map(Into::into)
            }
        }
    }
}
