//! Announces the ThoughtFlow and D2 files of idle sessions, which `unspool_query::artifacts` writes
//! beside the archive, to the subscribers of the live socket (R-002-30).

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use serde_json::json;
use unspool_model::id::SessionId;
use unspool_query::artifacts::{ArtifactEvent, ArtifactWriter};
use unspool_store::store::Store;

use crate::App;

/// A session whose artifacts changed, and the message for its subscribers.
pub type ArtifactNotice = (SessionId, Utf8Bytes);

/// Writes artifacts into the folder as long as the server runs.
pub fn spawn<S: Store>(app: &Arc<App<S>>, folder: PathBuf) {
    let writer = ArtifactWriter {
        view: app.view(),
        prices: app.settings.prices.clone(),
        rules: app.settings.rules.clone(),
        folder,
    };
    let announcer = app.clone();
    writer.spawn(app.updates.subscribe(), move |event| match event {
        ArtifactEvent::Written(session) => {
            // Fails only when there is no subscriber.
            let _ = announcer.artifacts.send((session, message(&announcer, session)));
        }
        ArtifactEvent::Failed(session, error) => {
            let _ = writeln!(
                io::stderr(),
                "unspool: cannot write the ThoughtFlow and D2 files of session {session}: {error}"
            );
        }
    });
}

/// The notice for subscribers of the session, with absolute URLs.
fn message<S: Store>(app: &App<S>, session: SessionId) -> Utf8Bytes {
    let origin = app.auth.origin();
    let address = |extension: &str| format!("{origin}/thoughtflow/{session}.{extension}");
    let message = json!({
        "type": "thoughtflow.artifacts",
        "session": session,
        "json": address("json"),
        "d2": address("d2"),
    });
    message.to_string().into()
}
