//! The sums of turns and sessions, updated by what a batch changes. To add up all parts of a turn
//! again for each line that an agent appends would make a long turn quadratic.

use crate::sql;
use crate::sql::{OptionalExtension, Row, Statement, Transaction, params, params_from_iter};
use rustc_hash::FxHashMap;

use crate::database::derived_columns::{PART_FIGURES, STEP_FIGURES, TURN_FIGURES};
use crate::rows::{RowId, SessionWrite};

/// The columns that are counts, in the order of [`Figures`].
const COUNTS: [&str; 10] = [
    "turns",
    "parts",
    "tools",
    "errors",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "cache_write_1h",
];
/// Larger counts are added up again: sums are exact up to 2^53.
const MAX_EXACT: i64 = 1 << 50;

/// What some rows add to a sum.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    first: Option<i64>,
    last: Option<i64>,
    counts: [i64; COUNTS.len()],
}

impl Figures {
    fn add(&mut self, other: Figures) {
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum = sum.saturating_add(count);
        }
    }

    /// From a row with first, last and these counts.
    fn of(row: &Row<'_>, from: usize, counts: std::ops::Range<usize>) -> sql::Result<Figures> {
        let mut figures =
            Figures { first: row.get(from)?, last: row.get(from + 1)?, ..Figures::default() };
        for (nth, count) in counts.enumerate() {
            figures.counts[count] = row.get(from + 2 + nth)?;
        }
        Ok(figures)
    }

    fn is_exact(&self) -> bool {
        self.counts.iter().all(|count| count.abs() < MAX_EXACT)
    }
}

/// What the changed rows added before and add after.
#[derive(Debug, Default)]
struct SumChange {
    before: Figures,
    after: Figures,
}

impl SumChange {
    /// False if a first or last time may be gone, or if the difference is not exact.
    fn is_difference(&self) -> bool {
        let SumChange { before, after } = self;
        let first = before.first.is_none_or(|old| after.first.is_some_and(|new| new <= old));
        first && after.last >= before.last && before.is_exact() && after.is_exact()
    }

    /// Updates a row by the difference. False if it has to be added up again.
    fn apply(
        &self,
        transaction: &Transaction<'_>,
        table: SummedTable,
        row: RowId,
    ) -> sql::Result<bool> {
        if !self.is_difference() {
            return Ok(false);
        }
        let SummedTable { name, first, last } = table;
        let counts = if name == "turn" { 1.. } else { 0.. };
        let sums = COUNTS[counts.clone()].iter().zip(4..);
        let sums: String = sums.map(|(count, at)| format!(", {count} = {count} + ?{at}")).collect();
        let sql = format!(
            "UPDATE {name} SET {first} = min(coalesce({first}, ?2), coalesce(?2, {first})),
                 {last} = max(coalesce({last}, ?3), coalesce(?3, {last})){sums} WHERE row = ?1"
        );
        let mut values = vec![Some(row), self.after.first, self.after.last];
        let differences = self.after.counts.iter().zip(&self.before.counts);
        let differences = differences.skip(counts.start);
        values.extend(differences.map(|(after, before)| Some(after - before)));
        transaction.prepare_cached(&sql)?.run(params_from_iter(values))?;
        Ok(true)
    }
}

/// A table with sums, and its columns for the first and the last time.
#[derive(Clone, Copy)]
struct SummedTable {
    name: &'static str,
    first: &'static str,
    last: &'static str,
}

const TURN: SummedTable = SummedTable { name: "turn", first: "first", last: "last" };
const SESSION: SummedTable = SummedTable { name: "session", first: "started", last: "ended" };

/// Notes the rows of one session around their writes.
pub(super) struct SumChanges<'t> {
    part: Statement<'t>,
    steps: Statement<'t>,
    turn: Statement<'t>,
    has_inherited: Statement<'t>,
    turns: FxHashMap<RowId, SumChange>,
    session: SumChange,
    /// Rows were deleted or moved: everything is added up again.
    recompute: bool,
}

