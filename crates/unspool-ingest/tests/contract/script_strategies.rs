//! Random scripts: those of the assembler's tests with searchable words, payloads of all sizes,
//! models and usage, and the events that `generators.rs` leaves out.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use unspool_model::assemble::content_hash;
use unspool_model::event::{EventKind, ToolCall};
use unspool_model::json::Json;
use unspool_model::part::{
    Body, Compaction, ContextInfo, Data, File, Interjection, McpServer, McpSnapshot, Patch,
    SkillLoad, SourceLink, TaskItem, TaskList,
};
use unspool_model::session::{
    PromptPiece, Provenance, SnapshotUse, Title, TitleOrigin, Trigger, Usage,
};

use crate::generators::{Alphabet, deltas_once, in_order};
use crate::script::{Line, message, record, words};

/// No word contains another.
pub const WORDS: [&str; 8] =
    ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"];

const SENSIBLE: Alphabet = Alphabet { nonsense: false, ..crate::generators::ALL };

/// Scripts for a recorder that never restarts: all sensible events, with repeats.
pub fn any_script(most: usize) -> impl Strategy<Value = Vec<Line>> {
    decorated(SENSIBLE.script_with_repeats(most).prop_map(deltas_once))
}

/// Scripts that a restart may cut anywhere. Leaves out what rows cannot carry over a cut (see
/// `law_2_live_is_stored` in the assembler's tests).
pub fn cut_script(most: usize) -> impl Strategy<Value = Vec<Line>> {
    let alphabet = Alphabet { generations: false, blanks: false, ..SENSIBLE };
    decorated(alphabet.script(most).prop_map(in_order))
}

fn decorated(scripts: impl Strategy<Value = Vec<Line>>) -> impl Strategy<Value = Vec<Line>> {
    let extras = prop::collection::vec((any::<Index>(), extra()), 0..6);
    let seeds = prop::collection::vec(any::<u32>(), 64);
    (scripts, extras, seeds).prop_map(|(script, extras, seeds)| {
        let last = script.iter().filter_map(|line| line.key).max().unwrap_or_default();
        let mut script: Vec<Line> = script.into_iter().map(|line| decorate(line, &seeds)).collect();
        for ((at, kind), key) in extras.into_iter().zip(last + 1..) {
            let at = at.index(script.len() + 1);
            let feed = script.get(at).map_or(unspool_model::provenance::Feed::Log, |l| l.feed);
            script.insert(at, Line::from(kind).by(feed).key(key));
        }
        in_sequence(script)
    })
}

/// Renumbers keys in script order, so that only repeated events count as duplicates.
fn in_sequence(script: Vec<Line>) -> Vec<Line> {
    let mut seen: Vec<Option<u64>> = Vec::new();
    let renamed = script.into_iter().map(|line| {
        let earlier = seen.iter().position(|key| *key == line.key);
        let key = earlier.unwrap_or(seen.len());
        if earlier.is_none() {
            seen.push(line.key);
        }
        line.key(key as u64)
    });
    renamed.collect()
}

/// Decorates a line deterministically, so that a repeated event stays equal.
fn decorate(mut line: Line, seeds: &[u32]) -> Line {
    let seed = seeds[line.key.unwrap_or_default() as usize % seeds.len()] as usize;
    let word = WORDS[seed % WORDS.len()];
    let size = [0, 0, 40, 700, 700, 40, 0, 20_000][seed / 8 % 8];
    match &mut line.kind {
        EventKind::ProseDelta { text, .. } if !text.trim().is_empty() => {
            *text = format!("{word}{}", if seed.is_multiple_of(3) { "" } else { " " });
        }
        EventKind::ProseCompleted { text, .. } => *text = format!("{word} {}", WORDS[seed / 8 % 3]),
        EventKind::ToolOutputDelta { text, .. } => *text = filled(word, size),
        EventKind::ToolEnded { outcome, .. } | EventKind::ToolRefined { outcome, .. } => {
            outcome.output = outcome.output.take().map(|_| filled(word, size));
            outcome.result =
                (seed / 64).is_multiple_of(2).then(|| Json::string(&filled(word, size)));
        }
        EventKind::ToolCalled(call) if seed.is_multiple_of(4) => set_input(call, word, size),
        EventKind::TurnStarted { user, trigger, .. } => {
            *trigger = [Trigger::User, Trigger::Command, Trigger::Hook][seed / 8 % 3];
            *user = vec![words(&filled(word, seed / 16 % 3))];
            if seed.is_multiple_of(5) {
                user.push(Body::File(file(word, size)));
            }
        }
        EventKind::StepStarted { model, .. } => {
            *model = [None, Some("sonnet"), Some("opus")][seed % 3].map(str::to_owned);
        }
        EventKind::UsageUpdated { usage, .. } => {
            let (output, reasoning) = (seed as u64 % 1000, seed as u64 % 10);
            *usage = Usage { output, reasoning, cache_read: u64::from(seed < 9), ..*usage };
        }
        EventKind::Part(_, Body::Data(Data { payload, .. })) => {
            *payload = Json::parse(&format!("{{ \"{word}\" :\t[{size}, \"\\ud800\"] }}")).unwrap();
        }
        EventKind::SessionUpdated { .. }
        | EventKind::TitleSet(_)
        | EventKind::StartedBy(_)
        | EventKind::BranchedOff(_)
        | EventKind::TurnInherited
        | EventKind::OutcomesOnly(_)
        | EventKind::ContextWindowReported { .. }
        | EventKind::SessionEnded
        | EventKind::SessionResumed
        | EventKind::UserAdded(_)
        | EventKind::MessageRecordNamed { .. }
        | EventKind::ThinkingUpdated(_)
        | EventKind::TurnEnded(_)
        | EventKind::Rewound { .. }
        | EventKind::StepEnded { .. }
        | EventKind::ProvenanceUpdated { .. }
        | EventKind::RequestNamed { .. }
        | EventKind::PromptRecorded(_)
        | EventKind::SnapshotTaken { .. }
        | EventKind::ProseDelta { .. }
        | EventKind::BlockStarted { .. }
        | EventKind::BlockEnded { .. }
        | EventKind::ToolInputDelta { .. }
        | EventKind::ToolCalled(_)
        | EventKind::ToolStarted { .. }
        | EventKind::QuestionAsked { .. }
        | EventKind::QuestionAnswered { .. }
        | EventKind::AgentStarted { .. }
        | EventKind::AgentProgressed { .. }
        | EventKind::AgentEnded { .. }
        | EventKind::Part(..) => {}
    }
    line
}

