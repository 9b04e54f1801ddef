//! The page that begins a chat: which agent, in which folder, and the first message.

pub mod template;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use unspool_store::store::Store;

use super::{Page, UrlParams, html};
use crate::App;
use crate::chat::{NO_DRIVER, projects};
use crate::problem::Problem;
use serde::Deserialize;
use template::NewChatPage;

/// What the page offers first.
#[derive(Debug, Default, Deserialize)]
pub struct NewChatParams {
    agent: Option<String>,
    project: Option<String>,
}

pub async fn new_chat<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(chosen): UrlParams<NewChatParams>,
    headers: HeaderMap,
) -> Page {
    let Some(chats) = app.chats.get() else {
        let what = "agents can be driven from the browser only under `unspool serve --chat`";
        return Err(Problem::not_found(what).into());
    };
    if !app.auth.is_driver(&headers) {
        return Err(Problem::new(StatusCode::FORBIDDEN, NO_DRIVER).into());
    }
    let agents = chats.installed_agents().map_err(Problem::internal)?;
    let projects = projects(&app).await?;
    Ok(html(&template::new_chat(&NewChatPage {
        agents: &agents,
        projects: &projects,
        agent: chosen.agent.as_deref(),
        project: chosen.project.as_deref(),
    })))
}
