//! The `View` of an SQLite archive.

use crate::sql::Connection;
use rustc_hash::FxHashSet;
use unspool_model::id::{PartId, SessionId};
use unspool_model::note::PlacedNote;
use unspool_model::part::{Part, Place};
use unspool_model::prompt::PromptRecord;
use unspool_model::session::{Turn, Usage};
use unspool_model::skeleton::Skeleton;
use unspool_model::source::RecordCounts;

use super::last_prompt::last_prompt;
use super::recent_usage::recent_usage;
use super::{
    Database, edited_files, facets, notes, prompts, read, received, search, stats, subagents,
    windows,
};
use crate::facets::{Facets, FacetsRequest};
use crate::rows::{FileRow, Received, ReceivedPiece, RowId, Snapshot};
use crate::search::{SearchRequest, SearchResults};
use crate::stats::{Stats, StatsRequest};
use crate::store::{
    EditedFile, EditedFiles, LastPrompt, MessageFilter, SessionExport, SessionFilter, StepRequest,
    StoreError, StoredMessage, StoredSession, StoredWarning, SubagentRef, TurnPrompt, TurnSize,
    TurnWindow, View, Viewer,
};

/// The archive as its one user sees it.
#[derive(Clone)]
pub struct DatabaseView {
    archive: Database,
}

impl DatabaseView {
    pub(super) fn new(archive: &Database, viewer: Viewer) -> DatabaseView {
        // The file belongs to one user, who sees all of it: there is nothing to restrict.
        match viewer {
            Viewer::Sole => DatabaseView { archive: archive.clone() },
        }
    }

    /// Runs a read, under its name in the log.
    async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |connection: &Connection| {
            let _entered = tracing::debug_span!("query", name).entered();
            work(connection)
        };
        self.archive.run_on_reader(work).await
    }
}

impl View for DatabaseView {
    async fn sessions(&self, filter: SessionFilter) -> Result<Vec<StoredSession>, StoreError> {
        self.run("sessions", move |connection| read::sessions(connection, &filter)).await
    }

    async fn facets(&self, request: FacetsRequest) -> Result<Facets, StoreError> {
        self.run("facets", move |connection| facets::facets(connection, &request)).await
    }

    async fn sessions_by_id(&self, ids: Vec<SessionId>) -> Result<Vec<StoredSession>, StoreError> {
        self.run("sessions_by_id", move |connection| read::sessions_by_id(connection, &ids)).await
    }

    async fn project_folders(&self, limit: u32) -> Result<Vec<String>, StoreError> {
        self.run("project_folders", move |connection| read::project_folders(connection, limit))
            .await
    }

    async fn sessions_with_running_turns(&self) -> Result<Vec<SessionId>, StoreError> {
        self.run("sessions_with_running_turns", read::sessions_with_running_turns).await
    }

    async fn find(&self, text: String) -> Result<Vec<StoredSession>, StoreError> {
        self.run("find", move |connection| read::find(connection, &text)).await
    }

    async fn turns(&self, session: RowId, window: TurnWindow) -> Result<Vec<Turn>, StoreError> {
        self.run("turns", move |connection| {
            let mut turns = read::turns(connection, session, window)?;
            for turn in &mut turns {
                turn.parts.retain(|part| !part.origin.is_hidden());
            }
            Ok(turns)
        })
        .await
    }

    async fn sizes(&self, session: RowId) -> Result<Vec<TurnSize>, StoreError> {
        self.run("sizes", move |connection| windows::sizes(connection, session)).await
    }

    async fn prompts(&self, session: RowId) -> Result<Vec<TurnPrompt>, StoreError> {
        self.run("prompts", move |connection| windows::prompts(connection, session)).await
    }

    async fn tools(&self, session: RowId) -> Result<Vec<(String, u64)>, StoreError> {
        self.run("tools", move |connection| windows::tools(connection, session)).await
    }

    async fn plans(&self, session: RowId) -> Result<Vec<Part>, StoreError> {
        self.run("plans", move |connection| windows::plans(connection, session)).await
    }

    async fn last_prompt(&self, session: RowId) -> Result<LastPrompt, StoreError> {
        self.run("last_prompt", move |connection| last_prompt(connection, session)).await
    }

    async fn recent_usage(
        &self,
        session: RowId,
        since: i64,
    ) -> Result<Vec<(Option<String>, Usage)>, StoreError> {
        self.run("recent_usage", move |connection| recent_usage(connection, session, since)).await
    }

    async fn skeleton(&self, session: RowId, number: u32) -> Result<Option<Skeleton>, StoreError> {
        self.run("skeleton", move |connection| windows::skeleton(connection, session, number)).await
    }

