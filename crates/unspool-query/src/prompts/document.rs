//! Prompts as JSON: what `unspool prompt --json` and the REST route write.

use serde::Serialize;
use unspool_model::document::time;
use unspool_model::prompt::{PieceKind, PieceSpan, PromptGap, PromptKnowledge, SourceShare};

use unspool_view::present::prompt::{Call, PromptContext, ServerShare, ShownPiece};

use super::ArchiveContext;

/// Some calls of a session.
#[derive(Serialize)]
pub struct PromptsDocument<'a> {
    pub prompts: Vec<PromptDocument<'a>>,
    /// What all calls were sent, unless some were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextDocument<'a>>,
    /// What is known instead, if the source of the session has no single calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<PromptKnowledge>,
}

/// What all calls of a session were sent.
#[derive(Serialize)]
pub struct ContextDocument<'a> {
    /// By kind and source, most first.
    sources: Vec<SourceDocument<'a>>,
    /// Schemas of tools that the session never called.
    unused_tools: Vec<SourceDocument<'a>>,
}

/// What all calls of many sessions were sent.
#[derive(Serialize)]
pub struct ArchiveContextDocument<'a> {
    sessions: u64,
    calls: u64,
    sessions_without_prompts: u64,
    /// Most first, like the other lists.
    servers: Vec<ServerDocument<'a>>,
    #[serde(flatten)]
    context: ContextDocument<'a>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    mcp_server: &'a str,
    chars: u64,
    estimated_tokens: u64,
}

impl<'a> ArchiveContextDocument<'a> {
    /// With at most so many rows in each list.
    pub fn new(total: &'a ArchiveContext, limit: usize) -> ArchiveContextDocument<'a> {
        let server = |share: ServerShare<'a>| ServerDocument {
            mcp_server: share.server,
            chars: share.chars,
            estimated_tokens: share.tokens,
        };
        let mut context = ContextDocument::new(&total.context);
        context.sources.truncate(limit);
        context.unused_tools.truncate(limit);
        ArchiveContextDocument {
            sessions: total.sessions,
            calls: total.calls,
            sessions_without_prompts: total.without_prompts,
            servers: total.context.servers().into_iter().take(limit).map(server).collect(),
            context,
        }
    }
}

#[derive(Serialize)]
struct SourceDocument<'a> {
    kind: PieceKind,
    source: Option<&'a str>,
    mcp_server: Option<&'a str>,
    /// Summed over all calls.
    chars: u64,
    /// The measured tokens of each call, shared out by characters.
    estimated_tokens: u64,
}

impl<'a> ContextDocument<'a> {
    pub fn new(context: &'a PromptContext) -> ContextDocument<'a> {
        let of = |shares: &'a [SourceShare]| shares.iter().map(SourceDocument::new).collect();
        ContextDocument { sources: of(&context.sources), unused_tools: of(&context.unused_tools) }
    }
}

impl<'a> SourceDocument<'a> {
    fn new(share: &'a SourceShare) -> SourceDocument<'a> {
        SourceDocument {
            kind: share.kind,
            source: share.source.as_deref(),
            mcp_server: share.server(),
            chars: share.chars,
            estimated_tokens: share.tokens,
        }
    }
}

/// One model call.
#[derive(Serialize)]
pub struct PromptDocument<'a> {
    /// `null` if no source says which step it is.
    turn: Option<u32>,
    step: Option<u32>,
    /// The source's name for the request.
    call: &'a str,
    /// When it was recorded.
    at: Option<String>,
    /// As far as a source says it; each may be `null`.
    sent_at: Option<String>,
    first_token_at: Option<String>,
    ended_at: Option<String>,
    /// It failed, was tried again, or is not answered yet.
    no_reply: bool,
    model: Option<&'a str>,
    messages: u32,
    chars: u64,
    chars_by_kind: Vec<KindChars>,
    truth: Truth,
    /// The call whose first `keep` messages this one begins with.
    base: Option<&'a str>,
    keep: u32,
    /// All pieces in the order of the request, if one call was asked for; else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<Vec<PieceDocument<'a>>>,
}

#[derive(Serialize)]
struct KindChars {
    kind: PieceKind,
    chars: u64,
}

/// How far a prompt is known.
#[derive(Serialize)]
struct Truth {
    /// Everything that the source records is here, and is what was sent.
    complete: bool,
    unknown_messages: u32,
    /// Pieces whose text is not stored, or not the one that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_pieces: Option<usize>,
    /// What the source never records.
    not_recorded: Vec<&'static str>,
}

#[derive(Serialize)]
struct PieceDocument<'a> {
    kind: PieceKind,
    role: unspool_model::prompt::Role,
    at: &'a str,
    chars: u32,
    label: Option<&'a str>,
    text: Option<&'a str>,
    spans: &'a [PieceSpan],
}

impl<'a> PromptDocument<'a> {
    /// A call, and its pieces if they are wanted.
    pub fn new(call: &Call<'a>, pieces: Option<&'a [ShownPiece<'a>]>) -> PromptDocument<'a> {
        let prompt = call.prompt;
        let record = prompt.call();
        let unknown_pieces = pieces.map(|pieces| unknown(pieces));
        let unknown_messages = prompt.unknown_messages();
        let is_known = record.head.is_none() || prompt.head().is_some();
        let kinds = prompt.chars_by_kind().into_iter();
        PromptDocument {
            turn: call.step.map(|(turn, _)| turn),
            step: call.step.map(|(_, step)| step),
            call: &record.request,
            at: time(record.at),
            sent_at: time(call.times.sent),
            first_token_at: time(call.times.first_token),
            ended_at: time(call.times.ended),
            no_reply: call.no_reply,
            model: record.model.as_deref(),
            messages: prompt.message_count(),
            chars: prompt.chars(),
            chars_by_kind: kinds.map(|(kind, chars)| KindChars { kind, chars }).collect(),
            truth: Truth {
                complete: is_known && unknown_messages == 0 && unknown_pieces.unwrap_or(0) == 0,
                unknown_messages,
                unknown_pieces,
                not_recorded: record.gaps.iter().map(|gap: &PromptGap| gap.label()).collect(),
            },
            base: record.base.as_deref(),
            keep: record.keep,
            pieces: pieces.map(|pieces| pieces.iter().map(PieceDocument::new).collect()),
        }
    }
}

/// How many pieces have no text although they are text.
pub fn unknown(pieces: &[ShownPiece<'_>]) -> usize {
    pieces.iter().filter(|piece| piece.is_unknown()).count()
}

impl<'a> PieceDocument<'a> {
    fn new(shown: &'a ShownPiece<'a>) -> PieceDocument<'a> {
        PieceDocument {
            kind: shown.piece.kind,
            role: shown.role,
            at: &shown.at,
            chars: shown.piece.chars,
            label: shown.piece.label.as_deref(),
            text: shown.text.as_deref(),
            spans: &shown.piece.spans,
        }
    }
}
