//! The objects of the format, with exactly the fields that we write: the format forbids others.

use serde::Serialize;
use serde_json::{Map, Value, json};
use unspool_model::json::Json;
use unspool_model::session::Usage;

use super::prompt_tokens;

#[derive(Serialize)]
pub struct Step {
    pub step_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    pub source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_copied_context: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_call_count: Option<u64>,
    pub extra: UnspoolExtra,
    /// For the sums.
    #[serde(skip)]
    pub usage: Usage,
}

impl Step {
    pub fn new(source: &'static str, message: String, extra: Extra) -> Step {
        Step {
            step_id: 0,
            timestamp: None,
            source,
            model_name: None,
            message,
            reasoning_content: None,
            tool_calls: Vec::new(),
            observation: None,
            metrics: None,
            is_copied_context: None,
            llm_call_count: None,
            extra: UnspoolExtra { unspool: extra },
            usage: Usage::default(),
        }
    }
}

#[derive(Serialize)]
pub struct UnspoolExtra {
    pub unspool: Extra,
}

/// `extra.unspool` of a step.
#[derive(Serialize, Default)]
pub struct Extra {
    /// The number of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The trigger and the state of the turn, on its first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_state: Option<&'static str>,
    /// True for the prompt of the turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prompt: bool,
    /// Rewound: it happened, but later calls do not see it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    /// Continues the model call of the previous agent step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The parts of the step, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Json>,
}

#[derive(Serialize)]
pub struct ToolCall {
    pub tool_call_id: String,
    pub function_name: String,
    pub arguments: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

#[derive(Serialize, Default)]
pub struct Observation {
    pub results: Vec<ToolResult>,
}

#[derive(Serialize, Default)]
pub struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagent_trajectory_ref: Vec<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

#[derive(Serialize)]
pub struct Reference {
    pub trajectory_id: String,
    pub session_id: String,
    pub extra: Value,
}

#[derive(Serialize)]
pub struct Metrics {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

impl Metrics {
    pub fn of(usage: Usage, estimated: Option<f64>) -> Option<Metrics> {
        (usage != Usage::default()).then(|| Metrics {
            prompt_tokens: prompt_tokens(usage),
            completion_tokens: usage.output,
            cached_tokens: usage.cache_read,
            extra: extra_metrics(usage, estimated),
        })
    }
}

#[derive(Serialize)]
pub struct FinalMetrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    pub total_steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

/// Counts that the format has no field for, and the estimated cost: an estimate must not appear as
/// a reported cost.
pub fn extra_metrics(usage: Usage, estimated: Option<f64>) -> Option<Value> {
    let mut own = Map::new();
    if usage.cache_write > 0 {
        own.insert("cache_write_tokens".to_owned(), json!(usage.cache_write));
    }
    if usage.reasoning > 0 {
        own.insert("reasoning_tokens".to_owned(), json!(usage.reasoning));
    }
    if let Some(cost) = estimated.filter(|cost| cost.is_finite()) {
        own.insert("estimated_cost_usd".to_owned(), json!(cost));
    }
    (!own.is_empty()).then(|| json!({ "unspool": own }))
}
