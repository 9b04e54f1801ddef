//! Facet counts, in one pass over the sessions. All filters are evaluated for each session; one
//! that fails exactly one filter counts towards that filter's other values.

mod counts;

use crate::sql::{Connection, OptionalExtension};
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::price::{Prices, ReportedCost, Spending};
use unspool_model::session::Usage;

use self::counts::{FacetCounts, FilterOutcome, FilterValues};
use super::load::usage;
use super::read::NOT_EMPTY;
use super::subagents::{COST_TOKENS, reported_cost, spending};
use crate::facets::{Facets, FacetsRequest};
use crate::pack::PackError;
use crate::rows::RowId;
use crate::store::StoreError;

/// A session's values for filtering and totals.
struct SessionEntry {
    row: RowId,
    parents: Vec<RowId>,
    is_selected: bool,
    used: Usage,
    /// Index of its model list in `lists`.
    models: usize,
    reported: Option<ReportedCost>,
}

/// The distinct model lists. Each is parsed once: many sessions share few lists.
#[derive(Default)]
struct ModelLists {
    lists: Vec<Vec<String>>,
    by_text: FxHashMap<String, usize>,
}

impl ModelLists {
    /// The index in `lists` of a model list, given as JSON.
    fn index_of(&mut self, written: &str) -> Result<usize, StoreError> {
        if let Some(earlier) = self.by_text.get(written) {
            return Ok(*earlier);
        }
        self.lists.push(serde_json::from_str(written).map_err(PackError::from)?);
        self.by_text.insert(written.to_owned(), self.lists.len() - 1);
        Ok(self.lists.len() - 1)
    }
}

pub fn facets(connection: &Connection, request: &FacetsRequest) -> Result<Facets, StoreError> {
    let filter = &request.filter;
    let (agents, tags) = (agents(connection)?, tags(connection)?);
    let empty = if filter.with_empty { "" } else { NOT_EMPTY };
    let sql = format!(
        "SELECT session.row, session.id, session.agent, session.project, session.models,
             session.errors, session.sub_agent, session.started, session.ended, session.parent,
             session.cost_usd, {COST_TOKENS}, session.input, session.output,
             session.cache_read, session.cache_write, session.reasoning, session.cache_write_1h
         FROM session WHERE true{empty}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut counts = FacetCounts::new(request);
    let mut seen: Vec<SessionEntry> = Vec::new();
    let mut models = ModelLists::default();
    let mut parents_by_id: Vec<(usize, String)> = Vec::new();
    while let Some(row) = rows.next()? {
        let number: RowId = row.get(0)?;
        let list = models.index_of(row.get_ref(4)?.as_str()?)?;
        let (started, ended): (Option<i64>, Option<i64>) = (row.get(7)?, row.get(8)?);
        let parent = row.get_ref(9)?.as_str_or_null()?;
        let named = agents.get(row.get_ref(1)?.as_str()?);
        let is_agent = row.get::<_, bool>(6)?
            || parent.is_some()
            || named.is_some_and(|by| by.iter().any(|by| *by != number));
        let values = FilterValues {
            agent: row.get_ref(2)?.as_str()?,
            project: row.get_ref(3)?.as_str_or_null()?,
            models: &models.lists[list],
            tags: tags.get(&number).map(Vec::as_slice).unwrap_or_default(),
            has_errors: row.get::<_, i64>(5)? > 0,
            is_agent,
            started,
            last: ended.or(started),
        };
        let outcome = FilterOutcome::of(&values, filter);
        counts.add(&values, &outcome);
        parents_by_id.extend(parent.map(|parent| (seen.len(), parent.to_owned())));
        seen.push(SessionEntry {
            row: number,
            parents: named.cloned().unwrap_or_default(),
            is_selected: outcome.is_selected(),
            used: usage(&row, 12)?,
            models: list,
            reported: reported_cost(&row, 10)?,
        });
    }
    let mut find = connection.prepare_cached("SELECT row FROM session WHERE id = ?1")?;
    for (at, parent) in parents_by_id {
        seen[at].parents.extend(find.query_row([parent], |row| row.get::<_, RowId>(0)).optional()?);
    }
    let mut found = counts.into_facets();
    let sums = Sums { connection, seen: &seen, lists: &models.lists, prices: &request.prices };
    sums.add_up(&mut found)?;
    Ok(found)
}

/// Totals over the selected sessions and their sub-agents. A reported cost covers a session and its
/// sub-agents together.
struct Sums<'a> {
    connection: &'a Connection,
    seen: &'a [SessionEntry],
    lists: &'a [Vec<String>],
    prices: &'a Prices,
}

