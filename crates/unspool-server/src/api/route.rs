//! The routes under `/api` as one table. The router, the request checks, the OpenAPI document and
//! the table in docs/api.md are all made from it.

mod table;

use super::parameter::Parameter;

pub use table::ROUTES;

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
    Commits,
    Prompts,
    SessionFindings,
    Findings,
    Adaptations,
    Adaptation,
    AdaptationPreview,
    AdaptationHistory,
    AdaptationSeen,
    AdaptationEffect,
    Proposals,
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
                | Endpoint::Commits
                | Endpoint::Prompts
                | Endpoint::SessionFindings
                | Endpoint::Findings
                | Endpoint::AdaptationSeen
                | Endpoint::AdaptationEffect
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

impl Route {
    /// The names of the path parameters, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let between = |piece: &'static str| piece.strip_prefix('{')?.strip_suffix('}');
        self.path.split('/').filter_map(between)
    }
}
