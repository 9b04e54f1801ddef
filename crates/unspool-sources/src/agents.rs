//! The supported agents: names, titles, and the range of versions covered by recorded fixtures.

/// A supported agent.
pub struct Agent {
    /// Its name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// The oldest and the newest recorded version. `None` for a format that many programs write,
    /// which has no versions and no log folder of its own.
    pub recorded: Option<(&'static str, &'static str)>,
}

pub static AGENTS: &[Agent] = &[
    Agent { name: "claude-code", title: "Claude Code", recorded: Some(("1.0.100", "2.1.325")) },
    Agent { name: "codex", title: "Codex", recorded: Some(("0.166.0", "0.166.0")) },
    Agent { name: "opencode", title: "OpenCode", recorded: Some(("1.18.33", "1.18.33")) },
    Agent { name: "copilot", title: "GitHub Copilot CLI", recorded: Some(("1.0.102", "1.0.102")) },
    Agent { name: "gemini", title: "Gemini CLI", recorded: Some(("0.61.0", "0.61.0")) },
    Agent { name: "ai-sdk", title: "Vercel AI SDK", recorded: None },
    Agent { name: "thoughtflow", title: "ThoughtFlow", recorded: None },
    Agent { name: "rows", title: "Rows of flat history", recorded: None },
];

/// How a version compares with the recorded range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionAge {
    Older,
    Recorded,
    Newer,
}

impl Agent {
    pub fn named(name: &str) -> Option<&'static Agent> {
        AGENTS.iter().find(|agent| agent.name == name)
    }

    pub fn version_age(&self, version: &str) -> VersionAge {
        let Some((oldest, newest)) = self.recorded else { return VersionAge::Recorded };
        let version = numbers(version);
        if version < numbers(oldest) {
            VersionAge::Older
        } else if version > numbers(newest) {
            VersionAge::Newer
        } else {
            VersionAge::Recorded
        }
    }
}

/// The numeric components of a version (`2.1.325-beta` → `[2, 1, 325]`), for comparison.
fn numbers(version: &str) -> Vec<u64> {
    let digits = |piece: &str| piece.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').map(|piece| digits(piece).parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        let claude = Agent::named("claude-code").unwrap();
        for version in ["1.0.100", "2.0.30", "2.1.9", "2.1.325"] {
            assert_eq!(claude.version_age(version), VersionAge::Recorded, "{version}");
        }
        assert_eq!(claude.version_age("2.1.1000"), VersionAge::Newer);
        assert_eq!(claude.version_age("3.0.0-beta"), VersionAge::Newer);
        assert_eq!(claude.version_age("1.0.99"), VersionAge::Older);
        assert_eq!(claude.version_age("odd"), VersionAge::Older);
        assert!(Agent::named("nobody").is_none());
    }
}
