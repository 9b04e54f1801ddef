//! How a state looks: tones, icons and badges. They name meanings; painters and themes choose the
//! colours.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The meaning of a colour. R-003-50 and C-18 give the colours for two themes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    Pending,
    Running,
    Ok,
    Failed,
    Interrupted,
    Background,
    Muted,
    Accent,
    Warning,
    /// The person's own words.
    User,
    Added,
    Removed,
}

/// The icon of a state, as in R-003-51. Only `Running` may blink (C-18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Icon {
    Pending,
    Running,
    Completed,
    Failed,
    Interrupted,
    Background,
}

impl Icon {
    pub fn glyph(self) -> &'static str {
        match self {
            Icon::Pending => "○",
            Icon::Running => "◐",
            Icon::Completed | Icon::Interrupted => "●",
            Icon::Failed => "✕",
            Icon::Background => "⧈",
        }
    }

    pub fn tone(self) -> Tone {
        match self {
            Icon::Pending => Tone::Pending,
            Icon::Running => Tone::Running,
            Icon::Completed => Tone::Ok,
            Icon::Failed => Tone::Failed,
            Icon::Interrupted => Tone::Interrupted,
            Icon::Background => Tone::Background,
        }
    }
}

/// The status badge of a tool call (R-000-21).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Badge {
    pub word: Cow<'static, str>,
    pub tone: Tone,
    /// The exact state where the badge is less specific: denied, interrupted.
    pub state: Option<Cow<'static, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-003-51
    #[test]
    fn icons_say_the_state() {
        let icons = [
            (Icon::Pending, "○", Tone::Pending),
            (Icon::Running, "◐", Tone::Running),
            (Icon::Completed, "●", Tone::Ok),
            (Icon::Failed, "✕", Tone::Failed),
            (Icon::Interrupted, "●", Tone::Interrupted),
            (Icon::Background, "⧈", Tone::Background),
        ];
        for (icon, glyph, tone) in icons {
            assert_eq!((icon.glyph(), icon.tone()), (glyph, tone), "{icon:?}");
        }
    }
}
