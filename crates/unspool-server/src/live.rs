//! The one socket for everything live: somebody says which session, since when and in which form,
//! and is told everything from there, without a gap or a repeat.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use unspool_core::document::{SessionDocument, TurnDocument};
use unspool_core::id::SessionId;
use unspool_store::contract::{Store, Window};

use crate::room::{self, Joined};
use crate::{App, News, api};

/// What somebody may ask for. Nothing that is asked for is longer than this.
const LONGEST: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
struct Wish {
    subscribe: String,
    #[serde(default)]
    form: Form,
    since: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    /// The changes of the core.
    #[default]
    Json,
    /// What a page does to show them.
    Html,
}

pub async fn connect<S: Store>(State(app): State<Arc<App<S>>>, up: WebSocketUpgrade) -> Response {
    up.max_message_size(LONGEST).on_upgrade(move |socket| async move {
        // Somebody who is gone is no error of ours.
        let _ = talk(app, socket).await;
    })
}

async fn talk<S: Store>(app: Arc<App<S>>, mut socket: WebSocket) -> Result<(), axum::Error> {
    let Some(wish) = hear(&mut socket).await else { return Ok(()) };
    let wish: Wish = match serde_json::from_str(&wish) {
        Ok(wish) => wish,
        Err(error) => {
            let what = format!("{error}; ask for {{\"subscribe\": SESSION, \"form\": \"json\"}}");
            return say(&mut socket, json!({ "type": "error", "detail": what })).await;
        }
    };
    let stored = match api::find(&app, &wish.subscribe).await {
        Ok(stored) => stored,
        Err(problem) => {
            let what = json!({ "type": "error", "detail": problem.detail() });
            return say(&mut socket, what).await;
        }
    };
    let id = stored.summary.session.id;
    match wish.form {
        Form::Html => tell_html(app, socket, id).await,
        Form::Json => tell_json(app, socket, id, wish.since).await,
    }
}

/// The next text that somebody sends.
async fn hear(socket: &mut WebSocket) -> Option<Utf8Bytes> {
    loop {
        match socket.recv().await?.ok()? {
            Message::Text(text) => return Some(text),
            Message::Close(_) => return None,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

async fn say(socket: &mut WebSocket, what: serde_json::Value) -> Result<(), axum::Error> {
    socket.send(Message::Text(what.to_string().into())).await
}

async fn tell_html<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
) -> Result<(), axum::Error> {
    let joining = tokio::task::spawn_blocking(move || room::join(&app, id));
    let Ok(Ok(Some(Joined { seq, mut then }))) = joining.await else {
        let what = "the session cannot be read now; try again";
        return say(&mut socket, json!({ "type": "error", "detail": what })).await;
    };
    // Whoever hears this loads what it looks at: what is told from here on follows that.
    say(&mut socket, json!({ "type": "ready", "session": id, "seq": seq })).await?;
    loop {
        tokio::select! {
            told = then.recv() => match told {
                Ok(text) => socket.send(Message::Text(text)).await?,
                // Too slow: whoever hears this loads what it looks at, and goes on from there.
                Err(RecvError::Lagged(_)) => {
                    say(&mut socket, json!({ "type": "behind", "session": id })).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            heard = socket.recv() => match heard {
                None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(()),
                Some(Ok(_)) => {}
            },
        }
    }
}

async fn tell_json<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
    since: Option<u64>,
) -> Result<(), axum::Error> {
    // Listened to before it is loaded: nothing falls between.
    let mut news = app.news.subscribe();
    let mut seq = match since {
        Some(since) if current(&app, id).await == Some(since) => since,
        Some(_) | None => snapshot(&app, &mut socket, id).await?,
    };
    loop {
        tokio::select! {
            told = news.recv() => match told {
                Ok(News::Written(told)) if told.session != id || told.seq <= seq => {}
                Ok(News::Written(told)) => match &told.changes {
                    Some(changes) if told.from_seq == seq => {
                        seq = told.seq;
                        say(&mut socket, json!({
                            "type": "changes", "session": id,
                            "from_seq": told.from_seq, "seq": told.seq, "changes": **changes,
                        })).await?;
                    }
                    Some(_) | None => seq = snapshot(&app, &mut socket, id).await?,
                },
                Ok(News::Missed) | Err(RecvError::Lagged(_)) => {
                    say(&mut socket, json!({ "type": "behind", "session": id, "seq": seq })).await?;
                    news = app.news.subscribe();
                    seq = snapshot(&app, &mut socket, id).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            heard = socket.recv() => match heard {
                None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(()),
                Some(Ok(_)) => {}
            },
        }
    }
}

async fn current<S: Store>(app: &App<S>, id: SessionId) -> Option<u64> {
    app.store.find(id.to_string()).await.ok()?.pop().map(|stored| stored.seq)
}

/// Tells the whole session as it is stored now, and says as of which seq.
async fn snapshot<S: Store>(
    app: &App<S>,
    socket: &mut WebSocket,
    id: SessionId,
) -> Result<u64, axum::Error> {
    loop {
        let Ok(stored) = api::find(app, &id.to_string()).await else { return Ok(0) };
        let Ok(turns) = app.store.turns(stored.row, Window::All).await else { return Ok(0) };
        // Something was written meanwhile: what was read may be half of it.
        if current(app, id).await != Some(stored.seq) {
            continue;
        }
        let (summary, prices) = (&stored.summary, &app.prices);
        let agent = &summary.session.agent;
        let turns: Vec<TurnDocument<'_>> =
            turns.iter().map(|turn| TurnDocument { agent, turn, prices }).collect();
        say(
            socket,
            json!({
                "type": "snapshot", "session": id, "seq": stored.seq,
                "document": { "session": SessionDocument { summary, prices }, "turns": turns },
            }),
        )
        .await?;
        return Ok(stored.seq);
    }
}
