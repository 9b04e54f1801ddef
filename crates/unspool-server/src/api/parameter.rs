//! The query parameters of the routes under `/api`: their kinds, and those that several routes share.

use unspool_store::stats::csv::StatsTable;

/// One query parameter.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
    pub required: bool,
    pub what: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    Text,
    /// `2026-05-31`, `2026-05-31T12:00:00Z`, `36h`, `7d`, `2w`.
    Time,
    /// `1`, `true`, `0` or `false`.
    Flag,
    Number {
        min: u64,
        max: u64,
    },
    OneOf(&'static [&'static str]),
    /// `3`, or `3-7`.
    Span,
    /// Twenty characters.
    Id,
    /// Opaque, from a `Link` header.
    Cursor,
}

pub const fn optional(name: &'static str, kind: ParameterKind, what: &'static str) -> Parameter {
    Parameter { name, kind, required: false, what }
}

pub const fn required(name: &'static str, kind: ParameterKind, what: &'static str) -> Parameter {
    Parameter { name, kind, required: true, what }
}

pub const SDK: Parameter = optional(
    "sdk",
    ParameterKind::OneOf(&["5", "6", "7"]),
    "the AI SDK version of the client: 7 receives fields that older versions reject",
);
pub const REDACT: Parameter = optional(
    "redact",
    ParameterKind::Flag,
    "0 keeps what looks like a secret; the archive is never redacted",
);
/// Exports only.
pub const NOTES: Parameter = optional(
    "notes",
    ParameterKind::Flag,
    "1 includes the user's notes, in formats that have a place for them",
);
/// Adaptations only.
pub const PROJECT_FOLDER: Parameter = optional(
    "project",
    ParameterKind::Text,
    "the folder of a project, whose own adaptations count too",
);
pub const AGENT: Parameter =
    optional("agent", ParameterKind::Text, "only sessions of this agent: claude-code, codex, …");
pub const PROJECT: Parameter =
    optional("project", ParameterKind::Text, "only projects whose path contains this");
pub const SINCE: Parameter =
    optional("since", ParameterKind::Time, "only activity at or after this time");
pub const UNTIL: Parameter =
    optional("until", ParameterKind::Time, "only what started before this time");

pub const RULE: Parameter = optional(
    "rule",
    ParameterKind::OneOf(unspool_query::params::RULES),
    "only the findings of this rule",
);

/// The largest page of sessions, turns, messages or hits.
pub const MAX_PAGE_SIZE: u64 = 1000;
/// The default page of turns.
pub const DEFAULT_TURNS: u64 = 100;
/// The default page of messages: each contains all of its parts.
pub const DEFAULT_MESSAGES: u64 = 100;
/// The largest page of parts.
pub const MAX_PARTS: u64 = 5000;
/// The default number of hits.
pub const DEFAULT_HITS: u64 = 20;

pub const fn limit(max: u64, what: &'static str) -> Parameter {
    optional("limit", ParameterKind::Number { min: 1, max }, what)
}

pub const STATS_TABLE: Parameter =
    optional("by", ParameterKind::OneOf(StatsTable::NAMES), "the table; default day");
pub const STATS_LIMIT: Parameter = limit(100_000, "the number of rows of each table");
pub const LIMIT: Parameter = limit(MAX_PAGE_SIZE, "the page size");
pub const AFTER_TURN: Parameter = optional(
    "after",
    ParameterKind::Number { min: 0, max: u32::MAX as u64 },
    "only turns after this number",
);
