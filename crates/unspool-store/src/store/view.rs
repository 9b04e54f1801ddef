//! Reading the archive. Every read goes through a [`View`], and a view is only made for a
//! [`Viewer`]: an archive that several people share cannot be read without saying who reads.

use std::future::Future;

use rustc_hash::FxHashSet;
use unspool_model::id::{PartId, SessionId};
use unspool_model::note::PlacedNote;
use unspool_model::part::{Part, Place};
use unspool_model::prompt::PromptRecord;
use unspool_model::session::{Turn, Usage};
use unspool_model::skeleton::Skeleton;
use unspool_model::source::RecordCounts;

use super::{
    EditedFile, EditedFiles, LastPrompt, MessageFilter, SessionExport, SessionFilter, StepRequest,
    StoreError, StoredMessage, StoredSession, StoredWarning, SubagentRef, TurnPrompt, TurnSize,
    TurnWindow,
};
use crate::facets::{Facets, FacetsRequest};
use crate::rows::{FileRow, Received, ReceivedPiece, RowId, Snapshot};
use crate::search::{SearchRequest, SearchResults};
use crate::stats::{Stats, StatsRequest};

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Viewer {
    /// The one user of a local archive, who may see everything.
    Sole,
}

/// The archive as one viewer may see it. A session that the viewer may not see is not there.
pub trait View: Clone + Send + Sync + 'static {
    fn sessions(
        &self,
        filter: SessionFilter,
    ) -> impl Future<Output = Result<Vec<StoredSession>, StoreError>> + Send;

    /// Facet counts for a list of sessions, and totals over it.
    fn facets(
        &self,
        request: FacetsRequest,
    ) -> impl Future<Output = Result<Facets, StoreError>> + Send;

    /// The session with this id.
    fn session(
        &self,
        id: SessionId,
    ) -> impl Future<Output = Result<Option<StoredSession>, StoreError>> + Send {
        async move { Ok(self.sessions_by_id(vec![id]).await?.pop()) }
    }

    /// The sessions with these ids, in this order, in one read. Ids without a session are skipped.
    fn sessions_by_id(
        &self,
        ids: Vec<SessionId>,
    ) -> impl Future<Output = Result<Vec<StoredSession>, StoreError>> + Send;

    /// The working folders of this machine's sessions, the last used first.
    fn project_folders(
        &self,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;

    /// The sessions that have a turn without an end. It may be another than the last one.
    fn sessions_with_running_turns(
        &self,
    ) -> impl Future<Output = Result<Vec<SessionId>, StoreError>> + Send;

    /// What a person may mean by `text`: the sessions whose Unspool id or agent session id is
    /// `text` or starts with it. By id, use `session`.
    fn find(
        &self,
        text: String,
    ) -> impl Future<Output = Result<Vec<StoredSession>, StoreError>> + Send;

    /// Turns in order, without hidden parts.
    fn turns(
        &self,
        session: RowId,
        window: TurnWindow,
    ) -> impl Future<Output = Result<Vec<Turn>, StoreError>> + Send;

    /// The number of visible parts of each turn, in turn order.
    fn sizes(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<TurnSize>, StoreError>> + Send;

    /// The beginning of the user's message in each turn, in turn order.
    fn prompts(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<TurnPrompt>, StoreError>> + Send;

    /// The tools called in a session with their number of calls, most calls first.
    fn tools(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<(String, u64)>, StoreError>> + Send;

    /// The calls of planning tools, in session order.
    fn plans(&self, session: RowId) -> impl Future<Output = Result<Vec<Part>, StoreError>> + Send;

    /// How large the last prompt of a session was, and how often it was compacted.
    fn last_prompt(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<LastPrompt, StoreError>> + Send;

    /// The model and the usage of each model call with a part that started at or after `since`, in
    /// milliseconds.
    fn recent_usage(
        &self,
        session: RowId,
        since: i64,
    ) -> impl Future<Output = Result<Vec<(Option<String>, Usage)>, StoreError>> + Send;

    /// A turn without its parts, and an outline of them from columns, without reading payloads.
    fn skeleton(
        &self,
        session: RowId,
        number: u32,
    ) -> impl Future<Output = Result<Option<Skeleton>, StoreError>> + Send;

    /// A turn without its parts.
    fn head(
        &self,
        session: RowId,
        number: u32,
    ) -> impl Future<Output = Result<Option<Turn>, StoreError>> + Send;

    /// The parts of a turn at these places, in order.
    fn parts(
        &self,
        session: RowId,
        number: u32,
        places: Vec<Place>,
    ) -> impl Future<Output = Result<Vec<Part>, StoreError>> + Send;

    /// The turn and the place of a part. Pass the turn if you have it: searching a long session
    /// is slow.
    fn locate(
        &self,
        session: RowId,
        turn: Option<u32>,
        part: PartId,
    ) -> impl Future<Output = Result<Option<(u32, Place)>, StoreError>> + Send;

    /// The sub-agents of a session, nested ones included, and where in it they were started.
    fn subagents(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<SubagentRef>, StoreError>> + Send;

    /// The sub-agents of a session, nested ones included, that may be live: those with a running
    /// turn.
    fn live_subagents(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<SessionId>, StoreError>> + Send;

    /// The user's notes on a session, in the order of its transcript.
    fn notes(
        &self,
        session: SessionId,
    ) -> impl Future<Output = Result<Vec<PlacedNote>, StoreError>> + Send;

    /// The notes on all sessions, newest first.
    fn all_notes(
        &self,
    ) -> impl Future<Output = Result<Vec<(SessionId, PlacedNote)>, StoreError>> + Send;

    /// Full-text search over all stored parts and titles.
    fn search(
        &self,
        request: SearchRequest,
    ) -> impl Future<Output = Result<SearchResults, StoreError>> + Send;

    /// Statistics over the archive.
    fn stats(
        &self,
        request: StatsRequest,
    ) -> impl Future<Output = Result<Stats, StoreError>> + Send;

    /// What the sources of a session say about its prompts, in their order.
    fn prompt_records(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<PromptRecord>, StoreError>> + Send;

    /// The sessions whose sources say something about prompts.
    fn sessions_with_prompts(
        &self,
    ) -> impl Future<Output = Result<FxHashSet<RowId>, StoreError>> + Send;

    /// The model calls of a session with the requests that they answer, in order.
    fn step_requests(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<StepRequest>, StoreError>> + Send;

    /// The parts with these ids, in no order. Those that are not in the session are left out.
    fn parts_by_id(
        &self,
        session: RowId,
        ids: Vec<PartId>,
    ) -> impl Future<Output = Result<Vec<Part>, StoreError>> + Send;

    /// Contents of a session that are kept once, by their digests. Those that are not stored are
    /// left out.
    fn snapshots(
        &self,
        session: RowId,
        digests: Vec<String>,
    ) -> impl Future<Output = Result<Vec<Snapshot>, StoreError>> + Send;

    /// The calls that changed files, in no order.
    fn edited_files(
        &self,
        wanted: EditedFiles,
    ) -> impl Future<Output = Result<Vec<EditedFile>, StoreError>> + Send;

    /// Everything stored about a session except its turns, unjoined.
    fn session_export(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<SessionExport, StoreError>> + Send;

    /// The files that a session was read from, with the saved states of their decoders.
    fn source_files(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<FileRow>, StoreError>> + Send;

    /// How far the files of other machines with these names have been received.
    fn received(
        &self,
        names: Vec<String>,
    ) -> impl Future<Output = Result<Vec<Option<Received>>, StoreError>> + Send;

    /// The pieces of what was received of a file, in order.
    fn received_pieces(
        &self,
        file: RowId,
    ) -> impl Future<Output = Result<Vec<ReceivedPiece>, StoreError>> + Send;

    /// The text of one piece.
    fn received_piece(
        &self,
        file: RowId,
        start: u64,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;

    /// Turns in order, with hidden parts.
    fn whole_turns(
        &self,
        session: RowId,
        window: TurnWindow,
    ) -> impl Future<Output = Result<Vec<Turn>, StoreError>> + Send;

    /// The messages of a session, in order.
    fn messages(
        &self,
        session: SessionId,
        filter: MessageFilter,
    ) -> impl Future<Output = Result<Vec<StoredMessage>, StoreError>> + Send;

    fn records(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<RecordCounts, StoreError>> + Send;

    fn warnings(
        &self,
        session: RowId,
    ) -> impl Future<Output = Result<Vec<StoredWarning>, StoreError>> + Send;
}
