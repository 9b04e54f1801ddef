//! Facet counts, in one pass over the sessions. All filters are evaluated for each session; one
//! that fails exactly one filter counts towards that filter's other values.

use rusqlite::{Connection, OptionalExtension};
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::price::{Prices, Spending};
use unspool_core::session::Usage;

use super::load::usage;
use super::read::NOT_EMPTY;
use super::subagents::spending;
use crate::facets::{Facets, FacetsRequest, ProjectFacet};
use crate::pack::PackError;
use crate::rows::RowId;
use crate::store::{SessionFilter, StoreError};

/// A session's values for filtering and totals.
struct SessionEntry {
    row: RowId,
    parents: Vec<RowId>,
    is_selected: bool,
    used: Usage,
    /// Index of its model list in `lists`.
    models: usize,
    reported_usd: Option<f64>,
}

/// Which filters a session passes.
struct FilterOutcome {
    agent: bool,
    project: bool,
    model: bool,
    tag: bool,
    errors: bool,
    since: bool,
    until: bool,
    own: bool,
}

impl FilterOutcome {
    /// True if the session passes all filters, `left_out` disregarded.
    fn all_except(&self, left_out: &bool) -> bool {
        let all = [
            &self.agent,
            &self.project,
            &self.model,
            &self.tag,
            &self.errors,
            &self.since,
            &self.until,
            &self.own,
        ];
        all.into_iter().all(|outcome| *outcome || std::ptr::eq(outcome, left_out))
    }
}

#[derive(Default)]
struct ValueCounts(FxHashMap<String, u64>);

impl ValueCounts {
    fn add(&mut self, name: &str) {
        if let Some(count) = self.0.get_mut(name) {
            *count += 1;
        } else {
            self.0.insert(name.to_owned(), 1);
        }
    }

    /// Most first.
    fn into_list(self) -> Vec<(String, u64)> {
        let mut list: Vec<(String, u64)> = self.0.into_iter().collect();
        list.sort_by(|(one, of_one), (other, of_other)| {
            of_other.cmp(of_one).then_with(|| one.cmp(other))
        });
        list
    }
}

