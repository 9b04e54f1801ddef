//! What can be asked under `/api`: one table, from which the router, the checks of what was asked,
//! the OpenAPI document and the page in the docs all come. What is not in it is not served.

/// One address.
#[derive(Debug)]
pub struct Route {
    /// With `{names}` for what varies.
    pub path: &'static str,
    pub endpoint: Endpoint,
    /// One sentence, for people.
    pub summary: &'static str,
    /// What may stand behind the `?`.
    pub parameters: &'static [Parameter],
    pub answer: Gives,
}

/// Which function answers.
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

/// One field of a query.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub what: &'static str,
}

/// What a field may hold.
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
    /// What a `Link` header gave.
    Cursor,
}

/// What is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// An object of this schema.
    One(&'static str),
    /// An array of such objects.
    Many(&'static str),
    /// A file to be kept.
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
    "the version of the AI SDK that reads it: 7 is told what older ones would refuse",
);
const REDACT: Parameter =
    may("redact", Kind::Flag, "0 leaves in what looks like a secret; the archive always has it");
const AGENT: Parameter = may("agent", Kind::Text, "only this agent's: claude-code, codex, …");
const PROJECT: Parameter =
    may("project", Kind::Text, "only of projects whose folder has this in its path");
const SINCE: Parameter = may("since", Kind::Time, "only what went on then or later");
const UNTIL: Parameter = may("until", Kind::Time, "only what began before then");

/// So many sessions, turns, messages or hits are told at once, unless fewer are asked for.
pub const MOST: u64 = 1000;
/// So many turns, unless more are asked for.
pub const TURNS: u64 = 100;
/// And so many messages: each has all of its parts.
pub const MESSAGES: u64 = 100;
/// So many parts of a turn at most.
pub const PARTS: u64 = 5000;
/// So many hits, unless more are asked for.
pub const HITS: u64 = 20;

const fn limit(most: u64, what: &'static str) -> Parameter {
    may("limit", Kind::Number { least: 1, most }, what)
}

const LIMIT: Parameter = limit(MOST, "so many at most");
const AFTER_TURN: Parameter =
    may("after", Kind::Number { least: 0, most: u32::MAX as u64 }, "only turns behind this number");

/// Everything.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/api/sessions",
        endpoint: Endpoint::Sessions,
        summary: "Sessions, newest first, sub-agents included: what `unspool list --json` writes",
        parameters: &[
            AGENT,
            PROJECT,
            may("tag", Kind::Text, "only with this tag"),
            may("model", Kind::Text, "only with this model, by its whole name"),
            may("errors", Kind::Flag, "only those in which something failed"),
            SINCE,
            UNTIL,
            may("after", Kind::Cursor, "only those behind this place, which a Link header gave"),
            LIMIT,
        ],
        answer: Gives::Many("Session"),
    },
    Route {
        path: "/api/sessions/{id}",
        endpoint: Endpoint::Session,
        summary: "One session: what `unspool show --json` writes, and the `seq` that it is of",
        parameters: &[
            may("turns", Kind::Span, "only these turns, by their numbers: 3, or 3-7"),
            AFTER_TURN,
            limit(MOST, "so many turns at most; all of them unless `after` or this is given"),
        ],
        answer: Gives::One("SessionWithTurns"),
    },
    Route {
        path: "/api/sessions/{id}/turns",
        endpoint: Endpoint::Turns,
        summary: "The turns of a session, in their order",
        parameters: &[AFTER_TURN, limit(MOST, "so many at most; 100 unless given")],
        answer: Gives::Many("Turn"),
    },
    Route {
        path: "/api/sessions/{id}/turns/{number}",
        endpoint: Endpoint::Turn,
        summary: "One turn, by its number; 0 is what came before the first prompt",
        parameters: &[],
        answer: Gives::One("Turn"),
    },
    Route {
        path: "/api/sessions/{id}/turns/{number}/parts",
        endpoint: Endpoint::TurnParts,
        summary: "The parts of one turn, in their order",
        parameters: &[
            may("kind", Kind::OneOf(unspool_engine::asked::PART_KINDS), "only of this kind"),
            may("tool", Kind::Text, "only calls of this tool"),
            may(
                "state",
                Kind::OneOf(unspool_engine::asked::TOOL_STATES),
                "only calls in this state",
            ),
            may("after", Kind::Id, "only those behind this part"),
            limit(PARTS, "so many at most"),
        ],
        answer: Gives::Many("Part"),
    },
    Route {
        path: "/api/sessions/{id}/parts/{part}",
        endpoint: Endpoint::Part,
        summary: "One part, and on request the records of the agent that told of it",
        parameters: &[may(
            "raw",
            Kind::Flag,
            "with the records, as they stand in the agent's own file, or why they cannot be had",
        )],
        answer: Gives::One("PartInTurn"),
    },
    Route {
        path: "/api/sessions/{id}/messages",
        endpoint: Endpoint::Messages,
        summary: "The two sides of each turn, each with its `parts`; `content` is derived from them",
        parameters: &[
            may("role", Kind::OneOf(&["user", "assistant"]), "only of this side"),
            may("has_tool_calls", Kind::Flag, "only those with tool calls, or only those without"),
            may("tool_name", Kind::Text, "only those with a call of this tool"),
            may("execution", Kind::Id, "only of the turn with this id"),
            may(
                "after",
                Kind::Number { least: 0, most: u64::MAX >> 1 },
                "only those behind this `sequence`",
            ),
            limit(MOST, "so many at most; 100 unless given"),
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
                "the form; jsonl has everything that is stored, and `unspool import` takes it back",
            ),
            SDK,
            REDACT,
        ],
        answer: Gives::File,
    },
    Route {
        path: "/api/chat/{id}/stream",
        endpoint: Endpoint::Chat,
        summary: "The turn that goes on, for clients of the AI SDK: what was said so far, then as it grows; 204 if none does",
        parameters: &[
            may(
                "turn",
                Kind::Number { least: 0, most: u32::MAX as u64 },
                "the turn with this number instead, whether it is over or not",
            ),
            SDK,
            REDACT,
        ],
        answer: Gives::Events,
    },
    Route {
        path: "/api/search",
        endpoint: Endpoint::Search,
        summary: "Where something was said, thought, read or written: what `unspool search --json` writes",
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
            may("model", Kind::Text, "only what a model with this in its name produced"),
            SINCE,
            UNTIL,
            limit(MOST, "so many hits at most; 20 unless given"),
        ],
        answer: Gives::Many("Hit"),
    },
    Route {
        path: "/api/stats",
        endpoint: Endpoint::Stats,
        summary: "Figures over everything: what `unspool stats --json` writes",
        parameters: &[
            AGENT,
            PROJECT,
            SINCE,
            UNTIL,
            limit(100_000, "so many rows of each table at most"),
        ],
        answer: Gives::One("Stats"),
    },
    Route {
        path: "/api/live",
        endpoint: Endpoint::Live,
        summary: "A WebSocket: sessions as they grow, and all of this as a reader asks for it",
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
    /// What varies in the path, in its order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let between = |piece: &'static str| piece.strip_prefix('{')?.strip_suffix('}');
        self.path.split('/').filter_map(between)
    }
}

/// What stands for each name in a path.
pub fn path_parameter(name: &str) -> (Kind, &'static str) {
    match name {
        "number" => {
            let kind = Kind::Number { least: 0, most: u32::MAX as u64 };
            (kind, "the number of a turn")
        }
        "part" => (Kind::Id, "the id of a part"),
        _ => (Kind::Text, "our id of a session, a unique start of it, or the agent's own"),
    }
}
