use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{MessageList, Piece, PieceText, Role};
use super::*;

fn message(n: u128) -> PromptMessage {
    let text = "x".repeat(n as usize % 7 + 1);
    let kind = PieceKind::ALL[n as usize % KINDS];
    let piece = Piece::new(kind, "/content".to_owned(), PieceText::Binary, &text);
    PromptMessage {
        digest: MessageDigest(n),
        role: Role::User,
        verified: true,
        pieces: vec![piece],
    }
}

fn call(request: usize, base: Option<usize>, keep: u32, tail: Vec<u128>) -> PromptRecord {
    PromptRecord::Call(PromptCall {
        request: request.to_string().into(),
        at: None,
        model: None,
        head: None,
        base: base.map(|base| base.to_string().into()),
        keep,
        tail: tail.into_iter().map(MessageDigest).collect(),
        list: MessageList::Messages,
        gaps: Vec::new(),
    })
}

proptest! {
    /// A prompt is what its differences say, whatever they are.
    #[test]
    fn differences_give_the_messages(
        calls in vec((0usize..40, 0u32..40, vec(0u128..30, 0..4)), 1..40),
    ) {
        // Messages from 25 on are never recorded.
        let mut records: Vec<PromptRecord> =
            (0..25).map(|n| PromptRecord::Message(message(n))).collect();
        let mut expected: Vec<(u32, Vec<u128>)> = Vec::new();
        for (n, (base, keep, tail)) in calls.iter().enumerate() {
            let held = expected.get(*base).cloned().unwrap_or_default();
            let kept = (*keep as usize).min(held.1.len());
            let lost = keep - kept as u32;
            let mut messages = held.1[..kept].to_vec();
            messages.extend(tail);
            expected.push((lost, messages));
            records.push(call(n, (*base < n).then_some(*base), *keep, tail.clone()));
        }
        let tree = PromptTree::new(records);
        prop_assert_eq!(tree.calls().len(), expected.len());
        for (call, (lost, messages)) in tree.calls().zip(&expected) {
            let digests: Vec<u128> = call.digests().into_iter().map(|digest| digest.0).collect();
            prop_assert_eq!(&digests, messages);
            prop_assert_eq!(call.message_count(), lost + messages.len() as u32);
            let unknown = messages.iter().filter(|n| **n >= 25).count() as u32;
            prop_assert_eq!(call.unknown_messages(), lost + unknown);
            let known = messages.iter().filter(|n| **n < 25);
            let chars: u64 = known.map(|n| message(*n).chars()).sum();
            prop_assert_eq!(call.chars(), chars);
        }
        for (one, other) in tree.calls().zip(tree.calls().skip(1)) {
            let (mine, others) = (one.digests(), other.digests());
            let shared = mine.iter().zip(&others).take_while(|(mine, other)| mine == other).count();
            prop_assert_eq!(one.shared_messages(other) as usize, shared);
        }
    }
}

#[test]
fn any_message_is_found_in_few_steps() {
    let tail: Vec<u128> = (0..5000).collect();
    let tree = PromptTree::new([call(0, None, 0, tail)]);
    for depth in [1, 2, 17, 2500, 4999, 5000] {
        let found = tree.ancestor(4999, depth).unwrap();
        assert_eq!(tree.nodes[found].digest, MessageDigest(u128::from(depth) - 1));
    }
    // Jumps have lengths of powers of two, less one.
    let mut at = 4999;
    let mut steps = 0;
    while tree.nodes[at].depth > 1 {
        at = tree.nodes[at].jump.unwrap();
        steps += 1;
    }
    assert!(steps < 40, "{steps}");
}

#[test]
fn digests_are_written_as_text() {
    let digest = MessageDigest::of(b"{}");
    let text = serde_json::to_string(&digest).unwrap();
    // The first half of `printf '{}' | sha256sum`.
    assert_eq!(text, "\"44136fa355b3678a1146ad16f7e8649e\"");
    assert_eq!(serde_json::from_str::<MessageDigest>(&text).unwrap(), digest);
}
