//! The handler for what the model calls of a session were sent.

use unspool_model::prompt::PromptKnowledge;
use unspool_query::prompts::{ContextDocument, PromptDocument, PromptsDocument, prompts as load};
use unspool_store::store::Store;

use super::find;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use super::turns::{not_modified, session_response};
use crate::App;
use crate::problem::Problem;

pub async fn many<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let view = app.view();
    let all = load(&view, &stored).await?;
    let number = |name| params.number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let Some(turn) = number("turn") else {
        let prompts = all.calls().map(|call| PromptDocument::new(&call, None)).collect();
        let context = all.context(&view).await?;
        let context = Some(ContextDocument::new(&context));
        let agent = &stored.summary.session.agent;
        let knowledge = all.is_empty().then(|| PromptKnowledge::of(agent));
        let document = PromptsDocument { prompts, context, knowledge };
        return session_response(params, &stored, &document, None);
    };
    let calls = all.calls_of(turn, number("step"));
    let mut shown = Vec::new();
    for call in &calls {
        shown.push(all.pieces(&view, call).await?);
    }
    let document = |(call, pieces)| PromptDocument::new(call, Some(pieces));
    let prompts = calls.iter().zip(shown.iter().map(Vec::as_slice)).map(document).collect();
    let document = PromptsDocument { prompts, context: None, knowledge: None };
    session_response(params, &stored, &document, None)
}
