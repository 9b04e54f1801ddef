//! Whether an adaptation helped: what `unspool reflect verify` says, for the routes and the page.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use unspool_query::adaptations::{AdaptError, Question, Verification, verify};
use unspool_store::store::{SessionFilter, Store};
use unspool_view::finding::Rule;

use super::adaptations::of;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use crate::App;
use crate::problem::Problem;

/// Sessions that are compared, the newest ones: each has to be read once.
pub const MAX_SESSIONS: u64 = 1000;

pub async fn effect<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let id = params.path_param("item");
    let project = params.text("project").map(PathBuf::from).filter(|path| path.is_absolute());
    let rule = params.text("rule").and_then(Rule::of_name);
    let filter = SessionFilter { agent: params.owned("agent"), ..SessionFilter::default() };
    let verified = effect_of(app, id, project.as_deref(), rule, filter).await?;
    let what = "the adaptation does not say which rule it is for; name one with rule=";
    let verified = verified.ok_or_else(|| Problem::bad_request(what))?;
    ApiResponse::json(params, &verified)
}

/// Compares the newest sessions. `None` if there is no rule of findings to count: an item of a person
/// need not name one.
pub async fn effect_of<S: Store>(
    app: &App<S>,
    id: &str,
    project: Option<&Path>,
    rule: Option<Rule>,
    filter: SessionFilter,
) -> Result<Option<Verification>, Problem> {
    let store = &of(app)?.store;
    let current = store.current(project)?;
    let found = current.state.find(id, project);
    let item = found.ok_or_else(|| Problem::from(AdaptError::NotFound(id.to_owned())))?;
    let own = || Rule::of_name(item.item.rule.as_deref()?);
    let Some(rule) = rule.or_else(own) else { return Ok(None) };
    let changes = store.history(id, project)?;
    let filter = SessionFilter { limit: Some(MAX_SESSIONS), ..filter };
    let found = app.settings.reflection.over(&app.view(), filter, |_| {}).await?;
    let sessions: Vec<Arc<_>> = found.sessions;
    let question = Question { item, rule, signature: None, model: None, changes: &changes };
    Ok(Some(verify(&sessions, &question)))
}
