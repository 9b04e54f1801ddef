//! The provider of a model. Sources do not use the names of the conventions, so the provider is
//! derived from the model name, or else from the agent.

use unspool_model::agent::{AgentTraits, Provider};

/// The value of `gen_ai.provider.name`.
pub fn of(model: Option<&str>, agent: &str) -> &'static str {
    let of_agent = || AgentTraits::of(agent).provider.map(Provider::otel_name);
    model.and_then(of_model).or_else(of_agent).unwrap_or("unknown")
}

fn of_model(model: &str) -> Option<&'static str> {
    let model = model.to_lowercase();
    // Bedrock names a region and a maker before the model: `us.anthropic.claude-…`.
    if model.contains("anthropic.claude") {
        return Some("aws.bedrock");
    }
    let name = model.rsplit('/').next().unwrap_or(&model);
    let prefixes = [
        ("claude", "anthropic"),
        ("gpt-", "openai"),
        ("chatgpt", "openai"),
        ("codex", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("gemini", "gcp.gemini"),
        ("mistral", "mistral_ai"),
        ("deepseek", "deepseek"),
        ("grok", "x_ai"),
        ("command", "cohere"),
    ];
    prefixes.into_iter().find(|(start, _)| name.starts_with(start)).map(|(_, provider)| provider)
}
