//! Writes the ThoughtFlow and D2 files of idle sessions while a command records or follows them, as
//! the server does.

use anyhow::Result;
use unspool_ingest::lock::DataFolder;
use unspool_query::artifacts::{ArtifactEvent, ArtifactWriter};
use unspool_query::live::{Subscription, Update};
use unspool_store::database::DatabaseView;

use crate::config;

/// Where they are, in the data folder.
pub const ARTIFACT_FOLDER: &str = "thoughtflow";

/// Runs in the background until the process ends.
pub fn spawn<T: Clone + Into<Update> + Send + 'static>(
    view: DatabaseView,
    folder: &DataFolder,
    updates: Subscription<T>,
) -> Result<()> {
    let (prices, rules) = (config::prices()?, config::redaction()?);
    let folder = folder.path().join(ARTIFACT_FOLDER);
    ArtifactWriter { view, prices, rules, folder }.spawn(updates, |event| match event {
        ArtifactEvent::Written(_) => {}
        // Not on stderr: the terminal may belong to the application.
        ArtifactEvent::Failed(session, error) => {
            tracing::warn!(%session, %error, "cannot write the artifacts of a session");
        }
    });
    Ok(())
}
