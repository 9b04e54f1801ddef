use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::assemble::Assembler;
use crate::event::{CallRef, Event, EventKey, EventKind, ProseDetail, ProseKind, ToolCall};
use crate::id::SessionId;
use crate::provenance::Evidence;
use crate::session::Trigger;

/// One thing that an agent did.
#[derive(Clone, Debug)]
enum Action {
    Prose(ProseKind, &'static str),
    /// Only the stream has it, or only the log.
    OnlyStream(ProseKind, &'static str),
    OnlyLog(ProseKind, &'static str),
    Call,
    /// Two calls, which the log has in the other order, perhaps with a text between them.
    CallsAtOnce(Option<&'static str>),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let prose = || {
        let kind = select(vec![ProseKind::Text, ProseKind::Text, ProseKind::Reasoning]);
        (kind, select(vec!["a", "b", "a b", "c d e", "ab ba"]))
    };
    let action = prop_oneof![
        4 => prose().prop_map(|(kind, text)| Action::Prose(kind, text)),
        1 => prose().prop_map(|(kind, text)| Action::OnlyStream(kind, text)),
        1 => prose().prop_map(|(kind, text)| Action::OnlyLog(kind, text)),
        3 => Just(Action::Call),
        2 => prop::option::of(select(vec!["a", "b"])).prop_map(Action::CallsAtOnce),
    ];
    prop::collection::vec(action, 1..14)
}

fn call(id: String) -> EventKind {
    EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.into()),
        parent_call_id: None,
        name: "Read".to_owned(),
        content_hash: 0,
        input: None,
        provider_executed: false,
        title: None,
        running: true,
    }))
}

/// What a feed reports of the actions.
fn report(feed: Feed, actions: &[Action]) -> Vec<Event> {
    let names = vec![Name::Prompt("prompt".into())];
    let mut kinds =
        vec![EventKind::TurnStarted { names, trigger: Trigger::User, user: Vec::new() }];
    let say = |nth: usize, prose_kind: ProseKind, text: &str, kinds: &mut Vec<EventKind>| {
        if feed == Feed::Log {
            let block = Some(Name::Record(format!("text {nth}").into()));
            let (text, detail) = (text.to_owned(), ProseDetail::default());
            kinds.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        } else {
            let delta = |text: &str| EventKind::ProseDelta {
                prose_kind,
                block: None,
                text: text.to_owned(),
            };
            kinds.extend(text.split_inclusive(' ').map(delta));
        }
    };
    for (nth, action) in actions.iter().enumerate() {
        match action {
            Action::Prose(kind, text) => say(nth, *kind, text, &mut kinds),
            Action::OnlyStream(kind, text) if feed == Feed::Stream => {
                say(nth, *kind, text, &mut kinds);
            }
            Action::OnlyLog(kind, text) if feed == Feed::Log => say(nth, *kind, text, &mut kinds),
            Action::OnlyStream(..) | Action::OnlyLog(..) => {}
            Action::Call => kinds.push(call(format!("call {nth}"))),
            Action::CallsAtOnce(between) => {
                let [first, second] = ["a", "b"].map(|of| call(format!("call {nth} {of}")));
                let mut said = Vec::new();
                between.iter().for_each(|text| say(nth, ProseKind::Text, text, &mut said));
                if feed == Feed::Log {
                    kinds.push(second);
                    kinds.extend(said);
                    kinds.push(first);
                } else {
                    kinds.extend([first, second]);
                    kinds.extend(said);
                }
            }
        }
    }
    let event = |(offset, kind): (u64, EventKind)| {
        let source = feed.index() as u16;
        let evidence = Evidence { feed, source, offset, length: 1, digest: offset };
        let key = EventKey { record: offset, nth: 0 };
        Event { key, feed, at: None, evidence, turn: None, generation: None, kind }
    };
    (0..).zip(kinds).map(event).collect()
}

