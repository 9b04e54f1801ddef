//! Counts the values of each filter. A session counts towards the values of a filter if it passes
//! all other filters.

use rustc_hash::FxHashMap;

use crate::facets::{Facets, FacetsRequest, ProjectFacet};
use crate::store::SessionFilter;

/// What filters compare of a session.
pub struct FilterValues<'a> {
    pub agent: &'a str,
    pub project: Option<&'a str>,
    pub models: &'a [String],
    pub tags: &'a [String],
    pub has_errors: bool,
    pub is_agent: bool,
    pub started: Option<i64>,
    /// Time of the last activity.
    pub last: Option<i64>,
}

/// Which filters a session passes.
pub struct FilterOutcome {
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
    pub fn of(session: &FilterValues<'_>, filter: &SessionFilter) -> FilterOutcome {
        let FilterValues { started, last, .. } = *session;
        FilterOutcome {
            agent: filter.agent.as_deref().is_none_or(|wanted| wanted == session.agent),
            project: allows_project(filter, session.project),
            model: filter.model.as_ref().is_none_or(|model| session.models.contains(model)),
            tag: filter.tag.as_ref().is_none_or(|tag| session.tags.contains(tag)),
            errors: session.has_errors || !filter.with_errors,
            since: filter.since.is_none_or(|since| last.is_some_and(|last| last >= since)),
            until: filter.until.is_none_or(|until| started.is_some_and(|at| at < until)),
            own: !(filter.without_agents && session.is_agent),
        }
    }

    /// True if the session passes all filters.
    pub fn is_selected(&self) -> bool {
        self.all_except(&true)
    }

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

/// The counts of all filters so far.
pub struct FacetCounts<'a> {
    request: &'a FacetsRequest,
    found: Facets,
    agents: ValueCounts,
    models: ValueCounts,
    tags: ValueCounts,
    /// The number of sessions of a project, and the time of its last activity.
    projects: FxHashMap<String, (u64, Option<i64>)>,
}

impl FacetCounts<'_> {
    pub fn new(request: &FacetsRequest) -> FacetCounts<'_> {
        FacetCounts {
            request,
            found: Facets { times: vec![0; request.times.len()], ..Facets::default() },
            agents: ValueCounts::default(),
            models: ValueCounts::default(),
            tags: ValueCounts::default(),
            projects: FxHashMap::default(),
        }
    }

    pub fn add(&mut self, session: &FilterValues<'_>, outcome: &FilterOutcome) {
        let FilterValues { has_errors, is_agent, last, .. } = *session;
        let found = &mut self.found;
        found.all += 1;
        found.sessions += u64::from(outcome.is_selected());
        found.errors += u64::from(has_errors && outcome.all_except(&outcome.errors));
        found.sub_agents += u64::from(is_agent && outcome.all_except(&outcome.own));
        if outcome.all_except(&outcome.since) {
            for (count, since) in found.times.iter_mut().zip(&self.request.times) {
                *count += u64::from(last.is_some_and(|last| last >= *since));
            }
        }
        if outcome.all_except(&outcome.agent) {
            self.agents.add(session.agent);
        }
        if let Some(project) = session.project
            && outcome.all_except(&outcome.project)
        {
            match self.projects.get_mut(project) {
                Some(of) => *of = (of.0 + 1, of.1.max(last)),
                None => {
                    self.projects.insert(project.to_owned(), (1, last));
                }
            }
        }
        if outcome.all_except(&outcome.model) {
            session.models.iter().for_each(|model| self.models.add(model));
        }
        if outcome.all_except(&outcome.tag) {
            session.tags.iter().for_each(|tag| self.tags.add(tag));
        }
    }

    /// The facets, without the totals.
    pub fn into_facets(self) -> Facets {
        Facets {
            agents: self.agents.into_list(),
            models: self.models.into_list(),
            tags: self.tags.into_list(),
            projects: projects(self.projects),
            ..self.found
        }
    }
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
