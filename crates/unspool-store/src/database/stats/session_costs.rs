//! What each session cost, as its agent reports it or estimated, and the most expensive sessions.
//! The same decision as `Spending` makes for one session and its sub-agents, for all of them.

use crate::sql;
use crate::sql::{Connection, OptionalExtension};
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::price::Spending;
use unspool_view::present::format::first_line;

use super::groups::Calls;
use crate::database::failures::{MAX_LINE_CHARS, MAX_LISTED};
use crate::database::load::usage;
use crate::database::subagents::{COST_TOKENS, reported_cost};
use crate::rows::RowId;
use crate::stats::{SessionFigures, UsageFigures, sum};
use crate::store::StoreError;

/// How the cost of a session is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SessionCost {
    /// As its agent reports it, sub-agents included.
    Reported(f64),
    /// Estimated: what its agent reports is for only a part of the tokens.
    Partial(f64),
    /// Estimated: its agent reports none.
    Unreported,
    /// It is a part of what the agent reports for the session that started this one.
    InParent,
}

impl SessionCost {
    pub fn is_estimated(self) -> bool {
        match self {
            SessionCost::Partial(_) | SessionCost::Unreported => true,
            SessionCost::Reported(_) | SessionCost::InParent => false,
        }
    }

    /// Adds what the agent reports.
    pub fn add_to(self, figures: &mut UsageFigures) {
        match self {
            SessionCost::Reported(cost) => figures.add_reported(cost),
            SessionCost::Partial(cost) => {
                figures.partial_cost_usd = sum(figures.partial_cost_usd, Some(cost));
            }
            SessionCost::Unreported | SessionCost::InParent => {}
        }
    }
}

#[derive(Default)]
struct SessionTotals {
    turns: u64,
    last_turn: Option<RowId>,
    usage: UsageFigures,
}

pub struct SessionCosts {
    reported: FxHashMap<RowId, SessionCost>,
    /// The sessions that started a session.
    parents: FxHashMap<RowId, Vec<RowId>>,
    /// The sessions that were counted.
    counted: FxHashMap<RowId, SessionTotals>,
}

impl SessionCosts {
    pub fn load(connection: &Connection) -> Result<SessionCosts, StoreError> {
        let mut statement = connection.prepare_cached(
            "SELECT child.row, agent.parent FROM agent JOIN session AS child
                 ON child.id = agent.session WHERE agent.parent <> child.row
             UNION SELECT child.row, session.row FROM session AS child JOIN session
                 ON session.id = child.parent WHERE child.parent IS NOT NULL
                     AND session.row <> child.row",
        )?;
        let mut rows = statement.query([])?;
        let mut parents: FxHashMap<RowId, Vec<RowId>> = FxHashMap::default();
        while let Some(row) = rows.next()? {
            parents.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        let mut costs =
            SessionCosts { reported: FxHashMap::default(), parents, counted: FxHashMap::default() };
        costs.load_reported(connection)?;
        Ok(costs)
    }

    fn load_reported(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let columns = format!(
            "cost_usd, {COST_TOKENS}, input, output, cache_read, cache_write, reasoning,
             cache_write_1h"
        );
        let spending = |row: &sql::Row<'_>| -> Result<Spending, StoreError> {
            Ok(Spending::of_session([(None, usage(row, 2)?)], reported_cost(row, 0)?))
        };
        let sql = format!("SELECT {columns}, row FROM session WHERE cost_usd IS NOT NULL");
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        // The spending of the session alone, and together with its sub-agents.
        let mut reporting: FxHashMap<RowId, (Spending, Spending)> = FxHashMap::default();
        while let Some(row) = rows.next()? {
            let own = spending(&row)?;
            reporting.insert(row.get(8)?, (own.clone(), own));
        }
        let mut statement =
            connection.prepare_cached(&format!("SELECT {columns} FROM session WHERE row = ?1"))?;
        for child in self.parents.keys() {
            let ancestors = self.ancestors(*child);
            if !ancestors.iter().any(|ancestor| reporting.contains_key(ancestor)) {
                continue;
            }
            let mut rows = statement.query([child])?;
            let Some(row) = rows.next()? else { continue };
            let own = spending(&row)?;
            for ancestor in ancestors {
                if let Some((_, family)) = reporting.get_mut(&ancestor) {
                    family.add(&own);
                }
            }
        }
        for (row, (mut own, family)) in reporting {
            own.check_against(&family);
            let reported = own.reported_usd().map(SessionCost::Reported);
            let cost = reported.or_else(|| own.partial_usd().map(SessionCost::Partial));
            self.reported.extend(cost.map(|cost| (row, cost)));
        }
        Ok(())
    }

