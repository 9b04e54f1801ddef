//! The calls of a session in their order. A log and the requests themselves may both have a call: then
//! one of the two counts, the one that is known whole.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::prompt::{CallPrompt, PromptTree};
use unspool_model::provenance::Name;
use unspool_store::store::StepRequest;

/// Which calls of a tree count, and the steps that answer them.
#[derive(Default)]
pub(super) struct CallOrder {
    /// By their requests. `None`: all calls of the tree, as they were recorded.
    order: Option<Vec<Arc<str>>>,
    steps: FxHashMap<Arc<str>, StepRequest>,
    /// The calls that count instead of others.
    instead: FxHashMap<Arc<str>, Arc<str>>,
}

impl CallOrder {
    pub fn new(tree: &PromptTree, requests: Vec<StepRequest>) -> CallOrder {
        let mut calls = CallOrder::default();
        let mut by_name: FxHashMap<Name, StepRequest> = FxHashMap::default();
        for step in requests {
            if let Some(request) = step.request.clone() {
                calls.steps.insert(request, step.clone());
            }
            by_name.insert(step.name.clone(), step);
        }
        let mut left_out: FxHashSet<Arc<str>> = FxHashSet::default();
        let mut is_mixed = false;
        for call in tree.calls() {
            let Some(name) = call.answered_by() else { continue };
            is_mixed = true;
            let Some(step) = by_name.get(name) else { continue };
            let request = &call.call().request;
            let logged = step.request.as_ref().filter(|logged| tree.call(logged).is_some());
            let counts = tree.call_of_step(step.request.as_deref(), name);
            let is_sent = counts.is_some_and(|counts| counts.call().request == *request);
            match logged {
                Some(logged) if is_sent => {
                    calls.instead.insert(logged.clone(), request.clone());
                    left_out.insert(logged.clone());
                }
                Some(logged) => {
                    calls.instead.insert(request.clone(), logged.clone());
                    left_out.insert(request.clone());
                }
                None => {}
            }
            calls.steps.insert(request.clone(), step.clone());
        }
        if is_mixed {
            // Each source has its own order, and they may be read in any: the time decides.
            let counts = tree.calls().filter(|call| !left_out.contains(&call.call().request));
            let mut order: Vec<_> =
                counts.map(|call| (call.call().at, call.call().request.clone())).collect();
            order.sort();
            calls.order = Some(order.into_iter().map(|(_, request)| request).collect());
        }
        calls
    }

    /// The calls that count, in the order in which they were made.
    pub fn of<'a>(&'a self, tree: &'a PromptTree) -> impl Iterator<Item = CallPrompt<'a>> {
        let all = self.order.is_none().then(|| tree.calls());
        let listed = self.order.iter().flatten().filter_map(|request| tree.call(request));
        all.into_iter().flatten().chain(listed)
    }

    /// The call with this request, or the one that counts instead.
    pub fn shown<'a>(&self, tree: &'a PromptTree, request: &str) -> Option<CallPrompt<'a>> {
        tree.call(self.instead.get(request).map_or(request, |request| request))
    }

    /// The step that answers a call.
    pub fn step(&self, call: &CallPrompt<'_>) -> Option<&StepRequest> {
        self.steps.get(&call.call().request)
    }
}
