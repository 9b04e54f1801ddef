//! Data for the onboarding page: which folders are searched for sessions, and how to open the demo.
//! The demo is a second server in the same process, with its own archive and token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use unspool_ingest::service::Service;
use unspool_server::{App, Auth, LoginStore, Onboarding, OpenDemo, SearchedFolder};
use unspool_sources::agents::AGENTS;
use unspool_sources::discover::Environment;
use unspool_store::database::Database;

use super::secret::token;
use super::{app, report};
use crate::archive::Archive;
use crate::config;
use crate::demo::write_demo;

/// `here`: all clients are on this machine. Others could not reach the demo's port.
pub fn onboarding(folder: &Path, environment: &Environment, here: bool) -> Onboarding {
    let environment = environment.clone();
    let folder = folder.join("demo");
    let opened: Arc<OnceCell<Arc<App<Database>>>> = Arc::default();
    Onboarding {
        looked: Box::new(move || looked(&environment)),
        demo: here.then(|| -> OpenDemo {
            Box::new(move || {
                let (folder, opened) = (folder.clone(), Arc::clone(&opened));
                Box::pin(async move {
                    let app = opened.get_or_try_init(|| open(folder)).await;
                    let app = app.map_err(|error| format!("cannot open the demo: {error:#}"))?;
                    let no_random = || "the system has no random bytes".to_owned();
                    app.auth.one_time_address().ok_or_else(no_random)
                })
            })
        }),
    }
}

fn looked(environment: &Environment) -> Vec<SearchedFolder> {
    let of = AGENTS.iter().flat_map(|agent| {
        environment.folders_of(agent.name).map(|(folder, _)| SearchedFolder {
            agent: agent.title.to_owned(),
            folder: folder.display().to_string(),
            exists: folder.exists(),
        })
    });
    of.collect()
}

/// Serves the demo until the process ends.
async fn open(folder: PathBuf) -> Result<Arc<App<Database>>> {
    let service = tokio::task::spawn_blocking(move || -> Result<Service> {
        let environment = write_demo(&folder)?;
        let archive = Archive::new(Some(folder));
        let sources = config::sources(&archive.folder()?, environment)?;
        Ok(Service::begin(archive, sources)?)
    })
    .await??;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let folder = service.folder()?;
    let logins = LoginStore::in_data_folder(folder.path());
    let auth = Auth::new(token(&folder)?, listener.local_addr()?.port(), logins);
    let app = app(&service, auth)?;
    service.spawn(report);
    tokio::spawn(unspool_server::serve(app.clone(), listener, std::future::pending()));
    Ok(app)
}
