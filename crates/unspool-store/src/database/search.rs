//! Runs a search. The index proposes candidates; the stored text decides. Parts that are not in a
//! segment yet are scanned one by one.

mod filter;
mod newest;
mod notes;

use crate::sql::Value;
use crate::sql::{Connection, params_from_iter};
use rustc_hash::FxHashMap;
use unspool_index::{Candidates, Limits, TextQuery, candidates};
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::part::Place;

use super::block_store::SqliteBlockStore;
use super::load::{Loader, RawPart, id, json_list};
use crate::pack::Extent;
use crate::rows::RowId;
use crate::search::{Hit, SearchRequest, SearchResults, verify, verify_fields, weight};
use crate::store::StoreError;
use filter::Filter;

/// How many candidates to read the columns of in one query, and to score and sort at a time.
const CANDIDATE_BATCH: usize = 256;
/// How many stored texts to read in one query. Fewer, because a search ends at its limit of hits.
const TEXT_BATCH: usize = 32;
/// How many parts to read for verification at most, which bounds the time of a search.
const MAX_PARTS_READ: usize = 4_000;

pub fn search(
    connection: &Connection,
    request: &SearchRequest,
) -> Result<SearchResults, StoreError> {
    let query = TextQuery::parse(&request.query);
    let mut search = Search {
        connection,
        request,
        loader: Loader::new(connection),
        filter: Filter::of(request),
        results: SearchResults::default(),
        read: 0,
    };
    if request.kind.as_deref() == Some("note") {
        if query.is_empty() || !query.conditions().is_empty() {
            let mut notes = search.notes(&query)?.into_iter();
            search.results.hits.extend(notes.by_ref().take(request.limit));
            search.results.more = notes.next().is_some();
        }
        return Ok(search.results);
    }
    if query.is_empty() && request.is_about_parts() {
        search.newest()?;
    }
    if query.conditions().is_empty() {
        return Ok(search.results);
    }
    let mut titles = search.titles(&query)?.into_iter();
    if request.kind.as_deref() == Some("title") {
        search.results.hits.extend(titles.by_ref().take(request.limit));
        search.results.more = titles.next().is_some();
        return Ok(search.results);
    }
    // Notes and titles take at most a quarter of the results each while there are enough parts.
    let mut notes = search.notes(&query)?.into_iter();
    search.results.hits.extend(notes.by_ref().take(request.limit / 4));
    search.results.hits.extend(titles.by_ref().take(request.limit / 4));
    search.new_parts(&query)?;
    search.parts(&query)?;
    // The index may contain a word only for deleted parts. Then retry it as a fragment.
    let widened = query.widened();
    if !search.has_parts() && !search.results.widened && widened != query {
        search.new_parts(&widened)?;
        search.parts(&widened)?;
        search.results.widened = search.has_parts();
    }
    let room = request.limit.saturating_sub(search.results.hits.len());
    let mut rest = notes.chain(titles);
    search.results.hits.extend(rest.by_ref().take(room));
    search.results.more |= rest.next().is_some();
    Ok(search.results)
}

struct Search<'c, 'r> {
    connection: &'c Connection,
    request: &'r SearchRequest,
    loader: Loader<'c>,
    filter: Filter,
    results: SearchResults,
    read: usize,
}

/// A candidate with its columns.
struct ScoredHit {
    row: RowId,
    score: f32,
    hit: Hit,
}

impl Search<'_, '_> {
    fn has_parts(&self) -> bool {
        self.results.hits.iter().any(|hit| hit.part.is_some() && hit.kind != "note")
    }

    fn is_full(&self) -> bool {
        self.results.hits.len() >= self.request.limit
    }

