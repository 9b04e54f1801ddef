//! The records around the conversation: Claude Code's context for the model at the start, its state
//! notes, and the marks at turn ends and compactions.

use std::fmt::Write as _;

use anyhow::Result;

use crate::random::Uuid;
use crate::session::Session;

/// The attachments at the start of a session, in order: type, fields, text as sent, its role.
const OPENING: [(&str, &str, &str); 4] = [
    (
        "{\"type\":\"deferred_tools_delta\",\"addedNames\":[\"CronCreate\",\"CronDelete\",\"CronList\",\
         \"EnterPlanMode\",\"EnterWorktree\",\"ExitPlanMode\"],\"addedLines\":[\"CronCreate\",\
         \"CronDelete\",\"CronList\",\"EnterPlanMode\",\"EnterWorktree\",\"ExitPlanMode\"],\
         \"removedNames\":[],\"wireHiddenNames\":[],\"readdedNames\":[],\"pendingMcpServers\":[],\
         \"failedMcpServers\":[]}",
        "The following deferred tools are now available via ToolSearch.",
        "system",
    ),
    (
        "{\"type\":\"agent_listing_delta\",\"addedTypes\":[\"claude\",\"Explore\",\
         \"general-purpose\",\"Plan\"],\"addedLines\":[\"- claude: Catch-all for any task (Tools: *)\",\
         \"- Explore: Read-only search agent\",\"- general-purpose: General-purpose agent\",\
         \"- Plan: Software architect agent\"],\"builtInTypes\":[\"claude\",\"Explore\",\
         \"general-purpose\",\"Plan\"],\"builtInPluginTypes\":[],\"removedTypes\":[],\
         \"isInitial\":true,\"showConcurrencyNote\":true}",
        "Available agent types for the Agent tool:\n- claude: Catch-all for any task",
        "system",
    ),
    (
        "{\"type\":\"skill_listing\",\"content\":\"- release-notes: Write release notes from the git \
         log.\",\"skillCount\":1,\"isInitial\":true,\"names\":[\"release-notes\"],\
         \"digests\":[\"c9eb2d6c13a15683\"]}",
        "The following skills are available for use with the Skill tool:\n\n- release-notes",
        "system",
    ),
    (
        "{\"type\":\"remote_session_change\",\"url\":null,\"commit\":\"Co-Authored-By: Claude \
         <noreply@anthropic.com>\",\"pr\":\"🤖 Generated with [Claude Code]\
         (https://claude.com/claude-code)\",\"sendUserFileHint\":false,\"managedCommit\":false,\
         \"managedPr\":false}",
        "Attribution for git commits and pull requests you create from here on",
        "user",
    ),
];

