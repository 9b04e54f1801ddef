//! The demo: recorded sessions in a separate home folder, read like any other home.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use unspool_sources::discover::Environment;

macro_rules! recorded {
    ($($place:literal => $file:literal),* $(,)?) => {
        &[$(($place, include_bytes!(concat!("../../../fixtures/", $file)))),*]
    };
}

/// The path of each log in the demo's home, and its content.
const LOGS: &[(&str, &[u8])] = recorded! {
    ".claude/projects/-home-dev-weather-app/112b2623-935f-4249-9e9a-c45c61ba0d98.jsonl"
        => "claude-code/discovery-loop/log.jsonl",
    ".claude/projects/-home-dev-weather-app/466998a9-dd7d-467f-8976-b1e20d65bae5.jsonl"
        => "claude-code/subagents-parallel-and-background/log.jsonl",
    ".claude/projects/-home-dev-weather-app/466998a9-dd7d-467f-8976-b1e20d65bae5/subagents/agent-a177c218b9dc9b54b.jsonl"
        => "claude-code/subagents-parallel-and-background/subagents/agent-a177c218b9dc9b54b.jsonl",
    ".claude/projects/-home-dev-weather-app/466998a9-dd7d-467f-8976-b1e20d65bae5/subagents/agent-a482842dbe7ff6541.jsonl"
        => "claude-code/subagents-parallel-and-background/subagents/agent-a482842dbe7ff6541.jsonl",
    ".claude/projects/-home-dev-weather-app/466998a9-dd7d-467f-8976-b1e20d65bae5/subagents/agent-ab8fb9d0dda59d2e2.jsonl"
        => "claude-code/subagents-parallel-and-background/subagents/agent-ab8fb9d0dda59d2e2.jsonl",
    ".claude/projects/-home-dev-weather-app/question.jsonl" => "claude-code/question-answered/log.jsonl",
    ".claude/projects/-home-dev-weather-app/odd-output.jsonl" => "claude-code/odd-output/log.jsonl",
    ".claude/projects/-home-dev-weather-app/images.jsonl" => "claude-code/images-read-by-tools/log.jsonl",
    ".claude/projects/-home-dev-weather-app/plan.jsonl" => "claude-code/plan-approved/log.jsonl",
    ".codex/sessions/2026/11/15/rollout-discovery.jsonl" => "codex/discovery-loop/log.jsonl",
    ".copilot/session-state/discovery/events.jsonl" => "copilot/discovery-loop/log.jsonl",
    ".gemini/tmp/weather-app/chats/session-discovery.jsonl" => "gemini/discovery-loop/log.jsonl",
};

/// Writes the demo's home below the folder and returns the environment that reads it. Existing
/// files are kept, because a demo session may grow.
pub fn write_demo(folder: &Path) -> Result<Environment> {
    let home = folder.join("home");
    for (place, log) in LOGS {
        let path = home.join(place);
        if path.exists() {
            continue;
        }
        let parent = path.parent().unwrap_or(&home);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, log))
            .with_context(|| format!("cannot write the demo to {}", path.display()))?;
    }
    Ok(Environment { home: Some(home), ..Environment::default() })
}
