//! Prompts for the terminal: the calls of a session, one call, and one of its pieces as a whole.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use unspool_model::prompt::PromptKnowledge;
use unspool_store::store::{StoreError, StoredSession, View};
use unspool_view::present::prompt::{
    Call, CallNeighbours, CallRow, PieceView, PromptCalls, PromptDifference, PromptView,
};

use super::{SessionPrompts, messages_of, prompts, shown};
use crate::window::Position;

/// The call that is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallTarget {
    /// The one that the part at this place belongs to, or the next one of its turn.
    At(Position),
    /// The one with this request.
    Request(String),
}

/// A question about the prompts of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptQuery {
    /// All calls, or those that were sent a text.
    Calls { find: Option<String> },
    /// One call, and which of its pieces have a text.
    Call { target: CallTarget, find: Option<String> },
    /// A piece of a call, by its number, with its whole text.
    Piece { request: String, number: usize },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptAnswer {
    Calls(Box<PromptCalls>),
    Call(Box<PromptView>),
    Piece(Box<PieceView>),
}

/// Why a prompt cannot be shown, in a sentence for people.
type Unknown = String;

/// Answers a question about the prompts of a session.
pub async fn answer_prompts<V: View>(
    view: &V,
    stored: &StoredSession,
    query: PromptQuery,
) -> Result<Result<PromptAnswer, Unknown>, StoreError> {
    let prompts = prompts(view, stored).await?;
    if prompts.is_empty() {
        let knowledge = PromptKnowledge::of(&stored.summary.session.agent);
        return Ok(Err(knowledge.sentences().join(" ")));
    }
    Ok(match query {
        PromptQuery::Calls { find } => {
            let calls = calls(view, &prompts, find.as_deref()).await?;
            Ok(PromptAnswer::Calls(Box::new(calls)))
        }
        PromptQuery::Call { target, find } => {
            let request = match target {
                CallTarget::Request(request) => Some(request),
                CallTarget::At(position) => request_at(view, stored, &prompts, position).await?,
            };
            let call = call(view, &prompts, request.as_deref(), find.as_deref()).await?;
            let call = call.map(Box::new).map(PromptAnswer::Call);
            call.ok_or_else(|| "no prompt is known of the model call of this part".to_owned())
        }
        PromptQuery::Piece { request, number } => {
            let piece = piece(view, &prompts, &request, number).await?;
            let piece = piece.map(Box::new).map(PromptAnswer::Piece);
            piece.ok_or_else(|| "the prompt no longer has this piece".to_owned())
        }
    })
}

async fn calls<V: View>(
    view: &V,
    prompts: &SessionPrompts,
    find: Option<&str>,
) -> Result<PromptCalls, StoreError> {
    let found = match find {
        Some(text) => Some(prompts.find(view, text).await?),
        None => None,
    };
    let found: Option<FxHashSet<&str>> =
        found.as_ref().map(|calls| calls.iter().map(|call| request(call)).collect());
    let differences = prompts.differences();
    let all = differences.len();
    let is_found =
        |call: &Call<'_>| found.as_ref().is_none_or(|found| found.contains(request(call)));
    let calls = differences.iter().filter(|(call, _)| is_found(call));
    let calls = calls.map(|(call, difference)| CallRow::new(call, difference.as_ref())).collect();
    Ok(PromptCalls { calls, all })
}

/// The prompt of the call with this request.
async fn call<V: View>(
    view: &V,
    prompts: &SessionPrompts,
    wanted: Option<&str>,
    find: Option<&str>,
) -> Result<Option<PromptView>, StoreError> {
    let calls: Vec<Call<'_>> = prompts.calls().collect();
    let at = calls.iter().position(|call| Some(request(call)) == wanted);
    let Some((at, call)) = at.and_then(|at| Some((at, calls.get(at)?))) else { return Ok(None) };
    let neighbour = |at: Option<usize>| calls.get(at?).map(|call| request(call).to_owned());
    let neighbours = CallNeighbours {
        number: at + 1,
        calls: calls.len(),
        previous: neighbour(at.checked_sub(1)),
        next: neighbour(Some(at + 1)),
    };
    let pieces = prompts.pieces(view, call).await?;
    let before = prompts.before(call);
    let difference =
        before.as_ref().map(|before| PromptDifference::between(&before.prompt, &call.prompt));
    let before = before.as_ref().zip(difference.as_ref());
    Ok(Some(PromptView::new(call, neighbours, &pieces, before, find)))
}

async fn piece<V: View>(
    view: &V,
    prompts: &SessionPrompts,
    request: &str,
    number: usize,
) -> Result<Option<PieceView>, StoreError> {
    let Some(call) = prompts.tree.call(request).map(|prompt| prompts.with_step(prompt)) else {
        return Ok(None);
    };
    // Only the message that has the piece: the others may be megabytes.
    let mut first = 0;
    for (place, message) in messages_of(&call) {
        let count = message.map_or(0, |message| message.pieces.len());
        if number < first + count {
            let texts = prompts.texts(view, message.as_slice()).await?;
            let pieces = shown(&call, &[(place, message)], &texts);
            return Ok(pieces.get(number - first).map(|piece| PieceView::whole(number, piece)));
        }
        first += count;
    }
    Ok(None)
}

fn request<'a>(call: &Call<'a>) -> &'a str {
    &call.prompt.call().request
}

/// The request that a part answers. What is said before a step, such as the user's message, is of
/// the step after it; of two steps in question, the first whose prompt is known.
pub async fn request_at<V: View>(
    view: &V,
    stored: &StoredSession,
    prompts: &SessionPrompts,
    position: Position,
) -> Result<Option<String>, StoreError> {
    let Some(skeleton) = view.skeleton(stored.row, position.turn).await? else { return Ok(None) };
    let behind = skeleton.parts.iter().filter(|part| part.place >= position.place);
    let step = behind.clone().find_map(|part| part.step);
    let step = step.or_else(|| skeleton.parts.iter().rev().find_map(|part| part.step));
    let number = step.and_then(|step| skeleton.turn.step_number(step)).unwrap_or(1);
    let of_turn = |call: &Call<'_>| {
        call.step.filter(|(turn, _)| *turn == position.turn).map(|(_, step)| step as usize)
    };
    let calls: Vec<(usize, String)> = prompts
        .calls()
        .filter_map(|call| Some((of_turn(&call)?, request(&call).to_owned())))
        .collect();
    // A user's message begins a turn whose first steps may have no known prompt.
    let is_user = position.place.0 < 0;
    let is_wanted = |step: usize| if is_user { step >= number } else { step == number };
    Ok(calls.into_iter().find(|(step, _)| is_wanted(*step)).map(|(_, request)| request))
}