impl Session<'_> {
    /// Writes the context sent before the first reply.
    pub fn open_context(&mut self) -> Result<()> {
        let folder = self.workshop.folder.clone();
        let environment = format!(
            "{{\"type\":\"environment\",\"snapshot\":{{\"workingDirectory\":\"{folder}\",\
             \"isWorktree\":false,\"isGitRepo\":true,\"additionalWorkingDirectories\":[],\
             \"platform\":\"linux\",\"shell\":\"bash\",\"osVersion\":\"Linux 6.18.44\"}}}}"
        );
        self.attach(&environment, "# Environment\nYou have been invoked as follows", "system")?;
        let model = format!(
            "{{\"type\":\"model\",\"identity\":{{\"modelId\":\"{0}\",\"marketingName\":\"{0}\",\
             \"knowledgeCutoff\":\"June 2026\"}},\"text\":\"The exact model ID is {0}.\"}}",
            self.model
        );
        self.attach(&model, "You are powered by the model named below.", "system")?;
        for (attachment, sent, role) in OPENING {
            self.attach(attachment, sent, role)?;
        }
        let mut notes = "# Project notes\n\n".to_owned();
        self.workshop.sources.words.prose(&mut notes, &mut self.workshop.random, 60);
        let mut instructions = crate::json::Json::default();
        instructions.raw("{\"type\":\"instructions\",\"files\":[{\"path\":\"").inside(&folder);
        instructions.raw("/CLAUDE.md\",\"type\":\"Project\",\"content\":").text(&notes).raw("}]}");
        let instructions = String::from_utf8(instructions.0)?;
        self.attach(&instructions, &notes, "user")?;
        let today = self.now()[..10].to_owned();
        let date = format!("{{\"type\":\"date\",\"date\":\"{today}\"}}");
        self.attach(&date, &format!("Today's date is {today}."), "system")
    }

    pub fn attach(&mut self, attachment: &str, sent: &str, role: &str) -> Result<()> {
        let uuid = self.workshop.random.uuid();
        // Claude Code creates attachments before it timestamps their prompt.
        let time = self.earlier(self.workshop.random.clone().below(9) as i64);
        let parent = self.journal.parent;
        let line = self.journal.begin(parent, None);
        line.raw("\"attachment\":").raw(attachment).raw(",\"type\":\"attachment\",\"uuid\":\"");
        line.raw(uuid).raw("\",\"timestamp\":").text(&time);
        line.raw(",\"rendered\":[{\"content\":\"<system-reminder>\\n").inside(sent);
        line.raw("\\n</system-reminder>\"}],\"renderedRole\":").text(role).raw(",");
        Ok(self.journal.end(uuid)?)
    }

    /// Writes a record outside the tree: its type, and the fields between that and the session id.
    pub fn note(&mut self, kind: &str, fields: &str) -> Result<()> {
        let line = self.journal.begin_note();
        line.raw("{\"type\":").text(kind).raw(fields).raw(",\"sessionId\":\"").raw(self.id);
        line.raw("\"}");
        Ok(self.journal.close()?)
    }

    /// Writes the group of notes that Claude Code repeats on every save.
    pub fn note_state(&mut self) -> Result<()> {
        self.note_last_prompt()?;
        if self.is_interactive {
            self.note("mode", ",\"mode\":\"normal\"")?;
            self.note("permission-mode", ",\"permissionMode\":\"default\"")?;
        }
        self.note("atis-latch", ",\"atis\":\"\"")
    }

    pub fn note_last_prompt(&mut self) -> Result<()> {
        let Some(leaf) = self.journal.parent else { return Ok(()) };
        let line = self.journal.begin_note();
        line.raw("{\"type\":\"last-prompt\",\"lastPrompt\":").text(&self.last_prompt);
        line.raw(",\"leafUuid\":\"").raw(leaf).raw("\",\"sessionId\":\"").raw(self.id).raw("\"}");
        Ok(self.journal.close()?)
    }

    pub fn note_title(&mut self) -> Result<()> {
        let mut title = String::new();
        let words = self.workshop.random.between(3, 7);
        self.workshop.sources.words.prose(&mut title, &mut self.workshop.random, words);
        let mut fields = crate::json::Json::default();
        fields.raw(",\"aiTitle\":").text(title.trim_end_matches('.').trim());
        self.note("ai-title", &String::from_utf8(fields.0)?)
    }

    pub fn note_tool(&mut self, tool: &'static str) -> Result<()> {
        if self.tools_used.contains(&tool) {
            return Ok(());
        }
        self.tools_used.push(tool);
        let fields = format!(",\"tools\":[\"{}\"]", self.tools_used.join("\",\""));
        self.note("tools-used", &fields)
    }

    /// Writes a snapshot of the files before a prompt.
    pub fn note_snapshot(&mut self, message: &Uuid) -> Result<()> {
        let time = self.now();
        let line = self.journal.begin_note();
        line.raw("{\"type\":\"file-history-snapshot\",\"messageId\":\"").raw(message);
        line.raw("\",\"snapshot\":{\"messageId\":\"").raw(message);
        line.raw("\",\"trackedFileBackups\":{},\"timestamp\":").text(&time);
        line.raw("},\"isSnapshotUpdate\":false}");
        Ok(self.journal.close()?)
    }

    pub fn note_queue(&mut self, operation: &str, prompt: Option<&str>) -> Result<()> {
        let time = self.now();
        let line = self.journal.begin_note();
        line.raw("{\"type\":\"queue-operation\",\"operation\":").text(operation);
        line.raw(",\"timestamp\":").text(&time).raw(",\"sessionId\":\"").raw(self.id).raw("\"");
        if let Some(prompt) = prompt {
            line.raw(",\"content\":").text(prompt);
        }
        line.raw("}");
        Ok(self.journal.close()?)
    }

    /// Writes one logged request, in sessions that log them.
    pub fn note_request(&mut self, reference: &Uuid) -> Result<()> {
        let time = self.now();
        let mut hashes = String::new();
        self.workshop.random.hexadecimal(&mut hashes, 256);
        let (id, model) = (self.id, self.model);
        let line = self.journal.begin_note();
        line.raw("{\"type\":\"api-request\",\"sessionId\":\"").raw(id).raw("\",\"id\":\"");
        line.raw(reference).raw("\",\"timestamp\":").text(&time);
        line.raw(",\"version\":\"2.1.325\",\"querySource\":\"repl_main_thread\",\"shapeHash\":");
        line.text(&hashes[..64]).raw(",\"params\":{\"model\":").text(model).raw(
            ",\"betas\":[\"claude-code-20250219\",\"interleaved-thinking-2025-05-14\",\
             \"context-management-2025-06-27\",\"effort-2025-11-24\"],\"max_tokens\":128000,\
             \"thinking\":{\"type\":\"adaptive\",\"display\":\"updates\"},\
             \"output_config\":{\"effort\":\"medium\"}},\"keep\":0,\"tail\":[",
        );
        line.text(&hashes[64..128]).raw(",").text(&hashes[128..192]);
        line.raw(
            "],\"cacheControl\":[{\"path\":[\"system\",0],\"value\":{\"type\":\"ephemeral\"}}],",
        );
        line.raw("\"requestDigest\":").text(&hashes[192..]).raw("}");
        Ok(self.journal.close()?)
    }

    /// Writes a system record in the tree; `fields` starts with the subtype.
    pub fn write_system(&mut self, fields: &str) -> Result<()> {
        let uuid = self.workshop.random.uuid();
        let time = self.now();
        let parent = self.journal.parent;
        let line = self.journal.begin(parent, None);
        line.raw("\"type\":\"system\",").raw(fields).raw(",\"timestamp\":").text(&time);
        line.raw(",\"uuid\":\"").raw(uuid).raw("\",\"isMeta\":false,");
        Ok(self.journal.end(uuid)?)
    }

    /// Writes a compaction: a boundary without a parent, followed by a summary.
    pub fn compact(&mut self) -> Result<()> {
        self.pass(20_000);
        let uuid = self.workshop.random.uuid();
        let time = self.now();
        let before = self.context;
        let after = self.workshop.random.between(2_000, 9_000) as u64;
        let last = self.journal.parent;
        let line = self.journal.begin(None, None);
        if let Some(last) = last {
            line.raw("\"logicalParentUuid\":\"").raw(last).raw("\",");
        }
        let mut fields = String::new();
        let _ = write!(
            fields,
            "\"type\":\"system\",\"subtype\":\"compact_boundary\",\"content\":\"Conversation \
             compacted\",\"level\":\"info\",\"compactMetadata\":{{\"trigger\":\"auto\",\
             \"preTokens\":{before},\"postTokens\":{after},\"cumulativeDroppedTokens\":{},\
             \"durationMs\":20000,\"runningTurnPrompt\":{{}}}},\"uuid\":\"",
            before.saturating_sub(after)
        );
        line.raw(fields).raw(uuid).raw("\",\"timestamp\":").text(&time).raw(",");
        self.journal.end(uuid)?;
        let mut summary = "This session is being continued from a previous conversation that ran \
                           out of context. The summary below covers the earlier portion of the \
                           conversation.\n\nSummary:\n1. Primary Request and Intent:\n   "
            .to_owned();
        let words = self.workshop.random.between(300, 1100);
        self.workshop.sources.words.prose(&mut summary, &mut self.workshop.random, words);
        let uuid = self.workshop.random.uuid();
        let parent = self.journal.parent;
        let line = self.journal.begin(parent, Some(&self.prompt));
        line.raw("\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":").text(&summary);
        line.raw("},\"isVisibleInTranscriptOnly\":true,\"isCompactSummary\":true,\"uuid\":\"");
        line.raw(uuid).raw("\",\"timestamp\":").text(&time).raw(",");
        self.context = after;
        Ok(self.journal.end(uuid)?)
    }
}
