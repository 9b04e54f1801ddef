//! The programs that write this format: OpenCode, and Kilo, which is made from it.

use serde::{Deserialize, Serialize};

/// The program that wrote a session.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::decode) enum Product {
    #[default]
    OpenCode,
    Kilo,
}

impl Product {
    pub(super) fn is_default(&self) -> bool {
        *self == Product::default()
    }

    /// Its name in the table of agents.
    pub(super) fn agent(self) -> &'static str {
        match self {
            Product::OpenCode => super::NAME,
            Product::Kilo => "kilo",
        }
    }

    /// The title of context that the program added for the model.
    pub(super) fn context_title(self) -> String {
        let program = match self {
            Product::OpenCode => "OpenCode",
            Product::Kilo => "Kilo",
        };
        format!("Added by {program}")
    }
}