    async fn head(&self, session: RowId, number: u32) -> Result<Option<Turn>, StoreError> {
        self.run("head", move |connection| windows::head(connection, session, number)).await
    }

    async fn parts(
        &self,
        session: RowId,
        number: u32,
        places: Vec<Place>,
    ) -> Result<Vec<Part>, StoreError> {
        self.run("parts", move |connection| windows::parts(connection, session, number, &places))
            .await
    }

    async fn locate(
        &self,
        session: RowId,
        turn: Option<u32>,
        part: PartId,
    ) -> Result<Option<(u32, Place)>, StoreError> {
        self.run("locate", move |connection| windows::locate(connection, session, turn, part)).await
    }

    async fn subagents(&self, session: RowId) -> Result<Vec<SubagentRef>, StoreError> {
        self.run("subagents", move |connection| subagents::subagents(connection, session)).await
    }

    async fn live_subagents(&self, session: RowId) -> Result<Vec<SessionId>, StoreError> {
        self.run("live_subagents", move |connection| subagents::live_subagents(connection, session))
            .await
    }

    async fn notes(&self, session: SessionId) -> Result<Vec<PlacedNote>, StoreError> {
        self.run("notes", move |connection| notes::notes(connection, session)).await
    }

    async fn all_notes(&self) -> Result<Vec<(SessionId, PlacedNote)>, StoreError> {
        self.run("all_notes", notes::all).await
    }

    async fn search(&self, request: SearchRequest) -> Result<SearchResults, StoreError> {
        self.run("search", move |connection| search::search(connection, &request)).await
    }

    async fn stats(&self, request: StatsRequest) -> Result<Stats, StoreError> {
        self.run("stats", move |connection| stats::stats(connection, &request)).await
    }

    async fn prompt_records(&self, session: RowId) -> Result<Vec<PromptRecord>, StoreError> {
        self.run("prompt_records", move |connection| prompts::records(connection, session)).await
    }

    async fn sessions_with_prompts(&self) -> Result<FxHashSet<RowId>, StoreError> {
        self.run("sessions_with_prompts", prompts::sessions).await
    }

    async fn step_requests(&self, session: RowId) -> Result<Vec<StepRequest>, StoreError> {
        self.run("step_requests", move |connection| prompts::step_requests(connection, session))
            .await
    }

    async fn parts_by_id(&self, session: RowId, ids: Vec<PartId>) -> Result<Vec<Part>, StoreError> {
        self.run("parts_by_id", move |connection| prompts::parts_by_id(connection, session, &ids))
            .await
    }

    async fn snapshots(
        &self,
        session: RowId,
        digests: Vec<String>,
    ) -> Result<Vec<Snapshot>, StoreError> {
        self.run("snapshots", move |connection| prompts::snapshots(connection, session, &digests))
            .await
    }

    async fn edited_files(&self, wanted: EditedFiles) -> Result<Vec<EditedFile>, StoreError> {
        self.run("edited_files", move |connection| edited_files::edited_files(connection, &wanted))
            .await
    }

    async fn session_export(&self, session: RowId) -> Result<SessionExport, StoreError> {
        self.run("session_export", move |connection| read::session_export(connection, session))
            .await
    }

    async fn source_files(&self, session: RowId) -> Result<Vec<FileRow>, StoreError> {
        self.run("source_files", move |connection| read::source_files(connection, session)).await
    }

    async fn received(&self, names: Vec<String>) -> Result<Vec<Option<Received>>, StoreError> {
        self.run("received", move |connection| received::states(connection, &names)).await
    }

    async fn received_pieces(&self, file: RowId) -> Result<Vec<ReceivedPiece>, StoreError> {
        self.run("received_pieces", move |connection| received::pieces(connection, file)).await
    }

    async fn received_piece(&self, file: RowId, start: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.run("received_piece", move |connection| received::piece(connection, file, start)).await
    }

    async fn whole_turns(
        &self,
        session: RowId,
        window: TurnWindow,
    ) -> Result<Vec<Turn>, StoreError> {
        self.run("whole_turns", move |connection| read::turns(connection, session, window)).await
    }

    async fn messages(
        &self,
        session: SessionId,
        filter: MessageFilter,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.run("messages", move |connection| read::messages(connection, session, &filter)).await
    }

    async fn records(&self, session: RowId) -> Result<RecordCounts, StoreError> {
        self.run("records", move |connection| read::records(connection, session)).await
    }

    async fn warnings(&self, session: RowId) -> Result<Vec<StoredWarning>, StoreError> {
        self.run("warnings", move |connection| read::warnings(connection, session)).await
    }
}
