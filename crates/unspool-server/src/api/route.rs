//! The routes under `/api` as one table. The router, the request checks, the OpenAPI document and
//! the table in docs/api.md are all made from it.

use super::parameter::*;

/// One route.
#[derive(Debug)]
pub struct Route {
    /// With `{names}` for path parameters.
    pub path: &'static str,
    pub endpoint: Endpoint,
    /// One sentence, for people.
    pub summary: &'static str,
    /// The query parameters.
    pub parameters: &'static [Parameter],
    pub response: ResponseKind,
}

/// Selects the handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endpoint {
    Sessions,
    Session,
    Turns,
    Turn,
    TurnParts,
    Part,
    Messages,
    Groups,
    ToolCalls,
    Notes,
    Changes,
    Prompts,
    SessionFindings,
    Findings,
    Adaptations,
    Adaptation,
    AdaptationPreview,
    AdaptationHistory,
    AdaptationSeen,
    Export,
    Chat,
    Search,
    Stats,
    StatsCsv,
    Live,
    Document,
}

impl Endpoint {
    /// True if its response contains the parts of a session, of which there may be any number.
    pub fn has_parts(self) -> bool {
        // An export and a chat are streamed.
        matches!(
            self,
            Endpoint::Session
                | Endpoint::Turns
                | Endpoint::Turn
                | Endpoint::TurnParts
                | Endpoint::Part
                | Endpoint::Messages
                | Endpoint::Groups
                | Endpoint::ToolCalls
                | Endpoint::Changes
                | Endpoint::Prompts
                | Endpoint::SessionFindings
                | Endpoint::Findings
                | Endpoint::AdaptationSeen
        )
    }
}

