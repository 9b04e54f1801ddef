//! Tokens and costs: of each step, and of the whole trajectory, which count only if no step has any.

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::price::ReportedCost;
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::cost_sum::CostSum;
use super::super::{Emitter, Fields};

/// What the steps and the trajectory say about tokens and costs.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Metrics {
    has_tokens: bool,
    has_cost: bool,
    cost: CostSum,
    /// The first model call, and its turn. Totals go there: it stays the same while the trajectory
    /// grows, so that a larger total replaces a smaller one.
    first: Option<(Option<Name>, Name)>,
    /// `final_metrics`, which may stand before the steps.
    total: Usage,
    total_usd: Option<f64>,
}

impl Metrics {
    /// Reports a model call. The tokens of a step that was copied from another trajectory are counted
    /// there.
    pub fn report_step(
        &mut self,
        emit: &mut Emitter<'_>,
        turn: Option<Name>,
        step: &Name,
        fields: &Fields<'_>,
    ) {
        self.first.get_or_insert_with(|| (turn, step.clone()));
        let metrics = fields.fields("metrics");
        if fields.flag("is_copied_context") {
            self.has_tokens |= metrics.is_object();
            return;
        }
        let usage = usage(&metrics, ["prompt_tokens", "completion_tokens", "cached_tokens"]);
        if usage != Usage::default() {
            self.has_tokens = true;
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
        }
        let usd = cost(&metrics, "cost_usd");
        self.has_cost |= usd.is_some();
        self.cost.report(emit, usd, usage);
    }

    /// Notes the totals of a trajectory. Their cost includes that of its sub-agents, which is counted
    /// in their own sessions if they report it.
    pub fn note_totals(&mut self, fields: &Fields<'_>) {
        let metrics = fields.fields("final_metrics");
        if !metrics.is_object() {
            return;
        }
        let names = ["total_prompt_tokens", "total_completion_tokens", "total_cached_tokens"];
        self.total = usage(&metrics, names);
        self.total_usd = cost(&metrics, "total_cost_usd");
    }

    /// Takes the cost of sub-agents from the total.
    pub fn subtract_agents(&mut self, fields: &Fields<'_>) {
        let of_agent = |agent: Fields<'_>| cost(&agent.fields("final_metrics"), "total_cost_usd");
        let agents: f64 = fields.list("subagent_trajectories").filter_map(of_agent).sum();
        // To 1e-9 dollars: a difference of such sums is not exact.
        let rest = |usd: f64| ((usd - agents) * 1e9).round() / 1e9;
        self.total_usd = self.total_usd.map(rest).filter(|usd| *usd > 0.0);
    }

    /// Reports the totals, as far as the steps say nothing.
    pub fn report_totals(&mut self, emit: &mut Emitter<'_>) {
        if let Some(usd) = self.total_usd.take().filter(|_| !self.has_cost) {
            let cost = Some(ReportedCost::of_all(usd));
            let (project, branch, version) = (None, None, None);
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        }
        let usage = std::mem::take(&mut self.total);
        if self.has_tokens || usage == Usage::default() {
            return;
        }
        if let Some((turn, step)) = self.first.clone() {
            emit.turn = turn;
            emit.push(EventKind::UsageUpdated { step, usage });
            emit.turn = None;
        }
    }
}

/// Prompt tokens include those that were read from a cache and written to one.
fn usage(metrics: &Fields<'_>, [prompt, completion, cached]: [&str; 3]) -> Usage {
    let extra = metrics.fields("extra");
    let own = extra.fields("unspool");
    // Harbor's converters keep the field names of the agent.
    let other = |names: [&str; 2]| names.into_iter().find_map(|name| extra.number(name));
    let written = || other(["cache_creation_input_tokens", "cache_write_input_tokens"]);
    let thought = || other(["reasoning_output_tokens", "reasoning_tokens"]);
    let cache_write = own.number("cache_write_tokens").or_else(written).unwrap_or(0);
    let cache_read = metrics.number(cached).unwrap_or(0);
    let of_prompt = metrics.number(prompt).unwrap_or(0);
    let input = of_prompt.saturating_sub(cache_read).saturating_sub(cache_write);
    Usage {
        input,
        output: metrics.number(completion).unwrap_or(0),
        cache_read,
        // More than there were prompt tokens means that the prompt does not include them.
        cache_write: cache_write.min(of_prompt.saturating_sub(cache_read)),
        reasoning: own.number("reasoning_tokens").or_else(thought).unwrap_or(0),
        ..Usage::default()
    }
}

fn cost(metrics: &Fields<'_>, name: &str) -> Option<f64> {
    metrics.read::<f64>(name).filter(|usd| usd.is_finite() && *usd > 0.0)
}
