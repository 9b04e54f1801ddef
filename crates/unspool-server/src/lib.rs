//! The web server: HTML pages, the REST API and one WebSocket for everything live.
//!
//! It reads the archive through `Store` and receives `Update`s from the process that records
//! (`App::publish`). It never writes to the archive.

mod api;
pub mod artifacts;
mod asked;
pub mod dialect;
mod door;
mod feed;
mod live;
mod news;
mod pages;
mod problem;
mod room;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tower_http::compression::CompressionLayer;
use unspool_core::price::Prices;
use unspool_core::redact::Rules;
use unspool_store::store::Store;

pub use api::{openapi, session_schema, table};
pub use door::{Door, hash_password, is_password_hash};
pub use news::News;
pub use pages::{Guide, OpenDemo};
pub use unspool_render::page::Looked;

use crate::feed::Feed;
use crate::room::Rooms;

/// A subscriber may lag this many updates before it must reload.
const BACKLOG: usize = 4096;
/// A subscriber may lag this many artifact notices.
const DRAWN: usize = 64;

/// State shared by all request handlers.
pub struct App<S: Store> {
    pub store: S,
    pub prices: Prices,
    /// Redaction rules for everything that is exported.
    pub rules: Rules,
    pub door: Door,
    news: broadcast::Sender<News>,
    /// Signalled at shutdown: open streams end, so that graceful shutdown can finish.
    over: watch::Sender<()>,
    /// Notices of ThoughtFlow artifacts written for idle sessions.
    drawn: broadcast::Sender<artifacts::Drawn>,
    rooms: Rooms,
    feed: Feed,
    guide: OnceLock<Guide>,
}

impl<S: Store> App<S> {
    pub fn new(store: S, prices: Prices, rules: Rules, door: Door) -> Arc<App<S>> {
        let news = broadcast::channel(BACKLOG).0;
        Arc::new(App {
            store,
            prices,
            rules,
            door,
            news,
            over: watch::Sender::default(),
            drawn: broadcast::channel(DRAWN).0,
            rooms: Rooms::default(),
            feed: Feed::default(),
            guide: OnceLock::new(),
        })
    }

    /// Sets the content of the empty-archive page. Only the first call has an effect.
    pub fn guide(&self, guide: Guide) {
        let _ = self.guide.set(guide);
    }

    /// Sends an update to all subscribers. Called by the recorder, or by its follower.
    pub fn tell(&self, news: News) {
        // Fails only when there is no subscriber.
        let _ = self.news.send(news);
    }
}

/// Serves until the future `shutdown` completes, then waits for open requests to finish.
pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    listener: TcpListener,
    over: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // Loading the syntax definitions takes a while: do it before the first page needs them.
    thread::spawn(unspool_render::highlight::warm_up);
    let ending = app.clone();
    let over = async move {
        over.await;
        ending.over.send_replace(());
    };
    let service = router(app).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(over).await
}

fn router<S: Store>(app: Arc<App<S>>) -> Router {
    Router::new()
        .route("/", get(pages::sessions))
        .route("/rows", get(pages::rows))
        .route("/found", get(pages::found))
        .route("/suggested", get(pages::suggested))
        .route("/stats", get(pages::stats))
        .route("/demo", post(pages::demo))
        .route("/s/{id}", get(pages::session))
        .route("/s/{id}/window", get(pages::window))
        .route("/s/{id}/inline", get(pages::inline))
        .route("/s/{id}/find", get(pages::find))
        .route("/s/{id}/tools", get(pages::tools))
        .route("/s/{id}/raw", get(pages::raw))
        .route("/s/{id}/markdown", get(pages::copied))
        .route("/s/{id}/thoughtflow", get(pages::thoughtflow))
        .route("/thoughtflow/{file}", get(pages::artifact))
        .route("/assets/{name}", get(pages::asset))
        .route("/login", get(door::login::form).post(door::login::enter))
        .merge(api::router())
        .fallback(pages::nothing)
        .method_not_allowed_fallback(problem::only_get)
        .layer(from_fn_with_state(app.clone(), door::guard))
        .layer(CompressionLayer::new())
        .with_state(app)
}