/// What a route returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseKind {
    /// An object of this schema.
    One(&'static str),
    /// An array of such objects.
    Many(&'static str),
    /// A session in one of the export formats.
    File,
    Csv,
    /// A UI message stream of the AI SDK.
    Events,
    /// A WebSocket.
    Socket,
}

/// All routes.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/api/sessions",
        endpoint: Endpoint::Sessions,
        summary: "Sessions, newest first, sub-agents included: what `unspool list --json` writes",
        parameters: &[
            AGENT,
            PROJECT,
            optional("tag", ParameterKind::Text, "only sessions with this tag"),
            optional("model", ParameterKind::Text, "only sessions with this model (full name)"),
            optional("errors", ParameterKind::Flag, "only sessions with errors"),
            SINCE,
            UNTIL,
            optional("after", ParameterKind::Cursor, "cursor from a Link header"),
            LIMIT,
        ],
        response: ResponseKind::Many("ListedSession"),
    },
    Route {
        path: "/api/sessions/{id}",
        endpoint: Endpoint::Session,
        summary: "One session: what `unspool show --json` writes, and its `seq`",
        parameters: &[
            optional("turns", ParameterKind::Span, "only these turns, by their numbers: 3, or 3-7"),
            AFTER_TURN,
            limit(MAX_PAGE_SIZE, "the page size; all turns unless `after` or `limit` is given"),
        ],
        response: ResponseKind::One("SessionWithTurns"),
    },
    Route {
        path: "/api/sessions/{id}/turns",
        endpoint: Endpoint::Turns,
        summary: "The turns of a session, in order",
        parameters: &[AFTER_TURN, limit(MAX_PAGE_SIZE, "the page size; default 100")],
        response: ResponseKind::Many("Turn"),
    },
    Route {
        path: "/api/sessions/{id}/turns/{number}",
        endpoint: Endpoint::Turn,
        summary: "One turn by number; 0 is what came before the first prompt",
        parameters: &[],
        response: ResponseKind::One("Turn"),
    },
    Route {
        path: "/api/sessions/{id}/turns/{number}/parts",
        endpoint: Endpoint::TurnParts,
        summary: "The parts of one turn, in order",
        parameters: &[
            optional(
                "kind",
                ParameterKind::OneOf(unspool_query::params::PART_KINDS),
                "only parts of this kind",
            ),
            optional("tool", ParameterKind::Text, "only calls of this tool"),
            optional(
                "state",
                ParameterKind::OneOf(unspool_query::params::TOOL_STATES),
                "only calls in this state",
            ),
            optional("after", ParameterKind::Id, "only parts after this one"),
            limit(MAX_PARTS, "the page size"),
        ],
        response: ResponseKind::Many("Part"),
    },
    Route {
        path: "/api/sessions/{id}/parts/{part}",
        endpoint: Endpoint::Part,
        summary: "One part, optionally with the agent's records that it was read from",
        parameters: &[optional(
            "raw",
            ParameterKind::Flag,
            "include the records from the agent's own file, or why they are not available",
        )],
        response: ResponseKind::One("PartInTurn"),
    },
    Route {
        path: "/api/sessions/{id}/messages",
        endpoint: Endpoint::Messages,
        summary: "The user and assistant message of each turn with their `parts`; `content` is derived from them",
        parameters: &[
            optional(
                "role",
                ParameterKind::OneOf(&["user", "assistant"]),
                "only messages of this role",
            ),
            optional(
                "has_tool_calls",
                ParameterKind::Flag,
                "only messages with tool calls, or only those without",
            ),
            optional("tool_name", ParameterKind::Text, "only messages with a call of this tool"),
            optional("execution", ParameterKind::Id, "only messages of the turn with this id"),
            optional(
                "after",
                ParameterKind::Number { min: 0, max: u64::MAX >> 1 },
                "only messages after this `sequence`",
            ),
            limit(MAX_PAGE_SIZE, "the page size; default 100"),
            optional(
                "form",
                ParameterKind::OneOf(&["json", "frames"]),
                "`frames`: the parts in the words of frames, `thinking` for reasoning, and `tool_call` and `tool_result` for a call",
            ),
        ],
        response: ResponseKind::Many("Message"),
    },
    Route {
        path: "/api/sessions/{id}/groups",
        endpoint: Endpoint::Groups,
        summary: "For each turn the user's group and the assistant's, with its thinking mode and its reasoning blocks",
        parameters: &[
            AFTER_TURN,
            limit(MAX_PAGE_SIZE, "the number of turns; default 100"),
            optional(
                "rule",
                ParameterKind::OneOf(&["default", "until-text"]),
                "`until-text`: calls stay in a reasoning block until a text comes, for models that call several tools at once",
            ),
        ],
        response: ResponseKind::Many("Group"),
    },
    Route {
        path: "/api/sessions/{id}/tool-calls",
        endpoint: Endpoint::ToolCalls,
        summary: "All tool calls of a session in order, and those that have no result",
        parameters: &[],
        response: ResponseKind::One("ToolCalls"),
    },
    Route {
        path: "/api/sessions/{id}/notes",
        endpoint: Endpoint::Notes,
        summary: "The user's notes and bookmarks on a session, in the order of its transcript: what `unspool note --json` writes",
        parameters: &[],
        response: ResponseKind::Many("Note"),
    },
    Route {
        path: "/api/sessions/{id}/changes",
        endpoint: Endpoint::Changes,
        summary: "The files that a session changed, with the net diff of each: what `unspool changes --json` writes",
        parameters: &[optional(
            "turn",
            ParameterKind::Number { min: 0, max: u32::MAX as u64 },
            "only the changes of the turn with this number",
        )],
        response: ResponseKind::One("Changes"),
    },
    Route {
        path: "/api/sessions/{id}/prompts",
        endpoint: Endpoint::Prompts,
        summary: "What each model call of a session was sent, as far as its agent writes it down: what `unspool prompt --json` writes. With a turn, the pieces of its calls",
        parameters: &[
            optional(
                "turn",
                ParameterKind::Number { min: 0, max: u32::MAX as u64 },
                "only the calls of the turn with this number, with all their pieces",
            ),
            optional(
                "step",
                ParameterKind::Number { min: 1, max: u32::MAX as u64 },
                "with a turn: only the call that is this step of it",
            ),
        ],
        response: ResponseKind::One("Prompts"),
    },
    Route {
        path: "/api/sessions/{id}/findings",
        endpoint: Endpoint::SessionFindings,
        summary: "What went wrong in a session: what `unspool reflect SESSION --json` writes",
        parameters: &[RULE],
        response: ResponseKind::One("Findings"),
    },
    Route {
        path: "/api/sessions/{id}/export",
        endpoint: Endpoint::Export,
        summary: "One session as a file: what `unspool export` writes",
        parameters: &[
            required(
                "to",
                ParameterKind::OneOf(unspool_export::project::NAMES),
                "the format; jsonl has everything that is stored and can be re-imported with `unspool import`",
            ),
            SDK,
            REDACT,
            NOTES,
        ],
        response: ResponseKind::File,
    },
    Route {
        path: "/api/chat/{id}/stream",
        endpoint: Endpoint::Chat,
        summary: "The running turn as a stream for clients of the AI SDK: its content so far, then each part when it is complete (each delta with `redact=0`); 204 if no turn is running",
        parameters: &[
            optional(
                "turn",
                ParameterKind::Number { min: 0, max: u32::MAX as u64 },
                "the turn with this number instead, running or not",
            ),
            SDK,
            REDACT,
        ],
        response: ResponseKind::Events,
    },
    Route {
        path: "/api/search",
        endpoint: Endpoint::Search,
        summary: "Search hits, one per part: what `unspool search --json` writes",
        parameters: &[
            required(
                "q",
                ParameterKind::Text,
                "words, `begin*`, `\"exact text\"`, `rm -rf`, `NOT word`",
            ),
            AGENT,
            PROJECT,
            optional(
                "kind",
                ParameterKind::OneOf(unspool_query::params::SEARCH_KINDS),
                "only in parts of this kind",
            ),
            optional("tool", ParameterKind::Text, "only in calls of this tool"),
            optional(
                "state",
                ParameterKind::OneOf(unspool_query::params::TOOL_STATES),
                "only in calls in this state",
            ),
            optional(
                "model",
                ParameterKind::Text,
                "only output of models whose name contains this",
            ),
            SINCE,
            UNTIL,
            limit(MAX_PAGE_SIZE, "the number of hits; default 20"),
        ],
        response: ResponseKind::Many("Hit"),
    },
    Route {
        path: "/api/findings",
        endpoint: Endpoint::Findings,
        summary: "What went wrong in the newest sessions: what `unspool reflect --json` writes",
        parameters: &[
            AGENT,
            PROJECT,
            RULE,
            SINCE,
            UNTIL,
            limit(MAX_PAGE_SIZE, "the number of sessions; default 200"),
        ],
        response: ResponseKind::One("Findings"),
    },
    Route {
        path: "/api/adaptations",
        endpoint: Endpoint::Adaptations,
        summary: "Texts that agents get in their prompts: what `unspool adapt list --json` writes",
        parameters: &[
            optional("agent", ParameterKind::Text, "only those for this agent"),
            optional("channel", ParameterKind::Text, "only those for this channel"),
            optional("tag", ParameterKind::Text, "only those with this tag"),
            optional("enabled", ParameterKind::Flag, "only the enabled or only the disabled ones"),
            PROJECT_FOLDER,
        ],
        response: ResponseKind::One("Adaptations"),
    },
    Route {
        path: "/api/adaptations/preview",
        endpoint: Endpoint::AdaptationPreview,
        summary: "What an agent gets: what `unspool adapt preview --json` writes",
        parameters: &[
            required("agent", ParameterKind::Text, "the agent: claude-code, codex, …"),
            optional("channel", ParameterKind::Text, "the channel; `text` by default"),
            PROJECT_FOLDER,
        ],
        response: ResponseKind::One("AdaptationPreview"),
    },
    Route {
        path: "/api/adaptations/{item}",
        endpoint: Endpoint::Adaptation,
        summary: "One adaptation; its ETag is its version",
        parameters: &[PROJECT_FOLDER],
        response: ResponseKind::One("Adaptation"),
    },
    Route {
        path: "/api/adaptations/{item}/history",
        endpoint: Endpoint::AdaptationHistory,
        summary: "The versions of an adaptation: what `unspool adapt history --json` writes",
        parameters: &[PROJECT_FOLDER],
        response: ResponseKind::One("AdaptationHistory"),
    },
    Route {
        path: "/api/adaptations/{item}/seen",
        endpoint: Endpoint::AdaptationSeen,
        summary: "Where an adaptation was delivered, and where it was seen in prompts",
        parameters: &[PROJECT_FOLDER],
        response: ResponseKind::One("AdaptationSeen"),
    },
    Route {
        path: "/api/stats",
        endpoint: Endpoint::Stats,
        summary: "Statistics over the archive: what `unspool stats --json` writes",
        parameters: &[AGENT, PROJECT, SINCE, UNTIL, STATS_LIMIT],
        response: ResponseKind::One("Stats"),
    },
    Route {
        path: "/api/stats.csv",
        endpoint: Endpoint::StatsCsv,
        summary: "One table of the statistics: what `unspool stats --csv` writes",
        parameters: &[STATS_TABLE, AGENT, PROJECT, SINCE, UNTIL, STATS_LIMIT],
        response: ResponseKind::Csv,
    },
    Route {
        path: "/api/live",
        endpoint: Endpoint::Live,
        summary: "A WebSocket: live sessions, the live list, and the query protocol of the remote terminal",
        parameters: &[],
        response: ResponseKind::Socket,
    },
    Route {
        path: "/api/openapi.json",
        endpoint: Endpoint::Document,
        summary: "This interface as an OpenAPI 3.1 document",
        parameters: &[],
        response: ResponseKind::One("Document"),
    },
];

impl Route {
    /// The names of the path parameters, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let between = |piece: &'static str| piece.strip_prefix('{')?.strip_suffix('}');
        self.path.split('/').filter_map(between)
    }
}
