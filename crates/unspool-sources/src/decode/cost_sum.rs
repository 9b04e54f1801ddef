//! The cost of a session, for sources that report the cost of each reply.

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::price::ReportedCost;
use unspool_model::session::Usage;

use super::Emitter;

/// The cost of all replies with a known price, and their tokens.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostSum {
    usd: f64,
    tokens: Usage,
}

impl CostSum {
    /// Adds a reply and reports the sum. A model without a price has no cost, or zero.
    pub fn report(&mut self, emit: &mut Emitter<'_>, usd: Option<f64>, used: Usage) {
        let Some(usd) = usd.filter(|usd| *usd > 0.0) else { return };
        self.usd += usd;
        self.tokens.add(used);
        let cost = Some(ReportedCost { usd: self.usd, tokens: Some(self.tokens) });
        let (project, branch, version) = (None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
    }
}
