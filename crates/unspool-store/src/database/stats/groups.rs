//! The groups of the statistics (by day, week, month, hour, model, agent and project), and the model calls that are
//! counted in them.

use rustc_hash::FxHashMap;
use unspool_model::price::{Price, Prices};
use unspool_model::session::Usage;

use super::session_costs::SessionCost;
use crate::rows::RowId;
use crate::stats::{GroupFigures, HourFigures, UsageFigures, sum};

/// The groups of the first pass.
#[derive(Default)]
pub struct Groups {
    pub day: GroupIndex,
    pub week: GroupIndex,
    pub month: GroupIndex,
    pub hours: Hours,
    pub model: GroupIndex,
    pub agent: GroupIndex,
    pub project: GroupIndex,
}

/// Groups by name. Rows come ordered by session and turn, so comparing with the last session and
/// turn of a group is enough to count distinct ones.
#[derive(Default)]
pub struct GroupIndex {
    list: Vec<GroupEntry>,
    by_name: FxHashMap<String, usize>,
    nameless: Option<usize>,
}

#[derive(Default)]
pub struct GroupEntry {
    pub group: GroupFigures,
    session: Option<RowId>,
    turn: Option<RowId>,
}

impl GroupIndex {
    pub fn of(&mut self, name: Option<&str>) -> &mut GroupEntry {
        let existing = match name {
            Some(name) => self.by_name.get(name).copied(),
            None => self.nameless,
        };
        let at = existing.unwrap_or_else(|| {
            let new = self.list.len();
            let name = name.map(str::to_owned);
            if let Some(name) = name.clone() {
                self.by_name.insert(name, new);
            } else {
                self.nameless = Some(new);
            }
            self.list.push(GroupEntry {
                group: GroupFigures { name, ..GroupFigures::default() },
                ..GroupEntry::default()
            });
            new
        });
        &mut self.list[at]
    }

    /// In the order of their names; the group without a name last.
    pub fn into_list_by_name(self) -> Vec<GroupFigures> {
        let mut list: Vec<GroupFigures> = self.list.into_iter().map(|seen| seen.group).collect();
        list.sort_by(|one, other| {
            (one.name.is_none(), &one.name).cmp(&(other.name.is_none(), &other.name))
        });
        list
    }

    /// Most tokens first.
    pub fn into_list(self) -> Vec<GroupFigures> {
        let mut list: Vec<GroupFigures> = self.list.into_iter().map(|seen| seen.group).collect();
        list.sort_by(|one, other| {
            let rank =
                |group: &GroupFigures| (group.usage.tokens.total(), group.turns, group.sessions);
            rank(other).cmp(&rank(one)).then_with(|| one.name.cmp(&other.name))
        });
        list
    }
}

impl GroupEntry {
    pub fn count(&mut self, session: RowId, turn: Option<RowId>, calls: &Calls) {
        if self.session.replace(session) != Some(session) {
            self.group.sessions += 1;
        }
        if turn.is_some() && self.turn != turn {
            self.turn = turn;
            self.group.turns += 1;
        }
        self.group.steps += calls.count;
        calls.add_to(&mut self.group.usage);
    }
}

/// Model calls.
#[derive(Default)]
pub struct Calls {
    pub count: u64,
    used: Usage,
    estimated_usd: Option<f64>,
    unpriced: u64,
    /// The estimate counts: no agent reports the cost of these calls.
    is_estimated: bool,
}

impl Calls {
    /// No calls yet, of a session whose cost is known like this.
    pub fn of_session(cost: SessionCost) -> Calls {
        Calls { is_estimated: cost.is_estimated(), ..Calls::default() }
    }

    /// One call. A call without tokens needs no price.
    pub fn one(used: Usage, price: Option<Price>) -> Calls {
        let unpriced = u64::from(price.is_none() && used != Usage::default());
        let estimated_usd = price.map(|price| price.of(&used));
        Calls { count: 1, used, estimated_usd, unpriced, is_estimated: true }
    }

    pub fn add(&mut self, other: &Calls) {
        self.count += other.count;
        self.used.add(other.used);
        self.unpriced += other.unpriced;
        self.estimated_usd = sum(self.estimated_usd, other.estimated_usd);
    }

    pub fn add_to(&self, usage_totals: &mut UsageFigures) {
        usage_totals.tokens.add(self.used);
        usage_totals.unpriced_steps += self.unpriced;
        usage_totals.estimated_cost_usd = sum(usage_totals.estimated_cost_usd, self.estimated_usd);
        if self.is_estimated && self.estimated_usd.is_some() {
            usage_totals.spent_usd = sum(usage_totals.spent_usd, self.estimated_usd);
            usage_totals.is_estimated = true;
        }
    }

    pub fn tokens(&self) -> u64 {
        self.used.total()
    }
}

/// The hours of the week.
#[derive(Default)]
pub struct Hours(Vec<HourFigures>);

const HOUR_MS: i64 = 3_600_000;
const HOURS_PER_DAY: i64 = 24;
const HOURS_PER_WEEK: i64 = 7 * HOURS_PER_DAY;
/// The first hour of 1970 was on a Thursday.
const FIRST_HOUR: i64 = 3 * HOURS_PER_DAY;

impl Hours {
    pub fn count(&mut self, milliseconds: i64, is_turn: bool, calls: &Calls) {
        let nth = (milliseconds.div_euclid(HOUR_MS) + FIRST_HOUR).rem_euclid(HOURS_PER_WEEK);
        if self.0.is_empty() {
            let hours = (0..7).flat_map(|day| (0..24).map(move |hour| (day, hour)));
            let empty =
                |(day, hour)| HourFigures { weekday: day + 1u8, hour, ..Default::default() };
            self.0 = hours.map(empty).collect();
        }
        let figures = &mut self.0[nth as usize];
        figures.turns += u64::from(is_turn);
        figures.steps += calls.count;
        figures.tokens = figures.tokens.saturating_add(calls.tokens());
    }

    pub fn into_list(mut self) -> Vec<HourFigures> {
        self.0.retain(|hour| hour.turns > 0 || hour.steps > 0);
        self.0
    }
}

/// A cache of price lookups: there are thousands of calls of each model.
pub struct PriceCache<'a> {
    pub prices: &'a Prices,
    pub existing: FxHashMap<String, Option<Price>>,
}

impl PriceCache<'_> {
    pub fn of(&mut self, model: &str) -> Option<Price> {
        if let Some(price) = self.existing.get(model) {
            return *price;
        }
        let price = self.prices.of(model);
        self.existing.insert(model.to_owned(), price);
        price
    }
}