    /// Sessions whose title, folder or branch matches. A scan: there are few sessions compared with
    /// parts.
    fn titles(&self, query: &TextQuery) -> Result<Vec<Hit>, StoreError> {
        let mut hits = Vec::new();
        let request = self.request;
        let about_parts =
            [&request.tool, &request.state, &request.model].into_iter().any(Option::is_some);
        let about_parts = about_parts || request.session.is_some();
        if about_parts || request.kind.as_deref().is_some_and(|kind| kind != "title") {
            return Ok(hits);
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT id, agent, project, coalesce(name, title), branch, started, prompt FROM session
             WHERE (agent = ?1 OR ?1 IS NULL) AND (instr(project, ?2) > 0 OR ?2 IS NULL)
                 AND (ended >= ?3 OR ?3 IS NULL) AND (started < ?4 OR ?4 IS NULL)
             ORDER BY started DESC NULLS LAST, row",
        )?;
        let mut rows =
            statement.query((&request.agent, &request.project, &request.since, &request.until))?;
        while let Some(row) = rows.next()? {
            // Collect limit+1 hits to detect more.
            if hits.len() > request.limit {
                break;
            }
            let text = |at: usize| row.get::<_, Option<String>>(at);
            let (project, title, branch) = (text(2)?, text(3)?, text(4)?);
            // A prompt that serves as title is found as a part. Match it here only if the search is
            // restricted to titles.
            let prompt = text(6)?.filter(|_| title.is_none());
            let among = prompt.clone().filter(|_| request.kind.is_some());
            let fields: Vec<&str> = [&title, &among, &project, &branch]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
            if let Some(snippet) = verify_fields(query, &fields, request.width) {
                let session = SessionId(id(row.get_ref(0)?.as_str()?)?);
                hits.push(Hit {
                    session,
                    agent: row.get(1)?,
                    project,
                    title: title.or(prompt),
                    turn: None,
                    turn_id: None,
                    place: None,
                    part: None,
                    kind: "title".to_owned(),
                    tool: None,
                    state: None,
                    at: row.get(5)?,
                    snippet,
                });
            }
        }
        Ok(hits)
    }

