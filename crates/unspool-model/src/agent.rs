//! What views and exports must know about an agent that no event carries: whose models it runs, what
//! its ids are, what its log loses, what is known of its prompts. `agent/table.rs` has a row for each
//! agent; one without a row has the default. Everything else about agents is in `unspool-sources`,
//! which those crates do not see.

pub(crate) mod table;

/// A model provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provider {
    Anthropic,
    OpenAi,
    Google,
}

/// Facts about an agent's sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgentTraits {
    /// The provider of its models, if it runs those of one provider.
    pub provider: Option<Provider>,
    pub step_names: StepNames,
    pub model_input: ModelInput,
    pub call_ids: CallIds,
    pub log_detail: LogDetail,
    pub call_times: CallTimes,
}

/// What the duration that an agent reports of a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CallTimes {
    /// How long the tool ran.
    #[default]
    OfTool,
    /// From the call to its result: a permission that stood open in between counts too.
    WithPermission,
}

/// Whether an agent's log has everything that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogDetail {
    #[default]
    Complete,
    /// The agent does not write down all of it: what it loses, in words for people. Its sessions
    /// are never better than partial.
    Partial(&'static str),
}

impl LogDetail {
    /// What the agent does not write down.
    pub fn loss(self) -> Option<&'static str> {
        match self {
            LogDetail::Complete => None,
            LogDetail::Partial(loss) => Some(loss),
        }
    }
}

/// What the names of an agent's steps are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StepNames {
    /// The provider's response ids.
    #[default]
    ResponseIds,
    /// Ids of the agent or of its decoder.
    OwnIds,
}

/// What a model reads of a tool call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ModelInput {
    /// `Tool::output`. Coding agents keep more in `Tool::result` than they pass on.
    #[default]
    Output,
    /// `Tool::result`.
    Result,
}

/// What the call ids of an agent's parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CallIds {
    /// The agent's own ids.
    #[default]
    Own,
    /// `message/call`: providers restart call ids in each message, so the decoder adds the message.
    /// Stored parts keep this form, because it links parts to calls within a session.
    WithMessage,
}

/// The id that the agent itself gave to a call: what people and other programs see.
pub fn own_call_id<'a>(agent: &str, call_id: &'a str) -> &'a str {
    match AgentTraits::of(agent).call_ids {
        CallIds::Own => call_id,
        CallIds::WithMessage => call_id.split_once('/').map_or(call_id, |(_, own)| own),
    }
}

impl AgentTraits {
    pub fn of(agent: &str) -> AgentTraits {
        table::of(agent).map(|row| row.traits).unwrap_or_default()
    }

    /// The names of the agents that have a row.
    pub fn listed() -> impl Iterator<Item = &'static str> {
        table::AGENTS.iter().map(|row| row.name)
    }
}

impl Provider {
    /// The value of `gen_ai.provider.name` in OpenTelemetry.
    pub fn otel_name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Google => "gcp.gemini",
        }
    }

    /// The key of its metadata in the AI SDK.
    pub fn ai_sdk_key(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Google => "google",
        }
    }
}

/// The fields in which providers store a reasoning signature, or the encrypted content of a
/// redacted block, in AI SDK metadata.
pub const SIGNATURE_FIELDS: [&str; 5] = [
    "signature",
    "redactedData",
    "thoughtSignature",
    "reasoningEncryptedContent",
    "reasoningOpaque",
];

/// The field of `SIGNATURE_FIELDS` that a provider uses, by its AI SDK key.
pub fn signature_field(signer: &str, redacted: bool) -> &'static str {
    match signer {
        "openai" | "azure" => "reasoningEncryptedContent",
        "google" | "vertex" => "thoughtSignature",
        "copilot" => "reasoningOpaque",
        // Anthropic, and providers that use its names.
        _ if redacted => "redactedData",
        _ => "signature",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_a_decoder_composed_are_taken_apart() {
        assert_eq!(own_call_id("opencode", "msg_1/call_2"), "call_2");
        assert_eq!(own_call_id("opencode", "msg_1/functions/read:0"), "functions/read:0");
        assert_eq!(own_call_id("opencode", ""), "");
        assert_eq!(own_call_id("ai-sdk", "msg_1/call_2"), "msg_1/call_2");
    }

    #[test]
    fn what_is_written_for_a_signer_is_read_again() {
        for signer in ["openai", "azure", "google", "vertex", "copilot", "anthropic", "other"] {
            for redacted in [false, true] {
                assert!(SIGNATURE_FIELDS.contains(&signature_field(signer, redacted)), "{signer}");
            }
        }
        let keys = [Provider::Anthropic, Provider::OpenAi, Provider::Google];
        assert_eq!(
            keys.map(|provider| signature_field(provider.ai_sdk_key(), false)),
            ["signature", "reasoningEncryptedContent", "thoughtSignature"]
        );
    }
}
