//! The routes under `/api` as one table. The router, the request checks, the OpenAPI document and
//! the table in docs/api.md are all made from it.

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
    pub answer: Gives,
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
    Export,
    Chat,
    Search,
    Stats,
    Live,
    Document,
}

/// One query parameter.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub what: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    /// `2026-05-31`, `2026-05-31T12:00:00Z`, `36h`, `7d`, `2w`.
    Time,
    /// `1`, `true`, `0` or `false`.
    Flag,
    Number {
        least: u64,
        most: u64,
    },
    OneOf(&'static [&'static str]),
    /// `3`, or `3-7`.
    Span,
    /// Twenty characters.
    Id,
    /// Opaque, from a `Link` header.
    Cursor,
}

/// What a route returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// An object of this schema.
    One(&'static str),
    /// An array of such objects.
    Many(&'static str),
    /// A download.
    File,
    /// A UI message stream of the AI SDK.
    Events,
    /// A WebSocket.
    Socket,
}

const fn may(name: &'static str, kind: Kind, what: &'static str) -> Parameter {
    Parameter { name, kind, required: false, what }
}

const fn must(name: &'static str, kind: Kind, what: &'static str) -> Parameter {
    Parameter { name, kind, required: true, what }
}

const SDK: Parameter = may(
    "sdk",
    Kind::OneOf(&["5", "6", "7"]),
    "the AI SDK version of the client: 7 receives fields that older versions reject",
);
const REDACT: Parameter =
    may("redact", Kind::Flag, "0 keeps what looks like a secret; the archive is never redacted");
const AGENT: Parameter =
    may("agent", Kind::Text, "only sessions of this agent: claude-code, codex, …");
const PROJECT: Parameter = may("project", Kind::Text, "only projects whose path contains this");
const SINCE: Parameter = may("since", Kind::Time, "only activity at or after this time");
const UNTIL: Parameter = may("until", Kind::Time, "only what started before this time");

/// The largest page of sessions, turns, messages or hits.
pub const MOST: u64 = 1000;
/// The default page of turns.
pub const TURNS: u64 = 100;
/// The default page of messages: each contains all of its parts.
pub const MESSAGES: u64 = 100;
/// The largest page of parts.
pub const PARTS: u64 = 5000;
/// The default number of hits.
pub const HITS: u64 = 20;

const fn limit(most: u64, what: &'static str) -> Parameter {
    may("limit", Kind::Number { least: 1, most }, what)
}

const LIMIT: Parameter = limit(MOST, "the page size");
const AFTER_TURN: Parameter =
    may("after", Kind::Number { least: 0, most: u32::MAX as u64 }, "only turns after this number");

/// All routes.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/api/sessions",
        endpoint: Endpoint::Sessions,
        summary: "Sessions, newest first, sub-agents included: what `unspool list --json` writes",
        parameters: &[
            AGENT,
            PROJECT,
            may("tag", Kind::Text, "only sessions with this tag"),
            may("model", Kind::Text, "only sessions with this model (full name)"),
            may("errors", Kind::Flag, "only sessions with errors"),
            SINCE,
            UNTIL,
            may("after", Kind::Cursor, "cursor from a Link header"),
            LIMIT,
        ],
        answer: Gives::Many("Session"),
    },
    Route {
        path: "/api/sessions/{id}",
        endpoint: Endpoint::Session,
        summary: "One session: what `unspool show --json` writes, and its `seq`",
        parameters: &[
            may("turns", Kind::Span, "only these turns, by their numbers: 3, or 3-7"),
            AFTER_TURN,
            limit(MOST, "the page size; all turns unless `after` or `limit` is given"),
        ],
        answer: Gives::One("SessionWithTurns"),
    },
    Route {
        path: "/api/sessions/{id}/turns",
        endpoint: Endpoint::Turns,
        summary: "The turns of a session, in order",
        parameters: &[AFTER_TURN, limit(MOST, "the page size; default 100")],
        answer: Gives::Many("Turn"),
    },
    Route {
        path: "/api/sessions/{id}/turns/{number}",
        endpoint: Endpoint::Turn,
        summary: "One turn by number; 0 is what came before the first prompt",
        parameters: &[],
        answer: Gives::One("Turn"),
    },
    Route {
        path: "/api/sessions/{id}/turns/{number}/parts",
        endpoint: Endpoint::TurnParts,
        summary: "The parts of one turn, in order",
        parameters: &[
            may("kind", Kind::OneOf(unspool_engine::asked::PART_KINDS), "only parts of this kind"),
            may("tool", Kind::Text, "only calls of this tool"),
            may(
                "state",
                Kind::OneOf(unspool_engine::asked::TOOL_STATES),
                "only calls in this state",
            ),
            may("after", Kind::Id, "only parts after this one"),
            limit(PARTS, "the page size"),
        ],
        answer: Gives::Many("Part"),
    },
    Route {
        path: "/api/sessions/{id}/parts/{part}",
        endpoint: Endpoint::Part,
        summary: "One part, optionally with the agent's records that it was read from",
        parameters: &[may(
            "raw",
            Kind::Flag,
            "include the records from the agent's own file, or why they are not available",
        )],
        answer: Gives::One("PartInTurn"),
    },
    Route {
        path: "/api/sessions/{id}/messages",
        endpoint: Endpoint::Messages,
        summary: "The user and assistant message of each turn with their `parts`; `content` is derived from them",
        parameters: &[
            may("role", Kind::OneOf(&["user", "assistant"]), "only messages of this role"),
            may(
                "has_tool_calls",
                Kind::Flag,
                "only messages with tool calls, or only those without",
            ),
            may("tool_name", Kind::Text, "only messages with a call of this tool"),
            may("execution", Kind::Id, "only messages of the turn with this id"),
            may(
                "after",
                Kind::Number { least: 0, most: u64::MAX >> 1 },
                "only messages after this `sequence`",
            ),
            limit(MOST, "the page size; default 100"),
        ],
        answer: Gives::Many("Message"),
    },
    Route {
        path: "/api/sessions/{id}/export",
        endpoint: Endpoint::Export,
        summary: "One session as a file: what `unspool export` writes",
        parameters: &[
            must(
                "to",
                Kind::OneOf(unspool_render::project::NAMES),
                "the format; jsonl has everything that is stored and can be re-imported with `unspool import`",
            ),
            SDK,
            REDACT,
        ],
        answer: Gives::File,
    },
    Route {
        path: "/api/chat/{id}/stream",
        endpoint: Endpoint::Chat,
        summary: "The running turn as a stream for clients of the AI SDK: its content so far, then its deltas; 204 if no turn is running",
        parameters: &[
            may(
                "turn",
                Kind::Number { least: 0, most: u32::MAX as u64 },
                "the turn with this number instead, running or not",
            ),
            SDK,
            REDACT,
        ],
        answer: Gives::Events,
    },
    Route {
        path: "/api/search",
        endpoint: Endpoint::Search,
        summary: "Search hits, one per part: what `unspool search --json` writes",
        parameters: &[
            must("q", Kind::Text, "words, `begin*`, `\"an exact phrase\"`, `-not`"),
            AGENT,
            PROJECT,
            may(
                "kind",
                Kind::OneOf(unspool_engine::asked::SEARCH_KINDS),
                "only in parts of this kind",
            ),
            may("tool", Kind::Text, "only in calls of this tool"),
            may(
                "state",
                Kind::OneOf(unspool_engine::asked::TOOL_STATES),
                "only in calls in this state",
            ),
            may("model", Kind::Text, "only output of models whose name contains this"),
            SINCE,
            UNTIL,
            limit(MOST, "the number of hits; default 20"),
        ],
        answer: Gives::Many("Hit"),
    },
    Route {
        path: "/api/stats",
        endpoint: Endpoint::Stats,
        summary: "Statistics over the archive: what `unspool stats --json` writes",
        parameters: &[
            AGENT,
            PROJECT,
            SINCE,
            UNTIL,
            limit(100_000, "the number of rows of each table"),
        ],
        answer: Gives::One("Stats"),
    },
    Route {
        path: "/api/live",
        endpoint: Endpoint::Live,
        summary: "A WebSocket: live sessions, the live list, and the query protocol of the remote terminal",
        parameters: &[],
        answer: Gives::Socket,
    },
    Route {
        path: "/api/openapi.json",
        endpoint: Endpoint::Document,
        summary: "This interface as an OpenAPI 3.1 document",
        parameters: &[],
        answer: Gives::One("Document"),
    },
];

impl Route {
    /// The names of the path parameters, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let between = |piece: &'static str| piece.strip_prefix('{')?.strip_suffix('}');
        self.path.split('/').filter_map(between)
    }
}

/// The kind and description of a path parameter.
pub fn path_parameter(name: &str) -> (Kind, &'static str) {
    match name {
        "number" => {
            let kind = Kind::Number { least: 0, most: u32::MAX as u64 };
            (kind, "the number of a turn")
        }
        "part" => (Kind::Id, "the id of a part"),
        _ => (Kind::Text, "our session id, a unique prefix of it, or the agent's own session id"),
    }
}
