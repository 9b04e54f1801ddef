//! The bar of what fills a prompt.

use super::*;

fn share(kind: PieceKind, chars: u64) -> Share {
    Share { kind, chars, percent: 0 }
}

fn text(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

// Law 6: the bar of the terminal is made here, for every width.
#[test]
fn a_bar_has_one_stretch_for_each_kind_in_one_order() {
    let shares = [
        share(PieceKind::ToolOutput, 50),
        share(PieceKind::Policy, 25),
        share(PieceKind::UserInstruction, 25),
    ];
    let bar_of = |width| bar(&shares, width);
    let widths: Vec<usize> = bar_of(8).iter().map(|span| span.text.chars().count()).collect();
    assert_eq!(widths, [2, 2, 4]);
    let tones: Vec<Option<Tone>> = bar_of(8).iter().map(|span| span.style.tone).collect();
    assert_eq!(tones, [Some(Tone::Running), Some(Tone::User), Some(Tone::Ok)]);
    // It is as wide as it may be, whatever is rounded.
    for width in [0, 1, 2, 3, 7, 79] {
        assert_eq!(text(&bar_of(width)).chars().count(), width);
    }
    assert_eq!(bar(&[], 10), []);
    // Kinds that get no cell do not take one from the others.
    let tiny = [share(PieceKind::Policy, 1), share(PieceKind::ToolOutput, u64::MAX / 2)];
    assert_eq!(text(&bar(&tiny, 10)), "██████████");
}
