//! What the model calls of a session were sent. The archive has each prompt as the difference to an
//! earlier one and each message once; here they are put together, and the texts of pieces are looked
//! up where they are: in parts of the transcript, or in content that is kept once. A text is only
//! given if it is the one that was sent (law 10).

mod adaptations;
mod archive;
mod calls;
mod document;
mod shown;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;
use unspool_model::prompt::{
    CallPrompt, MessageDigest, Piece, PieceKind, PieceTexts, PromptMessage, PromptTree, Role,
    SourceShare,
};
use unspool_model::provenance::Name;
use unspool_store::piece_texts::piece_texts;
use unspool_store::rows::RowId;
use unspool_store::store::{StepRequest, StoreError, StoredSession, View};
use unspool_view::present::prompt::{Call, PromptContext, PromptDifference, ShownPiece};

pub use adaptations::{ContextFrames, SeenAdaptation, SeenAdaptations};
pub use archive::{ArchiveContext, context_of_sessions};
use calls::CallOrder;
pub use document::{ArchiveContextDocument, ContextDocument, PromptDocument, PromptsDocument};
pub use shown::{CallTarget, PromptAnswer, PromptQuery, answer_prompts, request_at};

/// The prompts of a session, with the steps that they belong to.
pub struct SessionPrompts {
    session: SessionId,
    row: RowId,
    tree: PromptTree,
    calls: CallOrder,
}

/// Loads what is known about the prompts of a session.
pub async fn prompts<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<SessionPrompts, StoreError> {
    let tree = PromptTree::new(view.prompt_records(stored.row).await?);
    let steps = match tree.is_empty() {
        true => Vec::new(),
        false => view.step_requests(stored.row).await?,
    };
    let calls = CallOrder::new(&tree, steps);
    Ok(SessionPrompts { session: stored.summary.session.id, row: stored.row, tree, calls })
}

impl SessionPrompts {
    /// The calls, in the order in which they were made.
    pub fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.calls.of(&self.tree).map(|prompt| self.with_step(prompt))
    }

    fn with_step<'a>(&self, prompt: CallPrompt<'a>) -> Call<'a> {
        let step = self.calls.step(&prompt);
        let request = &prompt.call().request;
        // A call without a reply is an empty step with the name of the request, if its log says so.
        // What the program asked for itself is answered by no step.
        let is_reply =
            |step: &StepRequest| step.has_reply || step.name != Name::Message(request.clone());
        let is_answered = step.map_or_else(|| prompt.answered_by().is_some(), is_reply);
        let logged = step.and_then(|step| step.request.as_deref());
        Call {
            prompt,
            step: step.map(|step| (step.turn, step.step)),
            no_reply: !is_answered,
            usage: step.map(|step| step.usage).unwrap_or_default(),
            times: self.tree.times(request, logged),
        }
    }

    /// The calls of a turn, or the one of one of its steps.
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
        let base =
            call.prompt.call().base.as_ref().and_then(|base| self.calls.shown(&self.tree, base));
        let mut last = None;
        let recorded = || {
            for other in self.calls.of(&self.tree) {
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
        messages: &[&PromptMessage],
    ) -> Result<PieceTexts, StoreError> {
        let pieces: Vec<&Piece> = messages.iter().flat_map(|message| &message.pieces).collect();
        piece_texts(view, self.row, self.session, &pieces).await
    }

    /// The request of the call with this id of its step.
    pub fn request_of(&self, step: &str) -> Option<String> {
        let is_it = |prompt: &CallPrompt<'_>| {
            self.calls.step(prompt).is_some_and(|held| held.id.to_string() == step)
        };
        self.calls.of(&self.tree).find(is_it).map(|prompt| prompt.call().request.to_string())
    }

    /// The pieces of a prompt, in the order of the request, with their texts.
    pub async fn pieces<'a, V: View>(
        &self,
        view: &V,
        call: &Call<'a>,
    ) -> Result<Vec<ShownPiece<'a>>, StoreError> {
        let messages = messages_of(call);
        let known: Vec<_> = messages.iter().filter_map(|(_, message)| *message).collect();
        let texts = self.texts(view, &known).await?;
        Ok(shown(call, &messages, &texts))
    }

    /// What all calls were sent, by source, and the tools that were never called.
    pub async fn context<V: View>(&self, view: &V) -> Result<PromptContext, StoreError> {
        let tokens = |prompt: CallPrompt<'_>| self.with_step(prompt).usage.prompt();
        let sources = self.tree.sources(tokens);
        let stored = view.tools(self.row).await?;
        let mut called = self.tree.called_tools();
        called.extend(stored.iter().map(|(name, _)| name.as_str()));
        let is_unused = |share: &&SourceShare| {
            share.kind == PieceKind::ToolSchema
                && share.source.as_deref().is_some_and(|tool| !called.contains(tool))
        };
        let unused_tools = sources.iter().filter(is_unused).cloned().collect();
        Ok(PromptContext { sources, unused_tools })
    }

    /// The calls whose prompts have this text in one piece.
    pub async fn find<V: View>(&self, view: &V, text: &str) -> Result<Vec<Call<'_>>, StoreError> {
        let messages: Vec<_> = self.tree.messages().collect();
        let texts = self.texts(view, &messages).await?;
        let has = |message: &&PromptMessage| {
            let mut pieces = message.pieces.iter();
            pieces.any(|piece| texts.text(piece).is_some_and(|held| held.contains(text)))
        };
        let found: FxHashSet<MessageDigest> =
            self.tree.messages().filter(has).map(|message| message.digest).collect();
        let found: FxHashSet<Arc<str>> =
            self.tree.calls_with(&found).iter().map(|call| call.call().request.clone()).collect();
        Ok(self.calls().filter(|call| found.contains(&call.prompt.call().request)).collect())
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
