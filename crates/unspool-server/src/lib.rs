//! The web server: HTML pages, the REST API and one WebSocket for everything live.
//!
//! It reads the archive through a `View` of a `Store` and receives `Update`s from the process that
//! records (`Updates`). It never writes to the archive: the user's changes go to a `ChangeHandler`.

mod api;
pub mod artifacts;
mod assets;
mod auth;
#[cfg(unix)]
pub mod chat;
pub mod frames_encoder;
mod health;
mod large_responses;
mod list_hub;
mod listen;
mod live;
mod mcp;
mod pages;
mod problem;
mod query_params;
mod request_log;
mod secret;
mod secret_records;
mod session_hub;
mod shares;
mod ship;
mod ship_tokens;
mod socket_json;
mod url_query;

use std::sync::{Arc, OnceLock};
use std::thread;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tower_http::compression::CompressionLayer;
use unspool_query::live::Updates;
use unspool_query::reader::Settings;
use unspool_query::request::ChangeHandler;
use unspool_store::store::{Store, Viewer};

pub use api::{Adaptations, openapi, session_schema, table};
pub use auth::{Auth, LoginStore, RemoteAccess, hash_password, is_password_hash};
pub use pages::{Onboarding, OpenDemo, SearchedFolder};
pub use secret::random_secret;
pub use shares::{GUEST_PATH, Share, ShareStore};
pub use ship::{MACHINE_HEADER, Shipping};
pub use ship_tokens::{ShipToken, ShipTokens, is_name};

/// The templates of the pages, public so that tests can paint hostile content without a server.
pub mod templates {
    pub use crate::auth::login::template as login;
    pub use crate::pages::adaptations::template as adaptations;
    pub use crate::pages::beside::template as beside;
    pub use crate::pages::changes::template as changes;
    pub use crate::pages::compare::template as compare;
    pub use crate::pages::filters;
    pub use crate::pages::findings::template as findings;
    pub use crate::pages::prompts::template as prompts;
    pub use crate::pages::search::template as search;
    pub use crate::pages::session::template as session;
    pub use crate::pages::sessions::template as sessions;
    pub use crate::pages::stats::template as stats;
    pub use crate::pages::thoughtflow::template as thoughtflow;
    pub use crate::pages::welcome::template as welcome;
    pub use crate::url_query::UrlQuery;
}

use crate::large_responses::LargeResponses;
use crate::list_hub::ListHub;
use crate::session_hub::Hubs;

/// A subscriber may lag this many artifact notices.
const ARTIFACT_BACKLOG: usize = 64;

/// State shared by all request handlers.
pub struct App<S: Store> {
    store: S,
    pub settings: Settings,
    pub auth: Auth,
    updates: Updates,
    /// Signalled at shutdown: open streams end, so that graceful shutdown can finish.
    shutdown: watch::Sender<()>,
    /// Notices of ThoughtFlow artifacts written for idle sessions.
    artifacts: broadcast::Sender<artifacts::ArtifactNotice>,
    hubs: Hubs,
    list_hub: ListHub,
    onboarding: OnceLock<Onboarding>,
    /// Executes the user's changes. Unset in a server that only reads.
    change_handler: OnceLock<ChangeHandler>,
    /// Unset in a demo.
    adaptations: OnceLock<Adaptations>,
    /// Set if other machines may send their sessions.
    shipping: OnceLock<Shipping>,
    large_responses: LargeResponses,
    /// Pages of guests, apart from the others: a guest who reads slowly holds up guests only.
    guest_pages: LargeResponses,
    /// Set if agents can be driven from the browser.
    #[cfg(unix)]
    chats: OnceLock<chat::Chats>,
}

impl<S: Store> App<S> {
    /// `updates` is where the recording service publishes.
    pub fn new(store: S, settings: Settings, auth: Auth, updates: Updates) -> Arc<App<S>> {
        Arc::new(App {
            store,
            settings,
            auth,
            updates,
            shutdown: watch::Sender::default(),
            artifacts: broadcast::channel(ARTIFACT_BACKLOG).0,
            hubs: Hubs::default(),
            list_hub: ListHub::default(),
            onboarding: OnceLock::new(),
            change_handler: OnceLock::new(),
            adaptations: OnceLock::new(),
            shipping: OnceLock::new(),
            large_responses: LargeResponses::default(),
            guest_pages: LargeResponses::default(),
            #[cfg(unix)]
            chats: OnceLock::new(),
        })
    }

