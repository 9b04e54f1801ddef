//! Sums over the calls of a session, compared with the prompts themselves.

use super::*;
use crate::prompt::{PieceSpan, PromptCall, PromptMessage, PromptRecord, Role};

fn message(digest: &str, pieces: Vec<Piece>) -> PromptRecord {
    let digest = MessageDigest::of(digest.as_bytes());
    PromptRecord::Message(PromptMessage { digest, role: Role::User, verified: true, pieces })
}

fn piece(kind: PieceKind, label: Option<&str>, text: PieceText, value: &str) -> Piece {
    let label = label.map(str::to_owned);
    Piece { label, ..Piece::new(kind, String::new(), text, value) }
}

fn call(request: &str, base: Option<&str>, keep: u32, tail: &[&str]) -> PromptRecord {
    PromptRecord::Call(PromptCall {
        request: request.into(),
        at: None,
        model: None,
        head: Some(MessageDigest::of(b"head")),
        base: base.map(Into::into),
        keep,
        tail: tail.iter().map(|name| MessageDigest::of(name.as_bytes())).collect(),
        list: Default::default(),
        gaps: Vec::new(),
    })
}

fn kept() -> PieceText {
    PieceText::Kept(String::new())
}

/// Three calls; the third begins after a compaction.
fn tree() -> PromptTree {
    let schema = piece(PieceKind::ToolSchema, Some("mcp__files__edit"), kept(), "0123456789");
    let mut rule = piece(PieceKind::UserInstruction, None, kept(), "rule and question");
    let label = Some("AGENTS.md".to_owned());
    rule.spans = vec![PieceSpan { kind: PieceKind::Instructions, start: 0, end: 4, label }];
    let input = PieceText::Input("c1".into());
    let asked = piece(PieceKind::ToolCall, Some("Read"), input, "{}");
    let output = piece(PieceKind::ToolOutput, None, PieceText::Output("c1".into()), "four");
    PromptTree::new([
        message("head", vec![schema]),
        message("user", vec![rule]),
        message("asked", vec![asked]),
        message("output", vec![output]),
        call("1", None, 0, &["user"]),
        call("2", Some("1"), 1, &["asked", "output"]),
        call("3", None, 0, &["user"]),
    ])
}

#[test]
fn a_source_has_the_characters_of_each_call() {
    let sources = tree().sources(|_| 0);
    let found: Vec<(PieceKind, Option<&str>, u64)> =
        sources.iter().map(|share| (share.kind, share.source.as_deref(), share.chars)).collect();
    assert_eq!(
        found,
        [
            (PieceKind::UserInstruction, None, 39),
            (PieceKind::ToolSchema, Some("mcp__files__edit"), 30),
            (PieceKind::Instructions, Some("AGENTS.md"), 12),
            // The tool of an output is that of its call.
            (PieceKind::ToolOutput, Some("Read"), 4),
            (PieceKind::ToolCall, Some("Read"), 2),
        ]
    );
    assert_eq!(sources[1].server(), Some("files"));
    assert_eq!(sources[3].server(), None);
    // They are what the prompts have.
    let all: u64 = tree().calls().map(|call| call.chars()).sum();
    assert_eq!(sources.iter().map(|share| share.chars).sum::<u64>(), all);
}

#[test]
fn tokens_of_a_call_are_shared_out_by_its_characters() {
    // 27 characters, 33 and 27.
    let tokens = |call: CallPrompt<'_>| match &*call.call().request {
        "1" => 270,
        "2" => 33,
        _ => 0,
    };
    let sources = tree().sources(tokens);
    let schema = sources.iter().find(|share| share.kind == PieceKind::ToolSchema).unwrap();
    assert_eq!(schema.tokens, 100 + 10);
    assert_eq!(sources.iter().map(|share| share.tokens).sum::<u64>(), 303);
}

#[test]
fn called_tools_are_read_from_the_prompts() {
    assert_eq!(tree().called_tools().into_iter().collect::<Vec<_>>(), ["Read"]);
}
