//! The parts that a model writes piece by piece: its text to the user and its reasoning. Deltas
//! extend them while they are open.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Text from the model to the user.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    /// Still growing.
    pub open: bool,
    /// Citations as the source gave them.
    pub citations: Vec<Json>,
}

/// The model's reasoning. A redacted block has no text and `redacted` set.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: String,
    /// Still growing.
    pub open: bool,
    pub redacted: bool,
    /// The vendor's signature, or the encrypted content of a redacted block.
    pub signature: Option<String>,
    /// The provider that signed it, if the source names one (`openai`). Otherwise inferred from
    /// the agent: most agents run the models of one provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    pub duration_ms: Option<u64>,
}
