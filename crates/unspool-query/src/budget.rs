//! What was spent today, compared with the budgets of the config file.

use std::collections::BTreeMap;

use jiff::Zoned;
use unspool_model::price::Prices;
use unspool_store::stats::{StatsRequest, UsageFigures};
use unspool_store::store::{StoreError, View};
use unspool_view::present::budget::BudgetUse;

/// Dollars per day.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Budgets {
    pub day_usd: Option<f64>,
    /// By the folder of a project. Projects below it count too.
    pub projects: BTreeMap<String, f64>,
}

/// The budgets that are nearly or completely spent today, in the time zone of `now`.
pub async fn warnings<V: View>(
    view: &V,
    budgets: &Budgets,
    prices: &Prices,
    now: &Zoned,
) -> Result<Vec<BudgetUse>, StoreError> {
    if budgets.day_usd.is_none() && budgets.projects.is_empty() {
        return Ok(Vec::new());
    }
    let midnight = now.start_of_day().map(|start| start.timestamp().as_millisecond());
    let request =
        StatsRequest { since: midnight.ok(), prices: prices.clone(), ..StatsRequest::default() };
    let stats = view.stats(request).await?;
    let used = |project: Option<String>, usage: &UsageFigures, limit_usd: f64| BudgetUse {
        project,
        spent_usd: usage.spent_usd.unwrap_or(0.0),
        limit_usd,
        is_estimated: usage.is_estimated,
    };
    let day = budgets.day_usd.map(|limit| used(None, &stats.totals.usage, limit));
    let projects = budgets.projects.iter().map(|(path, limit)| {
        let folder = path.trim_end_matches('/');
        let is_inside = |name: &str| {
            name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let groups = stats.by_project.iter();
        let groups = groups.filter(|group| group.name.as_deref().is_some_and(is_inside));
        let mut sum = used(Some(path.clone()), &UsageFigures::default(), *limit);
        for group in groups {
            sum.spent_usd += group.usage.spent_usd.unwrap_or(0.0);
            sum.is_estimated |= group.usage.is_estimated;
        }
        sum
    });
    Ok(day.into_iter().chain(projects).filter(BudgetUse::is_worth_a_warning).collect())
}
