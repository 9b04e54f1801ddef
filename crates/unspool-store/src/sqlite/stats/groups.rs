//! The groups of the statistics (by day, model, agent and project), and the model calls that are
//! counted in them.

use rustc_hash::FxHashMap;
use unspool_model::price::{Price, Prices};
use unspool_model::session::Usage;

use crate::rows::RowId;
use crate::stats::{GroupFigures, UsageFigures};

/// The groups of the first pass.
#[derive(Default)]
pub struct Groups {
    pub day: GroupIndex,
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
}

impl Calls {
    /// One call. A call without tokens needs no price.
    pub fn one(used: Usage, price: Option<Price>) -> Calls {
        let unpriced = u64::from(price.is_none() && used != Usage::default());
        Calls { count: 1, used, estimated_usd: price.map(|price| price.of(&used)), unpriced }
    }

    pub fn add(&mut self, other: &Calls) {
        self.count += other.count;
        self.used.add(other.used);
        self.unpriced += other.unpriced;
        if let Some(cost) = other.estimated_usd {
            self.estimated_usd = Some(self.estimated_usd.unwrap_or(0.0) + cost);
        }
    }

    pub fn add_to(&self, usage_totals: &mut UsageFigures) {
        usage_totals.tokens.add(self.used);
        usage_totals.unpriced_steps += self.unpriced;
        if let Some(cost) = self.estimated_usd {
            usage_totals.estimated_cost_usd =
                Some(usage_totals.estimated_cost_usd.unwrap_or(0.0) + cost);
        }
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
