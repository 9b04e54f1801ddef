//! Paints a reasoning block as Markdown: its words are folded, its calls and agents follow (C-23).

use unspool_model::part::Kind;
use unspool_view::block::Block;
use unspool_view::present::{PartView, ReasoningView};

use super::inline::escape;
use super::note::note;
use super::{add_part, details, gist_of, inner, join_blocks, part};

/// Adds the items of a block.
pub fn add(out: &mut Vec<String>, view: &ReasoningView) {
    let is_thought = |one: &PartView| one.kind == Kind::Reasoning;
    for run in view.parts.chunk_by(|one, next| is_thought(one) && is_thought(next)) {
        let Some(first) = run.first() else { continue };
        if !is_thought(first) {
            add_part(out, first, part(first));
            continue;
        }
        let words = join_blocks(run.iter().map(inner));
        let title = match first.blocks.as_slice() {
            _ if first.id == view.id => gist_of(&view.title, &view.summary),
            [Block::Fold(fold)] => gist_of("Reasoning", &fold.summary),
            _ => "Reasoning".to_owned(),
        };
        out.push(match words.is_empty() {
            true => format!("*{}*", escape(&title)),
            false => details(&title, &words),
        });
        out.extend(run.iter().filter_map(|one| one.note.as_ref()).map(note));
    }
}
