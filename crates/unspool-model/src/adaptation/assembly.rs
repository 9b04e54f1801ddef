//! The text that an agent gets: the items that are enabled and in scope, in the order of the
//! catalogue, in a frame by which they are found again in what the agent recorded.

use std::path::Path;

use super::{Item, Trial};
use crate::id::sha256;

/// Characters of the whole frame. Claude Code cuts what a hook adds at 10,000.
pub const MAX_FRAME_CHARS: usize = 9000;
/// Characters of a frame beside its text and its ids.
const FRAME_CHARS: usize = 160;
/// Digits of the digest in a frame.
const DIGEST_CHARS: usize = 16;

/// Who gets a text. What is not known restricts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Audience<'a> {
    pub agent: Option<&'a str>,
    pub channel: Option<&'a str>,
    pub project: Option<&'a Path>,
    /// The agent's own id of the session, which decides trials. Without it there are none: an item
    /// on trial is left out.
    pub session: Option<&'a str>,
}

/// A text for a prompt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assembly {
    /// The texts, joined by newlines.
    pub text: String,
    /// The ids of the items in it.
    pub included: Vec<String>,
    /// Items that would make it too long.
    pub left_out: Vec<String>,
}

impl Trial {
    /// True if the session is one of those that get the item. Each item divides sessions differently,
    /// so that two trials at once do not explain each other.
    pub fn includes(self, item: &str, session: &str) -> bool {
        match self {
            Trial::Half => {
                let digest = sha256(format!("{item}\n{session}").as_bytes());
                digest.bytes().next().is_some_and(|digit| b"02468ace".contains(&digit))
            }
        }
    }
}

/// Puts together what an audience gets (R-002-36).
pub fn assemble<'a>(items: impl IntoIterator<Item = &'a Item>, to: &Audience<'_>) -> Assembly {
    let mut assembly = Assembly::default();
    let mut chars = FRAME_CHARS;
    for item in items {
        let content = item.content.trim();
        let in_trial = |trial: Trial| to.session.is_some_and(|id| trial.includes(&item.id, id));
        let is_included = item.enabled
            && !content.is_empty()
            && item.scope.matches(to.agent, to.channel, to.project)
            && item.trial.is_none_or(in_trial);
        if !is_included {
            continue;
        }
        let more = content.chars().count() + item.id.len() + 2;
        if chars + more > MAX_FRAME_CHARS {
            assembly.left_out.push(item.id.clone());
            continue;
        }
        chars += more;
        if !assembly.text.is_empty() {
            assembly.text.push('\n');
        }
        assembly.text.push_str(content);
        assembly.included.push(item.id.clone());
    }
    assembly
}

impl Assembly {
    /// The beginning of the SHA-256 of the text, as frames have it.
    pub fn digest(&self) -> String {
        frame_digest(&self.text)
    }

    /// The text in its frame; `None` if nothing is included.
    pub fn frame(&self, version: u64) -> Option<String> {
        let (ids, digest) = (self.included.join(" "), self.digest());
        (!self.included.is_empty()).then(|| {
            format!(
                "<unspool-adaptations version=\"{version}\" ids=\"{ids}\" sha256=\"{digest}\">\n{}\n\
                 </unspool-adaptations>",
                self.text
            )
        })
    }
}

/// The digest of a frame's text.
pub fn frame_digest(text: &str) -> String {
    let mut digest = sha256(text.as_bytes());
    digest.truncate(DIGEST_CHARS);
    digest
}
