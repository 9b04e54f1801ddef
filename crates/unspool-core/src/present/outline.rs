//! A turn in one line, with what people look for in it: the prompt, errors, edits, sub-agents.

use super::{Item, PartView, TurnView, format};
use crate::block::{Block, Icon, Tone, text_of};
use crate::part::Kind;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outline {
    pub number: u32,
    /// The first words of the prompt.
    pub said: String,
    pub errors: usize,
    pub edits: usize,
    pub agents: usize,
}

impl Outline {
    pub fn of(view: &TurnView) -> Outline {
        let parts = || view.items.iter().flat_map(parts_of);
        let count =
            |is: fn(&Block) -> bool| parts().filter(|part| part.blocks.iter().any(is)).count();
        Outline {
            number: view.header.number,
            said: view.user.iter().find_map(first_words).unwrap_or_default(),
            errors: count(is_failure),
            edits: count(is_edit),
            agents: parts().filter(|part| part.kind == Kind::Agent).count(),
        }
    }
}

fn parts_of(item: &Item) -> &[PartView] {
    match item {
        Item::Part(part) => std::slice::from_ref(part),
        Item::Reasoning(group) => &group.parts,
    }
}

fn first_words(block: &Block) -> Option<String> {
    let Block::Paragraph { spans } = block else { return None };
    Some(format::first_line(&text_of(spans), 80)).filter(|said| !said.is_empty())
}

fn is_failure(block: &Block) -> bool {
    if let Block::Card(card) = block {
        return card.icon == Icon::Failed;
    }
    matches!(block, Block::Notice(notice) if notice.tone == Tone::Failed)
}

fn is_edit(block: &Block) -> bool {
    if let Block::Card(card) = block {
        return card.body.iter().any(is_edit);
    }
    matches!(block, Block::Diff(_))
}