    /// The archive as the client of a request may see it: the local server has one user.
    pub fn view(&self) -> S::View {
        self.store.view(Viewer::Sole)
    }

    /// Sets who executes the user's changes. Only the first call has an effect.
    pub fn change_handler(&self, handler: ChangeHandler) {
        let _ = self.change_handler.set(handler);
    }

    /// Sets the adaptations to show. Only the first call has an effect.
    pub fn adaptations(&self, adaptations: Adaptations) {
        let _ = self.adaptations.set(adaptations);
    }

    /// Lets other machines send their sessions. Only the first call has an effect.
    pub fn shipping(&self, shipping: Shipping) {
        let _ = self.shipping.set(shipping);
    }

    /// Lets browsers drive agents. Only the first call has an effect.
    #[cfg(unix)]
    pub fn chats(&self, chats: chat::Chats) {
        let _ = self.chats.set(chats);
    }

    /// Sets the content of the empty-archive page. Only the first call has an effect.
    pub fn onboarding(&self, onboarding: Onboarding) {
        let _ = self.onboarding.set(onboarding);
    }
}

/// Serves until the future `shutdown` completes, then waits for open requests to finish.
pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // Loading the syntax definitions takes a while: do it before the first page needs them.
    thread::spawn(unspool_export::html::highlight::warm_up);
    let ending = app.clone();
    let shutdown = async move {
        shutdown.await;
        ending.shutdown.send_replace(());
    };
    listen::serve(router(app), listener, shutdown).await
}

fn router<S: Store>(app: Arc<App<S>>) -> Router {
    let router = Router::new();
    let adaptations = app.adaptations.get().map(|adaptations| adaptations.store.clone());
    #[cfg(unix)]
    let router = router
        .route("/new", get(pages::new_chat).post(chat::start))
        .route("/chats/{id}/files", get(chat::files));
    router
        .route("/", get(pages::sessions))
        .route("/rows", get(pages::rows))
        .route("/found", get(pages::found))
        .route("/beside", get(pages::beside))
        .route("/suggested", get(pages::suggestions))
        .route("/stats", get(pages::stats))
        .route("/compare", get(pages::compare))
        .route("/demo", post(pages::demo))
        .route("/s/{id}", get(pages::session))
        .route("/s/{id}/window", get(pages::window))
        .route("/s/{id}/inline", get(pages::inline))
        .route("/s/{id}/find", get(pages::find))
        .route("/s/{id}/tools", get(pages::tools))
        .route("/s/{id}/raw", get(pages::raw))
        .route("/s/{id}/markdown", get(pages::copy_markdown))
        .route("/adaptations", get(pages::adaptations::adaptations))
        .route("/adaptations/{id}", get(pages::adaptations::adaptation))
        .route("/adaptations/{id}/effect", get(pages::adaptations::effect))
        .route("/findings", get(pages::findings::findings))
        .route("/s/{id}/findings", get(pages::findings::of_session))
        .route("/s/{id}/changes", get(pages::changes))
        .route("/s/{id}/changes/git", get(pages::changes::in_git))
        .route("/s/{id}/prompts", get(pages::prompts))
        .route("/s/{id}/thoughtflow", get(pages::thoughtflow))
        .route("/thoughtflow/{file}", get(pages::artifact))
        .route("/guest/{token}", get(pages::guest))
        .route(mcp::PATH, mcp::route(app.view(), &app.settings, adaptations.as_ref()))
        .route("/assets/{name}", get(pages::asset))
        .route("/login", get(auth::login::form).post(auth::login::submit))
        .route("/logout", get(auth::login::logout_form).post(auth::login::log_out))
        .route(unspool_query::ship::PATH, post(ship::receive))
        .route(unspool_query::ship::HELLO_PATH, post(ship::hello))
        .route(health::HEALTHY, get(health::healthy))
        .route(health::READY, get(health::ready))
        .merge(api::router(get(live::connect::<S>)))
        .fallback(pages::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(from_fn_with_state(app.clone(), auth::guard))
        .layer(CompressionLayer::new())
        .layer(from_fn(request_log::log_request))
        .with_state(app)
}