    /// Parts that are in no segment yet, newest first.
    fn new_parts(&mut self, query: &TextQuery) -> Result<(), StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT part FROM unindexed ORDER BY part DESC")?;
        let rows: Vec<RowId> =
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for some in rows.chunks(CANDIDATE_BATCH) {
            if self.is_full() {
                break;
            }
            let some: Vec<(RowId, f32)> = some.iter().map(|row| (*row, 0.0)).collect();
            let scored = self.load_hits(&some)?;
            self.check_all(query, scored, usize::MAX)?;
        }
        Ok(())
    }

    fn parts(&mut self, query: &TextQuery) -> Result<(), StoreError> {
        let limits = Limits::default();
        let mut found = candidates(query, &SqliteBlockStore(self.connection), &limits)?;
        self.results.newest_first = found.newest_first;
        // No segment has the whole word. If unindexed parts have it, those are all the hits; else
        // search for it inside longer words, in the unindexed parts too.
        if found.widened {
            if self.has_parts() {
                return Ok(());
            }
            self.results.widened = true;
            self.new_parts(&found.query)?;
        }
        if found.everything {
            return self.scan(&found.query);
        }
        loop {
            let last = found.documents.last().map(|candidate| candidate.document);
            self.verify_all(&found)?;
            let (true, Some(before)) = (found.more, last) else { break };
            if self.is_full() || self.read >= MAX_PARTS_READ {
                self.results.more = true;
                break;
            }
            // The filters may reject most candidates: fetch the next older ones.
            let limits = Limits { before: Some(before), ..limits };
            found = candidates(&found.query, &SqliteBlockStore(self.connection), &limits)?;
        }
        Ok(())
    }

    fn verify_all(&mut self, found: &Candidates) -> Result<(), StoreError> {
        for some in found.documents.chunks(CANDIDATE_BATCH) {
            if self.is_full() || self.read >= MAX_PARTS_READ {
                self.results.more = true;
                return Ok(());
            }
            let some: Vec<(RowId, f32)> = some
                .iter()
                .map(|candidate| (candidate.document as RowId, candidate.score))
                .collect();
            let mut scored = self.load_hits(&some)?;
            if !found.newest_first {
                // Of equal scores the newest first, independent of the storage order.
                scored.sort_by(|a, b| {
                    let newer = b.hit.at.cmp(&a.hit.at).then(a.hit.part.cmp(&b.hit.part));
                    b.score.total_cmp(&a.score).then(newer)
                });
            }
            if !self.check_all(&found.query, scored, MAX_PARTS_READ)? {
                self.results.more = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Scans parts, newest first, for a query that the index cannot narrow down.
    fn scan(&mut self, query: &TextQuery) -> Result<(), StoreError> {
        self.results.newest_first = true;
        let mut before = RowId::MAX;
        loop {
            if self.is_full() || self.read >= MAX_PARTS_READ {
                self.results.more = true;
                return Ok(());
            }
            let rows: Vec<RowId> = self
                .connection
                .prepare_cached("SELECT row FROM part WHERE row < ?1 ORDER BY row DESC LIMIT ?2")?
                .query_map((before, CANDIDATE_BATCH as i64), |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let Some(last) = rows.last() else { return Ok(()) };
            before = *last;
            let rows: Vec<(RowId, f32)> = rows.iter().map(|row| (*row, 0.0)).collect();
            let scored = self.load_hits(&rows)?;
            self.check_all(query, scored, MAX_PARTS_READ)?;
        }
    }

    /// Loads the columns of many parts in one query, as hits without snippets, in the given order.
    /// Parts that are hidden or filtered out are left out.
    fn load_hits(&self, rows: &[(RowId, f32)]) -> Result<Vec<ScoredHit>, StoreError> {
        let sql = format!(
            "SELECT session.id, session.agent, session.project,
                 coalesce(session.name, session.title, session.prompt), turn.number, part.id,
                 iif(part.role = 'user', 'user', part.kind), part.tool, part.state,
                 coalesce(part.started, part.ended, turn.started, turn.ended), turn.id, part.place,
                 part.row
             FROM {} AS wanted CROSS JOIN part ON part.row = wanted.value
                 JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
             WHERE NOT part.hidden{}",
            self.connection.row_list("?1"),
            self.filter.sql
        );
        let wanted = Value::from(json_list(rows.iter().map(|(row, _)| *row)));
        let values = std::iter::once(wanted).chain(self.filter.values.iter().cloned());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(values))?;
        let mut hits: FxHashMap<RowId, Hit> = FxHashMap::default();
        while let Some(row) = found.next()? {
            let hit = Hit {
                session: SessionId(id(row.get_ref(0)?.as_str()?)?),
                agent: row.get(1)?,
                project: row.get(2)?,
                title: row.get(3)?,
                turn: Some(row.get(4)?),
                turn_id: Some(TurnId(id(row.get_ref(10)?.as_str()?)?)),
                place: Some(Place(row.get(11)?)),
                part: Some(PartId(id(row.get_ref(5)?.as_str()?)?)),
                kind: row.get(6)?,
                tool: row.get(7)?,
                state: row.get(8)?,
                at: row.get(9)?,
                snippet: Default::default(),
            };
            hits.insert(row.get(12)?, hit);
        }
        let scored = rows.iter().filter_map(|(row, score)| {
            let hit = hits.remove(row)?;
            Some(ScoredHit { row: *row, score: score * weight(&hit.kind), hit })
        });
        Ok(scored.collect())
    }

    /// Reads the texts of candidates, in order, and adds a hit for each that matches. False if it
    /// ended early: there are enough hits, or `max_read` parts were read.
    fn check_all(
        &mut self,
        query: &TextQuery,
        scored: Vec<ScoredHit>,
        max_read: usize,
    ) -> Result<bool, StoreError> {
        let mut scored = scored.into_iter();
        loop {
            let some: Vec<ScoredHit> = scored.by_ref().take(TEXT_BATCH).collect();
            if some.is_empty() {
                return Ok(true);
            }
            let rows: Vec<RowId> = some.iter().map(|candidate| candidate.row).collect();
            let mut texts = self.loader.rows(&rows)?;
            for candidate in some {
                if self.is_full() || self.read >= max_read {
                    return Ok(false);
                }
                let text = texts.remove(&candidate.row);
                self.check(query, candidate, text)?;
            }
        }
    }

    /// Adds a hit if the text of the part matches.
    fn check(
        &mut self,
        query: &TextQuery,
        scored: ScoredHit,
        text: Option<RawPart>,
    ) -> Result<(), StoreError> {
        self.read += 1;
        let is_listed = |hit: &Hit| hit.part.is_some() && hit.part == scored.hit.part;
        if self.results.hits.iter().any(is_listed) {
            return Ok(());
        }
        let Some(text) = text else { return Ok(()) };
        let Some(loaded) = self.loader.open_if_readable(text, Extent::WithoutResult)? else {
            return Ok(());
        };
        let result = || loaded.left_out();
        let snippet = verify(query, &loaded.part.body, result, self.request.width);
        self.results.hits.extend(snippet.map(|snippet| Hit { snippet, ..scored.hit }));
        Ok(())
    }
}