impl<'t> SumChanges<'t> {
    pub fn new(
        transaction: &'t Transaction<'_>,
        write: &SessionWrite,
    ) -> sql::Result<SumChanges<'t>> {
        let sql = |columns: &str, table: &str, condition: &str| {
            transaction.prepare_cached(&format!("SELECT {columns} FROM {table} WHERE {condition}"))
        };
        let visible = "row = ?1 AND role = 'assistant' AND NOT hidden";
        Ok(SumChanges {
            part: sql(&PART_FIGURES, "part", visible)?,
            steps: sql(STEP_FIGURES, "step", "turn = ?1 AND number >= ?2")?,
            turn: sql(&TURN_FIGURES, "turn", "row = ?1")?,
            has_inherited: sql("1", "turn", "session = ?1 AND inherited")?,
            turns: FxHashMap::default(),
            session: SumChange::default(),
            // The head of a session has a first time of its own.
            recompute: write.head.is_some()
                || !write.deleted_parts.is_empty()
                || !write.merged.is_empty(),
        })
    }

    /// Notes a turn before anything in it is written.
    pub fn before_turn(&mut self, turn: RowId) -> sql::Result<()> {
        if self.recompute || self.turns.contains_key(&turn) {
            return Ok(());
        }
        self.turns.insert(turn, SumChange::default());
        let found = turn_figures(&mut self.turn, turn)?;
        self.session.before.add(found);
        Ok(())
    }

    /// Notes the steps of a turn from this number on, before and after they are written.
    pub fn steps(&mut self, turn: RowId, from: i64, written: bool) -> sql::Result<()> {
        if self.recompute {
            return Ok(());
        }
        let found = self
            .steps
            .query_row(params![turn, from], |row| Figures::of(row, 0, 4..COUNTS.len()))?;
        self.add(turn, found, written);
        Ok(())
    }

    /// Notes a part before or after it is written.
    pub fn part(&mut self, turn: RowId, part: RowId, written: bool) -> sql::Result<()> {
        if self.recompute {
            return Ok(());
        }
        let found = self.part.query_row([part], |row| Figures::of(row, 0, 1..4)).optional()?;
        self.add(turn, found.unwrap_or_default(), written);
        Ok(())
    }

    fn add(&mut self, turn: RowId, found: Figures, written: bool) {
        let change = self.turns.entry(turn).or_default();
        if written { change.after.add(found) } else { change.before.add(found) }
    }

    /// Updates the sums of the turns and of the session. Returns what has to be added up again.
    pub fn apply(
        mut self,
        transaction: &Transaction<'_>,
        session: RowId,
        turns: &[RowId],
    ) -> sql::Result<Outdated> {
        if self.recompute {
            return Ok(Outdated { turns: turns.to_vec(), session: true });
        }
        let mut outdated = Vec::new();
        for (turn, change) in &self.turns {
            if !change.apply(transaction, TURN, *turn)? {
                outdated.push(*turn);
            }
        }
        if !outdated.is_empty() {
            return Ok(Outdated { turns: outdated, session: true });
        }
        // The times of inherited turns count only if there are no others.
        if self.has_inherited.exists([session])? {
            return Ok(Outdated { turns: Vec::new(), session: true });
        }
        for turn in self.turns.keys() {
            let found = turn_figures(&mut self.turn, *turn)?;
            self.session.after.add(found);
        }
        let applied = self.session.apply(transaction, SESSION, session)?;
        Ok(Outdated { turns: Vec::new(), session: !applied })
    }
}

/// The sums that have to be added up again.
pub(super) struct Outdated {
    pub turns: Vec<RowId>,
    pub session: bool,
}

fn turn_figures(statement: &mut Statement<'_>, turn: RowId) -> sql::Result<Figures> {
    let found =
        statement.query_row([turn], |row| Figures::of(row, 0, 0..COUNTS.len())).optional()?;
    Ok(found.unwrap_or_default())
}
