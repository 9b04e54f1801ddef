//! The pages of what the model calls of a session were sent: all calls and how the context filled,
//! and one call with its pieces.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::Deserialize;
use unspool_query::prompts::{SessionPrompts, prompts as load, request_at};
use unspool_query::window::Position;
use unspool_store::store::{Store, View};
use unspool_view::present::prompt::PromptDifference;

use self::template::Pieces;
use super::{Page, UrlParams, html};
use crate::App;
use crate::api::find;
use crate::problem::Problem;

/// What a link from a part says if nothing is known about its call.
const NO_PROMPT: &str = "nothing is known about what the model call of this part was sent: its agent does \
    not write that down, or did not in that version";

#[derive(Debug, Default, Deserialize)]
pub struct PromptsParams {
    /// Only this call, by its request.
    call: Option<String>,
    /// The call that the part at this place belongs to: a turn and a place in it.
    at: Option<String>,
    /// The call with this id of its step.
    step: Option<String>,
    /// Only calls, or pieces of the call, that have this text.
    find: Option<String>,
    /// Only the pieces that the call before was not sent.
    #[serde(default)]
    new: Option<String>,
    /// Only the piece of the call that stands at this place, with its whole text.
    piece: Option<String>,
}

pub async fn prompts<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<PromptsParams>,
) -> Page {
    let stored = find(&app, &id).await?;
    // A prompt may have megabytes: few of such pages are made at once.
    let _permit = app.large_responses.acquire().await;
    let view = app.view();
    let prompts = load(&view, &stored).await?;
    let find = params.find.as_deref().filter(|text| !text.is_empty());
    let page = template::PromptsPage { summary: &stored.summary, find };
    let unknown = || Problem::not_found(NO_PROMPT);
    let call = match (params.call, params.at, params.step) {
        (Some(call), ..) => Some(call),
        (None, Some(at), _) => {
            let position = at.parse::<Position>().map_err(Problem::bad_request)?;
            let request = request_at(&view, &stored, &prompts, position).await?;
            Some(request.ok_or_else(unknown)?)
        }
        (None, None, Some(step)) => Some(prompts.request_of(&step).ok_or_else(unknown)?),
        (None, None, None) => None,
    };
    Ok(match call {
        Some(request) => {
            let wanted = match params.piece {
                Some(at) => Pieces::At(at),
                None if params.new.is_some() => Pieces::New,
                None => Pieces::All,
            };
            html(&one(&view, &page, &prompts, &request, wanted).await?)
        }
        None => html(&all(&view, &page, &prompts).await?),
    })
}

async fn all<V: View>(
    view: &V,
    page: &template::PromptsPage<'_>,
    prompts: &SessionPrompts,
) -> Result<maud::Markup, Problem> {
    let calls = prompts.differences();
    let Some(text) = page.find else {
        let context = prompts.context(view).await?;
        return Ok(template::calls(page, &calls, template::Shown::All(&context)));
    };
    let found = prompts.find(view, text).await?;
    let found = found.iter().map(|call| &call.prompt.call().request).collect();
    Ok(template::calls(page, &calls, template::Shown::Found(&found)))
}

async fn one<V: View>(
    view: &V,
    page: &template::PromptsPage<'_>,
    prompts: &SessionPrompts,
    request: &str,
    wanted: Pieces,
) -> Result<maud::Markup, Problem> {
    let Some(call) = prompts.calls().find(|call| *call.prompt.call().request == *request) else {
        return Err(Problem::not_found("this session has no such model call"));
    };
    let mut pieces = prompts.pieces(view, &call).await?;
    let before = prompts.before(&call);
    if let Some(text) = page.find {
        pieces.retain(|piece| piece.text.as_ref().is_some_and(|held| held.contains(text)));
    }
    let difference =
        before.as_ref().map(|before| PromptDifference::between(&before.prompt, &call.prompt));
    match (&wanted, &difference) {
        (Pieces::New, Some(difference)) => pieces.retain(|piece| difference.has_added(piece)),
        (Pieces::At(at), _) => pieces.retain(|piece| piece.at == *at),
        (Pieces::New, None) | (Pieces::All, _) => {}
    }
    Ok(template::call(page, &call, &pieces, before.as_ref().zip(difference.as_ref()), &wanted))
}