    /// The sessions above this one, nearest first. Logs are untrusted: parents may form a cycle.
    fn ancestors(&self, session: RowId) -> Vec<RowId> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::from_iter([session]);
        let mut open = vec![session];
        while let Some(at) = open.pop() {
            for parent in self.parents.get(&at).into_iter().flatten() {
                if seen.insert(*parent) {
                    found.push(*parent);
                    open.push(*parent);
                }
            }
        }
        found
    }

    pub fn of(&self, session: RowId) -> SessionCost {
        if let Some(cost) = self.reported.get(&session) {
            return *cost;
        }
        if !self.parents.contains_key(&session) {
            return SessionCost::Unreported;
        }
        let covers = |ancestor: &RowId| {
            matches!(self.reported.get(ancestor), Some(SessionCost::Reported(_)))
        };
        match self.ancestors(session).iter().any(covers) {
            true => SessionCost::InParent,
            false => SessionCost::Unreported,
        }
    }

    /// Counts the model calls of a turn. The rows of a session come together.
    pub fn count(&mut self, session: RowId, turn: Option<RowId>, calls: &Calls) {
        let totals = self.counted.entry(session).or_default();
        if turn.is_some() && totals.last_turn != turn {
            totals.last_turn = turn;
            totals.turns += 1;
        }
        calls.add_to(&mut totals.usage);
    }

    pub fn usage(&mut self, session: RowId) -> &mut UsageFigures {
        &mut self.counted.entry(session).or_default().usage
    }

    /// The sessions that cost most, most expensive first. Sub-agents count for the topmost counted
    /// session that led to them.
    pub fn most_expensive(
        mut self,
        connection: &Connection,
    ) -> Result<Vec<SessionFigures>, StoreError> {
        let mut families: FxHashMap<RowId, SessionFigures> = FxHashMap::default();
        let mut sessions: Vec<(RowId, SessionTotals)> = self.counted.drain().collect();
        sessions.sort_unstable_by_key(|(row, _)| *row);
        let counted: FxHashSet<RowId> = sessions.iter().map(|(row, _)| *row).collect();
        for (row, totals) in sessions {
            let above = self.ancestors(row).into_iter().filter(|row| counted.contains(row));
            // A nested agent may name both its agent and the session above that.
            let above = above.min_by_key(|above| (self.ancestors(*above).len(), *above));
            let figures = families.entry(above.unwrap_or(row)).or_default();
            figures.sub_agents += u64::from(above.is_some());
            figures.turns += totals.turns;
            figures.usage.add(&totals.usage);
        }
        // Rounded, so that the order of summation does not decide.
        let cost =
            |figures: &SessionFigures| (figures.usage.spent_usd.unwrap_or(0.0) * 1e9).round();
        let mut families: Vec<(RowId, SessionFigures)> =
            families.into_iter().filter(|(_, figures)| cost(figures) > 0.0).collect();
        families.sort_by(|(_, one), (_, other)| cost(other).total_cmp(&cost(one)));
        if let Some(least) = families.get(MAX_LISTED - 1).map(|(_, figures)| cost(figures)) {
            families.retain(|(_, figures)| cost(figures) >= least);
        }
        let mut found = Vec::new();
        let mut statement = connection.prepare_cached(
            "SELECT id, coalesce(name, title, prompt), agent, project, started FROM session
             WHERE row = ?1",
        )?;
        for (row, figures) in families {
            let named = statement.query_row([row], |row| {
                let title: Option<String> = row.get(1)?;
                Ok(SessionFigures {
                    session: row.get(0)?,
                    title: title.map(|title| first_line(&title, MAX_LINE_CHARS)),
                    agent: row.get(2)?,
                    project: row.get(3)?,
                    started: row.get(4)?,
                    ..figures
                })
            });
            found.extend(named.optional()?);
        }
        // Of equally expensive ones the lower id counts: rows are in the order of the import.
        found.sort_by(|one, other| {
            cost(other).total_cmp(&cost(one)).then_with(|| one.session.cmp(&other.session))
        });
        found.truncate(MAX_LISTED);
        Ok(found)
    }
}