/// Removes a part, or lets it appear again: parts are merged and moved to other turns, and what a
/// part is may be known late.
fn toggle(assembler: &mut Assembler, at: usize) {
    let count = assembler.turns.first().map_or(0, |turn| turn.parts.len());
    if count > 0 {
        let part = assembler.part((0, at % count));
        part.gone = !part.gone;
    }
}

fn stripped(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

/// What the log has of each run of a gap: all its texts, looked for in all its runs.
fn covered(runs: &[String], texts: &[Words]) -> Vec<String> {
    let all: String = runs.concat();
    let mut taken = vec![false; all.len()];
    let mut from = 0;
    for text in texts {
        let mut starts = from..(all.len() + 1).saturating_sub(text.length);
        let found = starts.find(|at| Words::of(&all[*at..at + text.length]) == *text);
        if let Some(at) = found {
            taken[at..at + text.length].fill(true);
            from = at + text.length;
        }
    }
    let mut start = 0;
    let covered = runs.iter().map(|run| {
        let letters = run.char_indices().filter(|(at, _)| taken[start + at]);
        let covered = letters.map(|(_, letter)| letter).collect();
        start += run.len();
        covered
    });
    covered.collect()
}

/// Compares what is hidden with a comparison of everything in each gap.
fn check(assembler: &Assembler) -> Result<(), TestCaseError> {
    let [turn] = &assembler.turns[..] else { return Ok(()) };
    let Some(held) = &turn.lookups.runs else { return Ok(()) };
    for gap in std::iter::once(None).chain(held.shared.keys().map(|at| Some(*at))) {
        for kind in ProseRole::ALL {
            let in_gap = |at: &&(u32, u32)| held.gap_of_run(at.0) == gap;
            let runs: Vec<_> = held.runs[kind as usize].iter().filter(in_gap).collect();
            let in_gap = |at: &&(u32, u32)| held.gap_of_text(at.0) == gap;
            let texts: Vec<_> = held.texts[kind as usize].iter().filter(in_gap).collect();
            let between = held.texts_between(gap);
            let found = between.iter().flat_map(|between| between.of(&held.texts[kind as usize]));
            prop_assert_eq!(&texts, &found.collect::<Vec<_>>());
            let part = |at: &&(u32, u32)| &turn.parts[at.1 as usize];
            let whole = |part: &PartFold| {
                let ended = part.run.as_ref().map(|run| run.text.as_str());
                let open = part.prose.as_ref().map(|prose| prose.text.as_str());
                stripped(open.or(ended).unwrap_or_default())
            };
            let hidden = |part: &PartFold| {
                let cut = part.origin.cut.iter().map(|(_, words)| words.as_str());
                if part.origin.is_hidden() {
                    whole(part)
                } else {
                    stripped(&cut.collect::<String>())
                }
            };
            let words: Vec<Words> = texts.iter().map(|at| part(at).words).collect();
            let wholes: Vec<String> = runs.iter().map(|at| whole(part(at))).collect();
            let shown: Vec<String> = runs.iter().map(|at| hidden(part(at))).collect();
            prop_assert_eq!(covered(&wholes, &words), shown);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_hidden_equals_a_comparison_of_everything(
        actions in actions(),
        bursts in prop::collection::vec(
            (any::<bool>(), 1..8usize, prop::option::of(0..40usize)),
            0..12,
        ),
    ) {
        let mut log = report(Feed::Log, &actions).into_iter();
        let mut stream = report(Feed::Stream, &actions).into_iter();
        let mut assembler = Assembler::new(SessionId::of("agent", "session"));
        for (of_log, length, toggled) in
            bursts.into_iter().chain([(true, 100, None), (false, 100, None)])
        {
            if let Some(at) = toggled {
                toggle(&mut assembler, at);
                assembler.recount();
                assembler.settle_runs();
                assembler.recount();
                check(&assembler)?;
            }
            let feed = if of_log { &mut log } else { &mut stream };
            for event in feed.take(length) {
                assembler.apply(event);
                check(&assembler)?;
            }
        }
    }
}
