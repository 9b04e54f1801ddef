use std::sync::Arc;

use unspool_model::prompt::{
    MessageDigest, MessageList, PieceSpan, PieceText, PromptAnswer, PromptCall, PromptMessage,
    PromptRecord, PromptTree, Role,
};

use super::*;

/// A log of one call with these pieces in one message.
fn log(pieces: Vec<(Piece, &str)>) -> PromptLog {
    let digest = MessageDigest::of(b"message");
    let texts = pieces
        .iter()
        .map(|(piece, text)| ((piece.text.clone(), piece.digest), Arc::<str>::from(*text)));
    let texts = texts.collect();
    let pieces = pieces.into_iter().map(|(piece, _)| piece).collect();
    let message = PromptMessage { digest, role: Role::User, verified: true, pieces };
    let call = PromptCall {
        request: "r".into(),
        at: None,
        model: None,
        head: None,
        base: None,
        keep: 0,
        tail: vec![digest],
        list: MessageList::Messages,
        gaps: Vec::new(),
    };
    let tree = PromptTree::new([PromptRecord::Message(message), PromptRecord::Call(call)]);
    PromptLog::new(RecordedPrompts { tree, texts })
}

fn step() -> Name {
    Name::Message("m".into())
}

fn piece(kind: PieceKind, text: &str) -> (Piece, &str) {
    let place = PieceText::Kept(sha256(text.as_bytes()));
    (Piece::new(kind, "/content/0/text".to_owned(), place, text), text)
}

/// Every span says where its part stands, and nothing overlaps.
fn check_spans(composed: &ComposedPrompt) {
    let prompt: Vec<char> = composed.final_prompt.chars().collect();
    let mut last = 0;
    for part in &composed.parts {
        let (start, end) = part.span.unwrap();
        assert!(last <= start && start < end);
        let there: String = prompt[start as usize..end as usize].iter().collect();
        assert_eq!(there, part.value);
        last = end;
    }
}

// R-002-16, R-002-17, R-002-18
#[test]
fn pieces_are_cut_at_spans_and_frames() {
    let text = "Näh. CLAUDE <unspool-adaptations ids=\"a\">Kürzer.</unspool-adaptations> end";
    let (mut first, _) = piece(PieceKind::Reminder, text);
    let span = PieceSpan { kind: PieceKind::Instructions, start: 5, end: 11, label: None };
    first.spans.push(span);
    let pieces = vec![
        (first, text),
        piece(PieceKind::ToolOutput, "<unspool-adaptations>not mine</unspool-adaptations>"),
        piece(PieceKind::Policy, "Be good."),
        piece(PieceKind::ToolSchema, r#"{"name":"Read"}"#),
        piece(PieceKind::UserInstruction, "Hello"),
    ];
    let mut log = log(pieces);
    let prompt = log.prompt(Some("r"), &step()).unwrap();
    let composed = prompt.composed.unwrap();
    assert_eq!(composed.final_prompt, format!("{text}\nBe good."));
    let types: Vec<&str> = composed.parts.iter().map(|part| part.kind.type_name()).collect();
    let expected = [
        "context_preamble",
        "user_instruction",
        "prompt_adaptations",
        "context_preamble",
        "personality",
    ];
    assert_eq!(types, expected);
    check_spans(&composed);
    let user = composed.user.as_ref().unwrap();
    assert_eq!((user.value.as_str(), user.span), ("Hello", None));
    // What a tool printed is no adaptation.
    let [adaptation] = composed.adaptations.as_slice() else { panic!() };
    assert_eq!(adaptation.content, "Kürzer.");
    assert_eq!(adaptation.ids.as_deref(), Some(&["a".to_owned()][..]));
    assert_eq!(composed.tools.len(), 1);
}

// Law 10
#[test]
fn an_unrecorded_text_is_counted_and_not_filled_in() {
    let (known, unknown) = (piece(PieceKind::Policy, "known"), piece(PieceKind::Policy, "gone"));
    let place = (unknown.0.text.clone(), unknown.0.digest);
    let mut log = log(vec![known, unknown]);
    log.prompts.texts.remove(&place);
    let prompt = log.prompt(Some("r"), &step()).unwrap();
    assert_eq!(prompt.truth.unknown_pieces, 1);
    assert!(!prompt.truth.is_complete() && !prompt.truth.shows_adaptations());
    assert_eq!(prompt.composed.unwrap().final_prompt, "known");
}

#[test]
fn a_document_has_room_for_so_many_characters() {
    let text = "x".repeat(1024 * 1024);
    let mut log = log(vec![piece(PieceKind::Policy, &text)]);
    let written =
        (0..100).filter(|_| log.prompt(Some("r"), &step()).unwrap().composed.is_some()).count();
    assert!((31..=32).contains(&written), "{written}");
    assert_eq!(
        log.prompt(Some("r"), &step()).unwrap().truth.chars,
        1024 * 1024,
        "its length is still said"
    );
}

/// What a trace of requests has and the log has not.
#[test]
fn a_request_that_only_a_trace_has_is_found_by_its_step() {
    // R-002-15
    let mut log = log(vec![piece(PieceKind::Policy, "known")]);
    assert!(log.prompt(None, &step()).is_none());
    let answer = PromptAnswer { request: "r".into(), step: step() };
    let digest = MessageDigest::of(b"message");
    let message = log.prompts.tree.message(digest).unwrap().clone();
    let call = log.prompts.tree.call("r").unwrap().call().clone();
    let records =
        [PromptRecord::Message(message), PromptRecord::Call(call), PromptRecord::Answer(answer)];
    log.prompts.tree = PromptTree::new(records);
    let prompt = log.prompt(None, &step()).unwrap();
    assert_eq!(prompt.composed.unwrap().final_prompt, "known");
    assert!(log.prompt(None, &Name::Message("other".into())).is_none());
}