impl Sums<'_> {
    fn add_up(&self, found: &mut Facets) -> Result<(), StoreError> {
        let seen = self.seen;
        let by_row: FxHashMap<RowId, usize> =
            seen.iter().enumerate().map(|(at, seen)| (seen.row, at)).collect();
        let with_agents: FxHashSet<RowId> =
            seen.iter().flat_map(|seen| seen.parents.iter().copied()).collect();
        let mut by_top: FxHashMap<usize, Spending> = FxHashMap::default();
        // Most sessions have no relatives, at most one model and no reported cost. Their tokens are
        // summed by model and priced once.
        let mut plain: FxHashMap<usize, Usage> = FxHashMap::default();
        for (at, one) in seen.iter().enumerate() {
            let alone = one.parents.is_empty() && !with_agents.contains(&one.row);
            let top = if alone { one.is_selected.then_some(at) } else { self.top(&by_row, at) };
            let Some(top) = top else { continue };
            found.usage.add(one.used);
            let models = &self.lists[one.models];
            if alone && one.reported.is_none() && models.len() < 2 {
                plain.entry(one.models).or_default().add(one.used);
                continue;
            }
            let own = spending(self.connection, one.row, models, one.used, one.reported)?;
            by_top.entry(top).or_default().add(&own);
        }
        let plain = plain.into_iter().map(|(models, used)| {
            let model = self.lists[models].first().map(String::as_str);
            Spending::of_session([(model, used)], None)
        });
        for spending in by_top.into_values().chain(plain) {
            if let Some(cost) = spending.cost(self.prices) {
                found.is_estimated |= cost.is_estimated();
                found.cost_usd = Some(found.cost_usd.unwrap_or(0.0) + cost.usd());
            }
        }
        // Round, so that the order of summation does not show in the last bits.
        found.cost_usd = found.cost_usd.map(|cost| (cost * 1e6).round() / 1e6);
        Ok(())
    }

    /// The topmost selected session among itself and its ancestors.
    fn top(&self, by_row: &FxHashMap<RowId, usize>, from: usize) -> Option<usize> {
        let mut chosen = None;
        let mut open = vec![from];
        // Logs are untrusted: parents may form a cycle.
        let mut earlier = FxHashSet::default();
        while let Some(at) = open.pop() {
            if !earlier.insert(at) {
                continue;
            }
            if self.seen[at].is_selected {
                chosen = Some(at);
            }
            open.extend(self.seen[at].parents.iter().filter_map(|parent| by_row.get(parent)));
        }
        chosen
    }
}

/// The parents of each sub-agent, by the sub-agent's session id.
fn agents(connection: &Connection) -> Result<FxHashMap<String, Vec<RowId>>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT DISTINCT session, parent FROM agent ORDER BY 1, 2")?;
    let mut rows = statement.query([])?;
    let mut found: FxHashMap<String, Vec<RowId>> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        found.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(found)
}

fn tags(connection: &Connection) -> Result<FxHashMap<RowId, Vec<String>>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT session, name FROM tag ORDER BY 1, 2")?;
    let mut rows = statement.query([])?;
    let mut found: FxHashMap<RowId, Vec<String>> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        found.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(found)
}
