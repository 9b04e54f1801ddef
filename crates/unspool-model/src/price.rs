//! Token prices: a dated table of list prices, overridden by the user's own prices. A cost that an
//! agent reports is authoritative if it is for all tokens of the session; the estimate computed here
//! is shown beside it. Otherwise the estimate takes its place.

mod list_prices;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::session::Usage;

use list_prices::{LIST_PRICES, ListPrice};

/// US dollars per million tokens, by kind.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Cache reads. Defaults to `input`.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Cache writes. Defaults to `input`.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Cache writes with a one-hour lifetime. Defaults to `cache_write`.
    #[serde(default)]
    pub cache_write_1h: Option<f64>,
}

impl Price {
    pub fn of(&self, usage: &Usage) -> f64 {
        let cache_write = self.cache_write.unwrap_or(self.input);
        let hour = usage.cache_write_1h.min(usage.cache_write);
        let counts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write - hour, cache_write),
            (hour, self.cache_write_1h.unwrap_or(cache_write)),
        ];
        counts.into_iter().map(|(count, price)| count as f64 * price).sum::<f64>() / 1e6
    }

    /// True if every figure is finite and not negative.
    pub fn is_valid(&self) -> bool {
        let figures = [self.cache_read, self.cache_write, self.cache_write_1h];
        let figures = figures.into_iter().flatten().chain([self.input, self.output]);
        figures.into_iter().all(|price| price.is_finite() && price >= 0.0)
    }
}

/// Prices by model: the user's own first, then the list.
#[derive(Clone, PartialEq, Debug)]
pub struct Prices {
    own: BTreeMap<String, Price>,
    listed: &'static [ListPrice],
}

impl Default for Prices {
    fn default() -> Prices {
        Prices::listed()
    }
}

impl Prices {
    /// Date of the list.
    pub const AS_OF: &'static str = "2026-11-15";

    pub fn listed() -> Prices {
        Prices { own: BTreeMap::new(), listed: LIST_PRICES }
    }

    /// No prices at all.
    pub fn none() -> Prices {
        Prices { own: BTreeMap::new(), listed: &[] }
    }

    /// List prices plus the user's own, keyed by model name as agents write it.
    pub fn with(own: BTreeMap<String, Price>) -> Prices {
        Prices { own, listed: LIST_PRICES }
    }

    pub fn of(&self, model: &str) -> Option<Price> {
        if let Some(price) = self.own.get(model) {
            return Some(*price);
        }
        let plain = plain_name(model);
        if let Some(price) = self.own.get(&plain) {
            return Some(*price);
        }
        let found = self.listed.iter().find(|listed| listed.model == plain)?;
        Some(found.price)
    }
}

/// Strips what providers and agents add to a model name: the provider (`openai/`,
/// `us.anthropic.`), the variant (`[1m]`, `-v1:0`) and the date (`-20251001`, `-2025-08-07`,
/// `@20251001`, `-latest`).
fn plain_name(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let name = name.split(['[', '@', ':']).next().unwrap_or(&name);
    let name = match name.rfind("anthropic.") {
        Some(at) => &name[at + "anthropic.".len()..],
        None => name,
    };
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let name = name.strip_suffix("-v1").unwrap_or(name);
    let name = without_date(name);
    // Copilot writes `claude-opus-4.8`, Anthropic `claude-opus-4-8`.
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

fn without_date(name: &str) -> &str {
    let is_date = |end: &str| {
        let digits = end.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && end.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let cut = |length: usize| {
        let at = name.len().checked_sub(length)?;
        let (start, end) = (name.get(..at)?, name.get(at..)?.strip_prefix('-')?);
        is_date(end).then_some(start)
    };
    cut("-20251001".len()).or_else(|| cut("-2025-10-01".len())).unwrap_or(name)
}

/// A cost that an agent reports.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReportedCost {
    pub usd: f64,
    /// The tokens that the cost is for. `None` if the agent does not say: then it is taken to be
    /// for all of them. Claude Code writes both when a process ends, and some versions count only
    /// that process when a session is resumed.
    pub tokens: Option<Usage>,
}

impl ReportedCost {
    /// A cost without tokens.
    pub fn of_all(usd: f64) -> ReportedCost {
        ReportedCost { usd, tokens: None }
    }

    /// Of two reports for one session, the one for more tokens, else the larger one. Costs are
    /// running totals, so this does not depend on the order of the reports.
    #[must_use]
    pub fn join(self, other: ReportedCost) -> ReportedCost {
        let total = |cost: &ReportedCost| cost.tokens.map(|tokens| tokens.total());
        let kinds = |cost: &ReportedCost| {
            let tokens = cost.tokens.unwrap_or_default();
            let Usage { input, output, cache_read, cache_write, reasoning, cache_write_1h } =
                tokens;
            [input, output, cache_read, cache_write, reasoning, cache_write_1h]
        };
        let larger = total(&self).cmp(&total(&other)).then(self.usd.total_cmp(&other.usd));
        // The last comparison only keeps the result independent of the order.
        if larger.then(kinds(&self).cmp(&kinds(&other))).is_lt() { other } else { self }
    }

    fn covers(&self, used: &Usage) -> bool {
        self.tokens.is_none_or(|tokens| {
            tokens.input >= used.input
                && tokens.output >= used.output
                && tokens.cache_read >= used.cache_read
                && tokens.cache_write >= used.cache_write
        })
    }
}

/// Token usage by model, and the cost reported by the agent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Spending {
    /// The key is `None` for calls without a model name.
    by_model: BTreeMap<Option<String>, Usage>,
    reported: Option<ReportedCost>,
    /// The reported cost does not cover the sub-agents that it is also for.
    is_partial: bool,
}