/// Replaces the input of a call, with any size.
fn set_input(call: &mut ToolCall, word: &str, size: usize) {
    call.input = Json::parse(&format!("{{\"say\": {:?}}}", filled(word, size)));
    call.content_hash = content_hash(&call.name, call.input.as_ref());
}

/// A word followed by `size` bytes of filler.
fn filled(word: &str, size: usize) -> String {
    format!("{word}\n{}{}", "\u{b7} \"x\"\t".repeat(size.min(9)), "lorem ".repeat(size / 6))
}

fn file(word: &str, size: usize) -> File {
    File {
        name: Some(format!("{word}.txt")),
        media_type: Some("text/plain".to_owned()),
        url: Some("data:text/plain;base64,aGVyb24=".to_owned()),
        text: Some(filled(word, size)),
    }
}

/// Events that `generators.rs` leaves out.
fn extra() -> impl Strategy<Value = EventKind> {
    (0..18usize, select(&WORDS[..]), select(vec![0usize, 30, 30, 700, 18_000]), any::<bool>())
        .prop_map(|(kind, word, size, other)| {
            let text = filled(word, size);
            let name = |of: &str| Some(record(&format!("{of}{}", u8::from(other))));
            let some = || Some(word.to_owned());
            match kind {
                0 => EventKind::SessionUpdated {
                    project: Some(format!("/home/{word}")),
                    branch: some(),
                    version: Some("1.0".to_owned()),
                    cost: Some(unspool_model::price::ReportedCost::of_all(size as f64 / 3.0)),
                },
                1 | 2 => {
                    let origin = [TitleOrigin::Generated, TitleOrigin::Custom][usize::from(other)];
                    EventKind::TitleSet(Title { text: format!("{word} title"), origin })
                }
                3 if other => EventKind::SessionResumed,
                3 => EventKind::SessionEnded,
                4 => EventKind::UserAdded(words(&text)),
                5 => EventKind::UserAdded(Body::File(file(word, size))),
                6 => EventKind::ProvenanceUpdated {
                    step: message("m1"),
                    provenance: Provenance {
                        pieces: vec![PromptPiece { kind: text, value: String::new(), span: None }],
                        final_prompt: some(),
                        snapshots: vec![SnapshotUse { kind: "k".into(), sha256: word.into() }],
                    },
                },
                7 => EventKind::SnapshotTaken {
                    kind: "tools".to_owned(),
                    sha256: word.to_owned(),
                    content: Json::string(word),
                },
                8 => {
                    EventKind::Part(name("interjection"), Body::Interjection(Interjection { text }))
                }
                9 => EventKind::Part(
                    name("tasks"),
                    Body::TaskList(TaskList {
                        items: vec![TaskItem { text, ..TaskItem::default() }],
                    }),
                ),
                10 => {
                    let skill = SkillLoad { name: word.to_owned(), call_id: some(), text };
                    EventKind::Part(name("skill"), Body::SkillLoad(skill))
                }
                11 => {
                    let server =
                        McpServer { name: text, tools: vec![word.to_owned()], status: None };
                    EventKind::Part(
                        name("servers"),
                        Body::McpSnapshot(McpSnapshot { servers: vec![server] }),
                    )
                }
                12 => EventKind::Part(
                    name("context"),
                    Body::ContextInfo(ContextInfo { title: word.into(), text }),
                ),
                13 => EventKind::Part(
                    name("compaction"),
                    Body::Compaction(Compaction {
                        summary: text,
                        tokens_before: Some(9),
                        ..Compaction::default()
                    }),
                ),
                14 => EventKind::Part(name("file"), Body::File(file(word, size))),
                15 => EventKind::Part(
                    name("source"),
                    Body::Source(SourceLink { url: some(), title: Some(text), quote: None }),
                ),
                16 => {
                    let patch = Patch { path: some(), diff: text, call_id: None };
                    EventKind::Part(name("patch"), Body::Patch(patch))
                }
                _ => EventKind::UsageUpdated {
                    step: message("m2"),
                    usage: Usage { input: u64::from(other), output: 7, ..Usage::default() },
                },
            }
        })
}
