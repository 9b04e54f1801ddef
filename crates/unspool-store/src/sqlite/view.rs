//! The `View` of an SQLite archive.

use rusqlite::Connection;
use unspool_core::id::{PartId, SessionId};
use unspool_core::part::{Part, Place};
use unspool_core::session::Turn;
use unspool_core::skeleton::Skeleton;
use unspool_core::source::RecordCounts;

use super::{Sqlite, facets, read, search, stats, subagents, windows};
use crate::facets::{Facets, FacetsRequest};
use crate::rows::{FileRow, RowId};
use crate::search::{SearchRequest, SearchResults};
use crate::stats::{Stats, StatsRequest};
use crate::store::{
    MessageFilter, SessionExport, SessionFilter, StoreError, StoredMessage, StoredSession,
    StoredWarning, SubagentRef, TurnPrompt, TurnSize, TurnWindow, View, Viewer,
};

/// The archive as its one user sees it.
#[derive(Clone)]
pub struct SqliteView {
    archive: Sqlite,
}

impl SqliteView {
    pub(super) fn new(archive: &Sqlite, viewer: Viewer) -> SqliteView {
        // The file belongs to one user, who sees all of it: there is nothing to restrict.
        match viewer {
            Viewer::Sole => SqliteView { archive: archive.clone() },
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.archive.run_on_reader(work).await
    }
}

impl View for SqliteView {
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<StoredSession>, StoreError> {
        self.run(move |connection| read::sessions(connection, &filter)).await
    }

    async fn facets(&self, request: FacetsRequest) -> Result<Facets, StoreError> {
        self.run(move |connection| facets::facets(connection, &request)).await
    }

    async fn sessions_by_id(&self, ids: Vec<SessionId>) -> Result<Vec<StoredSession>, StoreError> {
        self.run(move |connection| read::sessions_by_id(connection, &ids)).await
    }

    async fn find(&self, text: String) -> Result<Vec<StoredSession>, StoreError> {
        self.run(move |connection| read::find(connection, &text)).await
    }

    async fn turns(&self, session: RowId, window: TurnWindow) -> Result<Vec<Turn>, StoreError> {
        self.run(move |connection| {
            let mut turns = read::turns(connection, session, window)?;
            for turn in &mut turns {
                turn.parts.retain(|part| !part.origin.hidden);
            }
            Ok(turns)
        })
        .await
    }

    async fn sizes(&self, session: RowId) -> Result<Vec<TurnSize>, StoreError> {
        self.run(move |connection| windows::sizes(connection, session)).await
    }

    async fn prompts(&self, session: RowId) -> Result<Vec<TurnPrompt>, StoreError> {
        self.run(move |connection| windows::prompts(connection, session)).await
    }

    async fn tools(&self, session: RowId) -> Result<Vec<(String, u64)>, StoreError> {
        self.run(move |connection| windows::tools(connection, session)).await
    }

    async fn plans(&self, session: RowId) -> Result<Vec<Part>, StoreError> {
        self.run(move |connection| windows::plans(connection, session)).await
    }

    async fn skeleton(&self, session: RowId, number: u32) -> Result<Option<Skeleton>, StoreError> {
        self.run(move |connection| windows::skeleton(connection, session, number)).await
    }

    async fn head(&self, session: RowId, number: u32) -> Result<Option<Turn>, StoreError> {
        self.run(move |connection| windows::head(connection, session, number)).await
    }

    async fn parts(
        &self,
        session: RowId,
        number: u32,
        places: Vec<Place>,
    ) -> Result<Vec<Part>, StoreError> {
        self.run(move |connection| windows::parts(connection, session, number, &places)).await
    }

    async fn locate(
        &self,
        session: RowId,
        turn: Option<u32>,
        part: PartId,
    ) -> Result<Option<(u32, Place)>, StoreError> {
        self.run(move |connection| windows::locate(connection, session, turn, part)).await
    }

    async fn subagents(&self, session: RowId) -> Result<Vec<SubagentRef>, StoreError> {
        self.run(move |connection| subagents::subagents(connection, session)).await
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchResults, StoreError> {
        self.run(move |connection| search::search(connection, &request)).await
    }

    async fn stats(&self, request: StatsRequest) -> Result<Stats, StoreError> {
        self.run(move |connection| stats::stats(connection, &request)).await
    }

    async fn session_export(&self, session: RowId) -> Result<SessionExport, StoreError> {
        self.run(move |connection| read::session_export(connection, session)).await
    }

    async fn source_files(&self, session: RowId) -> Result<Vec<FileRow>, StoreError> {
        self.run(move |connection| read::source_files(connection, session)).await
    }

    async fn whole_turns(
        &self,
        session: RowId,
        window: TurnWindow,
    ) -> Result<Vec<Turn>, StoreError> {
        self.run(move |connection| read::turns(connection, session, window)).await
    }

    async fn messages(
        &self,
        session: SessionId,
        filter: MessageFilter,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.run(move |connection| read::messages(connection, session, &filter)).await
    }

    async fn records(&self, session: RowId) -> Result<RecordCounts, StoreError> {
        self.run(move |connection| read::records(connection, session)).await
    }

    async fn warnings(&self, session: RowId) -> Result<Vec<StoredWarning>, StoreError> {
        self.run(move |connection| read::warnings(connection, session)).await
    }
}
