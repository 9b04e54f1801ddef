//! What Claude Code adds to a prompt by itself: attachments of the log have the text of each and say
//! what it is. The request has several of them in one text, so they are looked for there.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use unspool_model::prompt::{Piece, PieceKind, Role};

use super::super::super::Fields;
use super::super::super::prompt_pieces::mark;

/// Texts of one request. More than these are of no use, and the state of a decoder must stay small.
const MAX_TEXTS: usize = 24;
const MAX_BYTES: usize = 128 * 1024;

const REMINDER_START: &str = "<system-reminder>\n";
const REMINDER_END: &str = "\n</system-reminder>";

/// The texts since the last request.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ContextTexts(VecDeque<ContextText>);

#[derive(Serialize, Deserialize)]
struct ContextText {
    kind: PieceKind,
    label: Option<String>,
    text: String,
}

impl ContextTexts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, record: &Fields<'_>) {
        let attachment = record.fields("attachment");
        let name = attachment.text("type").unwrap_or_default();
        let kind = kind_of_attachment(&name);
        // A file's own text comes first: it says more than the text around it.
        for file in attachment.list("files") {
            self.push(kind, file.string("path"), file.string("content"));
        }
        let label = if attachment.has("files") {
            None
        } else {
            let named = attachment.string("hookName").or_else(|| attachment.string("filename"));
            named.or_else(|| Some(name.replace('_', " ")))
        };
        for rendered in record.list("rendered") {
            self.push(kind, label.clone(), rendered.string("content"));
        }
    }

    fn push(&mut self, kind: PieceKind, label: Option<String>, text: Option<String>) {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return };
        self.0.push_back(ContextText { kind, label, text });
        // The newest ones count: a log may have no request for long.
        let mut bytes: usize = self.0.iter().map(|held| held.text.len()).sum();
        while self.0.len() > MAX_TEXTS || bytes > MAX_BYTES {
            let Some(oldest) = self.0.pop_front() else { break };
            bytes -= oldest.text.len();
        }
    }

    /// Marks the texts that stand in a piece. A piece that is one of them has its kind.
    pub fn mark(&self, piece: &mut Piece, whole: &str) {
        for held in &self.0 {
            let inner = held.text.strip_prefix(REMINDER_START).unwrap_or(&held.text);
            let inner = inner.strip_suffix(REMINDER_END).unwrap_or(inner);
            if whole == held.text || whole == inner {
                piece.kind = held.kind;
                piece.label = held.label.clone().filter(|_| piece.spans.is_empty());
                continue;
            }
            let label = held.label.clone();
            if !mark(piece, whole, &held.text, held.kind, label.clone()) {
                mark(piece, whole, inner, held.kind, label);
            }
        }
    }
}

fn kind_of_attachment(name: &str) -> PieceKind {
    match name {
        "environment" | "model" | "session_context" | "date" => PieceKind::Environment,
        "instructions" => PieceKind::Instructions,
        "agent_listing_delta" => PieceKind::Agents,
        "skill_listing" => PieceKind::Skills,
        "mcp_instructions_delta" => PieceKind::McpInstructions,
        "file" => PieceKind::File,
        "queued_command" => PieceKind::UserInstruction,
        hook if hook.starts_with("hook_") => PieceKind::Hook,
        _ => PieceKind::Reminder,
    }
}

/// The kind of a text that no attachment explains.
pub(super) fn kind_of(role: Role, text: &str) -> PieceKind {
    match role {
        Role::System | Role::Developer => PieceKind::Reminder,
        Role::User if text.starts_with("<system-reminder>") => PieceKind::Reminder,
        Role::User if text.starts_with("This session is being continued from a previous") => {
            PieceKind::Summary
        }
        Role::User => PieceKind::UserInstruction,
        Role::Assistant => PieceKind::HistoryText,
        Role::Head => PieceKind::Policy,
    }
}