pub fn facets(connection: &Connection, request: &FacetsRequest) -> Result<Facets, StoreError> {
    let filter = &request.filter;
    let (agents, tags) = (agents(connection)?, tags(connection)?);
    let empty = if filter.with_empty { "" } else { NOT_EMPTY };
    let sql = format!(
        "SELECT session.row, session.id, session.agent, session.project, session.models,
             session.errors, session.sub_agent, session.started, session.ended, session.parent,
             session.cost_usd, session.input, session.output, session.cache_read,
             session.cache_write, session.reasoning, session.cache_write_1h
         FROM session WHERE 1{empty}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut found = Facets { times: vec![0; request.times.len()], ..Facets::default() };
    let [mut by_agent, mut by_model, mut by_tag] = [(); 3].map(|()| ValueCounts::default());
    let mut by_project: FxHashMap<String, (u64, Option<i64>)> = FxHashMap::default();
    let mut seen: Vec<SessionEntry> = Vec::new();
    // Parse each distinct model list once: many sessions share few lists.
    let mut lists: Vec<Vec<String>> = Vec::new();
    let mut by_text: FxHashMap<String, usize> = FxHashMap::default();
    let mut parents_by_id: Vec<(usize, String)> = Vec::new();
    while let Some(row) = rows.next()? {
        found.all += 1;
        let number: RowId = row.get(0)?;
        let id = row.get_ref(1)?.as_str()?;
        let agent = row.get_ref(2)?.as_str()?;
        let project = row.get_ref(3)?.as_str_or_null()?;
        let written = row.get_ref(4)?.as_str()?;
        let list = match by_text.get(written) {
            Some(earlier) => *earlier,
            None => {
                lists.push(serde_json::from_str(written).map_err(PackError::from)?);
                by_text.insert(written.to_owned(), lists.len() - 1);
                lists.len() - 1
            }
        };
        let models: &[String] = &lists[list];
        let (started, ended): (Option<i64>, Option<i64>) = (row.get(7)?, row.get(8)?);
        let parent = row.get_ref(9)?.as_str_or_null()?;
        let named = agents.get(id);
        let is_agent = row.get::<_, bool>(6)?
            || parent.is_some()
            || named.is_some_and(|by| by.iter().any(|by| *by != number));
        let last = ended.or(started);
        let own_tags = tags.get(&number).map(Vec::as_slice).unwrap_or_default();
        let has_errors = row.get::<_, i64>(5)? > 0;
        let outcome = FilterOutcome {
            agent: filter.agent.as_deref().is_none_or(|wanted| wanted == agent),
            project: allows_project(filter, project),
            model: filter.model.as_ref().is_none_or(|model| models.contains(model)),
            tag: filter.tag.as_ref().is_none_or(|tag| own_tags.contains(tag)),
            errors: has_errors || !filter.with_errors,
            since: filter.since.is_none_or(|since| last.is_some_and(|last| last >= since)),
            until: filter.until.is_none_or(|until| started.is_some_and(|at| at < until)),
            own: !(filter.without_agents && is_agent),
        };
        if outcome.all_except(&outcome.agent) {
            by_agent.add(agent);
        }
        if let Some(project) = project
            && outcome.all_except(&outcome.project)
        {
            match by_project.get_mut(project) {
                Some(of) => *of = (of.0 + 1, of.1.max(last)),
                None => {
                    by_project.insert(project.to_owned(), (1, last));
                }
            }
        }
        if outcome.all_except(&outcome.model) {
            models.iter().for_each(|model| by_model.add(model));
        }
        if outcome.all_except(&outcome.tag) {
            own_tags.iter().for_each(|tag| by_tag.add(tag));
        }
        found.errors += u64::from(has_errors && outcome.all_except(&outcome.errors));
        found.sub_agents += u64::from(is_agent && outcome.all_except(&outcome.own));
        if outcome.all_except(&outcome.since) {
            for (count, since) in found.times.iter_mut().zip(&request.times) {
                *count += u64::from(last.is_some_and(|last| last >= *since));
            }
        }
        let is_selected = outcome.all_except(&true);
        found.sessions += u64::from(is_selected);
        parents_by_id.extend(parent.map(|parent| (seen.len(), parent.to_owned())));
        let parents = named.cloned().unwrap_or_default();
        let (used, reported_usd) = (usage(row, 11)?, row.get(10)?);
        seen.push(SessionEntry {
            row: number,
            parents,
            is_selected,
            used,
            models: list,
            reported_usd,
        });
    }
    let mut find = connection.prepare_cached("SELECT row FROM session WHERE id = ?1")?;
    for (at, parent) in parents_by_id {
        seen[at].parents.extend(find.query_row([parent], |row| row.get::<_, RowId>(0)).optional()?);
    }
    let sums = Sums { connection, seen: &seen, lists: &lists, prices: &request.prices };
    sums.add_up(&mut found)?;
    found.agents = by_agent.into_list();
    found.models = by_model.into_list();
    found.tags = by_tag.into_list();
    found.projects = projects(by_project);
    Ok(found)
}

/// The project filter matches a substring of the path, so a path counts all paths containing it.
fn projects(exact: FxHashMap<String, (u64, Option<i64>)>) -> Vec<ProjectFacet> {
    let mut list: Vec<ProjectFacet> = exact
        .keys()
        .map(|path| {
            let within = exact.iter().filter(|(other, _)| other.contains(path));
            let (mut sessions, mut last) = (0, None);
            for (_, (count, heard)) in within {
                sessions += count;
                last = last.max(*heard);
            }
            ProjectFacet { path: path.clone(), sessions, last }
        })
        .collect();
    list.sort_by(|one, other| {
        other.sessions.cmp(&one.sessions).then_with(|| one.path.cmp(&other.path))
    });
    list
}

fn allows_project(filter: &SessionFilter, project: Option<&str>) -> bool {
    let Some(wanted) = &filter.project else { return true };
    project.is_some_and(|project| project.contains(wanted.as_str()))
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
            if alone && one.reported_usd.is_none() && models.len() < 2 {
                plain.entry(one.models).or_default().add(one.used);
                continue;
            }
            let own = spending(self.connection, one.row, models, one.used, one.reported_usd)?;
            by_top.entry(top).or_default().add(&own);
        }
        let plain = plain.into_iter().map(|(models, used)| {
            let model = self.lists[models].first().map(String::as_str);
            Spending::of_session([(model, used)], None)
        });
        for spending in by_top.into_values().chain(plain) {
            let cost = spending.reported_usd.or_else(|| spending.estimated_usd(self.prices));
            found.is_estimated |= cost.is_some() && spending.reported_usd.is_none();
            if let Some(cost) = cost {
                found.cost_usd = Some(found.cost_usd.unwrap_or(0.0) + cost);
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
    let mut statement = connection.prepare_cached("SELECT session, name FROM tag")?;
    let mut rows = statement.query([])?;
    let mut found: FxHashMap<RowId, Vec<String>> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        found.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(found)
}
