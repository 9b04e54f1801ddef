//! How much of a budget is spent, in words.

use serde::{Deserialize, Serialize};

use super::format;
use crate::block::Tone;

/// The share from which a reader is warned.
const WARN_SHARE: f64 = 0.8;

/// A budget that is nearly or completely spent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BudgetUse {
    /// The project that it is for; None for all of them together.
    pub project: Option<String>,
    /// Dollars today.
    pub spent_usd: f64,
    pub limit_usd: f64,
    /// A part of the sum is estimated from list prices.
    pub is_estimated: bool,
}

impl BudgetUse {
    /// True from 80 % on.
    pub fn is_worth_a_warning(&self) -> bool {
        self.limit_usd > 0.0 && self.spent_usd >= self.limit_usd * WARN_SHARE
    }

    pub fn is_over(&self) -> bool {
        self.spent_usd >= self.limit_usd
    }

    pub fn tone(&self) -> Tone {
        if self.is_over() { Tone::Failed } else { Tone::Warning }
    }

    /// `Daily budget: $17.20 of $20.00 (86 %)`.
    pub fn sentence(&self) -> String {
        let percent = (self.spent_usd / self.limit_usd * 100.0).floor();
        let spent = format::cost(self.spent_usd, self.is_estimated);
        let limit = format::cost(self.limit_usd, false);
        let state = if self.is_over() { "Daily budget used up" } else { "Daily budget" };
        let project =
            self.project.as_deref().map(|path| format!(" for {}", format::first_line(path, 80)));
        format!("{state}{}: {spent} of {limit} ({percent} %)", project.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_warns_from_80_percent_on() {
        let used = |spent_usd| BudgetUse {
            project: None,
            spent_usd,
            limit_usd: 20.0,
            is_estimated: false,
        };
        assert!(!used(15.99).is_worth_a_warning());
        assert!(used(16.0).is_worth_a_warning() && !used(16.0).is_over());
        assert_eq!(used(17.2).sentence(), "Daily budget: $17.20 of $20.00 (86 %)");
        assert_eq!(used(20.5).sentence(), "Daily budget used up: $20.50 of $20.00 (102 %)");
        let project =
            BudgetUse { project: Some("/w/app".into()), is_estimated: true, ..used(19.0) };
        assert_eq!(project.sentence(), "Daily budget for /w/app: ~$19.00 of $20.00 (95 %)");
    }
}