/// What something cost, and how that is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cost {
    /// The agent reports it, for all tokens.
    Reported(f64),
    /// Computed from list prices: the agent reports none.
    Estimated(f64),
    /// Computed from list prices: what the agent reports is for fewer tokens than were used.
    EstimatedInstead(f64),
}

impl Cost {
    pub fn usd(self) -> f64 {
        match self {
            Cost::Reported(usd) | Cost::Estimated(usd) | Cost::EstimatedInstead(usd) => usd,
        }
    }

    pub fn is_estimated(self) -> bool {
        match self {
            Cost::Reported(_) => false,
            Cost::Estimated(_) | Cost::EstimatedInstead(_) => true,
        }
    }
}

impl Spending {
    /// Spending of one session. If the session has a single model, calls without a model name count
    /// for it.
    pub fn of_session<'a>(
        calls: impl IntoIterator<Item = (Option<&'a str>, Usage)>,
        reported: Option<ReportedCost>,
    ) -> Spending {
        let mut spending = Spending { reported, ..Spending::default() };
        for (model, usage) in calls {
            spending.take(model, usage);
        }
        if spending.by_model.len() == 2
            && let Some(usage) = spending.by_model.remove(&None)
        {
            spending.by_model.values_mut().for_each(|sum| sum.add(usage));
        }
        spending.by_model.retain(|_, usage| *usage != Usage::default());
        spending
    }

    fn take(&mut self, model: Option<&str>, usage: Usage) {
        self.by_model.entry(model.map(str::to_owned)).or_default().add(usage);
    }

    /// Adds the spending of another session.
    pub fn add(&mut self, other: &Spending) {
        for (model, usage) in &other.by_model {
            self.take(model.as_deref(), *usage);
        }
        let Some(cost) = other.reported else { return };
        let Some(held) = self.reported else {
            self.reported = Some(cost);
            return;
        };
        let tokens = held.tokens.zip(cost.tokens).map(|(mut sum, tokens)| {
            sum.add(tokens);
            sum
        });
        // Round to 1e-9 dollars: the order of summation must not change the result.
        let usd = ((held.usd + cost.usd) * 1e9).round() / 1e9;
        self.reported = Some(ReportedCost { usd, tokens });
    }

    /// The reported cost, if it is for all tokens.
    pub fn reported_usd(&self) -> Option<f64> {
        self.reported.filter(|_| self.is_covered()).map(|cost| cost.usd)
    }

    /// The reported cost, if it is for only a part of the tokens.
    pub fn partial_usd(&self) -> Option<f64> {
        self.reported.filter(|_| !self.is_covered()).map(|cost| cost.usd)
    }

    fn is_covered(&self) -> bool {
        !self.is_partial && self.reported.is_none_or(|cost| cost.covers(&self.used()))
    }

    /// Agents report the cost of a session and its sub-agents together. A report that is for fewer
    /// tokens than `family` used, which is this session and its sub-agents, is partial.
    pub fn check_against(&mut self, family: &Spending) {
        self.is_partial = !family.is_covered();
    }

    fn used(&self) -> Usage {
        let mut used = Usage::default();
        self.by_model.values().for_each(|usage| used.add(*usage));
        used
    }

    /// The cost to show: as reported if that is for all tokens, else by list price. `None` if
    /// neither is known.
    pub fn cost(&self, prices: &Prices) -> Option<Cost> {
        if let Some(usd) = self.reported_usd() {
            return Some(Cost::Reported(usd));
        }
        let usd = self.estimated_usd(prices)?;
        Some(match self.reported {
            Some(_) => Cost::EstimatedInstead(usd),
            None => Cost::Estimated(usd),
        })
    }

    /// The cost by list price. `None` if nothing was used or any model has no price: a partial sum
    /// would be mistaken for the total.
    pub fn estimated_usd(&self, prices: &Prices) -> Option<f64> {
        let priced = |(model, usage): (&Option<String>, &Usage)| {
            prices.of(model.as_deref()?).map(|price| price.of(usage))
        };
        let sum: f64 = self.by_model.iter().map(priced).sum::<Option<f64>>()?;
        (!self.by_model.is_empty()).then_some(sum)
    }
}

#[cfg(test)]
#[path = "price_tests.rs"]
mod tests;
