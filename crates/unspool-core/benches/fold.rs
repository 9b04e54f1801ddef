//! How many events the assembler folds in a second, on one core. The events are made here, by a
//! fixed rule, before the clock starts. Each shape is folded alone, and folded and mirrored: the
//! second is what `show` and every live view pay.

use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use unspool_core::assemble::{Assembler, likeness};
use unspool_core::event::{
    Call, EndReason, Event, Key, Outcome, SaidDetail, ToolCall, ToolEnd, Voice, What,
};
use unspool_core::id::SessionId;
use unspool_core::json::Json;
use unspool_core::part::{Body, Text};
use unspool_core::session::{Trigger, Usage};
use unspool_core::telling::{Evidence, Name, Telling};
use unspool_core::transcript::Mirror;

const AGENT: &str = "bench";
const SESSION: &str = "one";
const EVENTS: usize = 1_000_000;
/// Events of a log are large. More of them at once would measure the memory, not the fold.
const LOGGED_EVENTS: usize = 100_000;
const STEPS_OF_A_TURN: u32 = 12;
const DELTAS_OF_A_BLOCK: usize = 40;
const DELTAS_OF_AN_INPUT: usize = 12;

fn main() {
    divan::main();
}

// ── What is measured ────────────────────────────────────────────────────────────────────────

/// Token by token: blocks with names, inputs that grow, calls with results.
#[divan::bench(args = Then::ALL, sample_count = 10, sample_size = 1)]
fn live_stream(bencher: Bencher<'_, '_>, then: Then) {
    measure(bencher, then, script(Telling::Stream, EVENTS, STEPS_OF_A_TURN, live_step));
}

/// As a log tells it: whole blocks, calls and results.
#[divan::bench(args = Then::ALL, sample_count = 30, sample_size = 1)]
fn log(bencher: Bencher<'_, '_>, then: Then) {
    measure(bencher, then, script(Telling::Log, LOGGED_EVENTS, STEPS_OF_A_TURN, logged_step));
}

/// Token by token from a source that names nothing: the kind rule decides.
#[divan::bench(args = Then::ALL, sample_count = 10, sample_size = 1)]
fn nameless(bencher: Bencher<'_, '_>, then: Then) {
    measure(bencher, then, script(Telling::Stream, EVENTS, STEPS_OF_A_TURN, nameless_step));
}

/// The same live stream in a single turn that never ends: what a long run costs per event must
/// not grow with its length.
#[divan::bench(args = Then::ALL, sample_count = 3, sample_size = 1)]
fn one_long_turn(bencher: Bencher<'_, '_>, then: Then) {
    measure(bencher, then, script(Telling::Stream, EVENTS, u32::MAX, live_step));
}

/// A log that tells again, block by block, what a live stream has told: two tellings of one
/// session. Fewer events than above: arranging two tellings is the dear part.
#[divan::bench(args = Then::ALL, sample_count = 5, sample_size = 1)]
fn stream_then_log(bencher: Bencher<'_, '_>, then: Then) {
    let mut events = script(Telling::Stream, EVENTS / 4, STEPS_OF_A_TURN, live_step);
    events.extend(script(Telling::Log, EVENTS / 20, STEPS_OF_A_TURN, logged_step));
    measure(bencher, then, events);
}

/// Both tellings of one turn with this many steps, four parts each. What an event costs must not
/// grow with the turn.
#[divan::bench(args = [25, 50, 100], sample_count = 3, sample_size = 1)]
fn turn_told_twice(bencher: Bencher<'_, '_>, steps: usize) {
    let events = |telling, step: StepScript| {
        let mut script = Script::new(telling);
        script.start_turn(0);
        (0..steps as u32).for_each(|nth| step(&mut script, nth));
        script.events
    };
    let told = [events(Telling::Stream, live_step), events(Telling::Log, logged_step)].concat();
    measure(bencher, Then::Mirrored, told);
}

/// What becomes of the changes.
#[derive(Clone, Copy, Debug)]
enum Then {
    Dropped,
    Mirrored,
}

impl Then {
    const ALL: [Then; 2] = [Then::Dropped, Then::Mirrored];
}

impl std::fmt::Display for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Then::Dropped => "folded",
            Then::Mirrored => "folded and mirrored",
        })
    }
}

fn measure(bencher: Bencher<'_, '_>, then: Then, events: Vec<Event>) {
    let bencher =
        bencher.counter(ItemsCount::new(events.len())).with_inputs(|| (events.clone(), fresh()));
    match then {
        Then::Dropped => bencher.bench_values(|(events, (mut assembler, mirror))| {
            for event in events {
                black_box(assembler.apply(event));
            }
            (assembler, mirror)
        }),
        Then::Mirrored => bencher.bench_values(|(events, (mut assembler, mut mirror))| {
            for event in events {
                mirror.apply_all(assembler.apply(event));
            }
            (assembler, mirror)
        }),
    }
}

fn fresh() -> (Assembler, Mirror) {
    (Assembler::new(SessionId::of(AGENT, SESSION)), Mirror::new(AGENT, SESSION))
}

// ── What is folded ──────────────────────────────────────────────────────────────────────────

type StepScript = fn(&mut Script, u32);

/// The events of a session, written one after the other.
struct Script {
    telling: Telling,
    record: u64,
    offset: u64,
    events: Vec<Event>,
}

fn script(telling: Telling, length: usize, steps_of_a_turn: u32, step: StepScript) -> Vec<Event> {
    let mut script = Script::new(telling);
    let mut steps = 0;
    while script.events.len() < length {
        if steps % steps_of_a_turn == 0 {
            if steps > 0 {
                script.push(What::TurnEnded(EndReason::Completed));
            }
            script.start_turn(steps / steps_of_a_turn);
        }
        step(&mut script, steps);
        steps += 1;
    }
    script.events
}

impl Script {
    fn new(telling: Telling) -> Script {
        Script { telling, record: 0, offset: 0, events: Vec::new() }
    }

    fn push(&mut self, what: What) {
        let length = 180;
        // Records are named by digests, so their keys are not neighbours.
        let record = (self.record ^ (self.telling.index() as u64) << 60)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
        let evidence = Evidence {
            telling: self.telling,
            source: self.telling.index() as u16,
            offset: self.offset,
            length,
            digest: record,
        };
        self.events.push(Event {
            key: Key { record, nth: 0 },
            telling: self.telling,
            at: jiff::Timestamp::from_millisecond(1_700_000_000_000 + self.record as i64).ok(),
            evidence,
            turn: None,
            generation: None,
            what,
        });
        self.record += 1;
        self.offset += u64::from(length);
    }

    fn start_turn(&mut self, turn: u32) {
        let text = format!("Please do the {turn}th thing, and then tell me what you have found.");
        let names = vec![Name::Prompt(format!("prompt-{turn:08}").into())];
        let user = vec![Body::Text(Text { text, ..Text::default() })];
        self.push(What::TurnStarted { names, trigger: Trigger::User, user });
    }

    fn start_step(&mut self, message: &Arc<str>) {
        let model = Some("some-model".to_owned());
        self.push(What::StepStarted { step: Name::Message(message.clone()), model });
    }

    fn end_step(&mut self, message: &Arc<str>) {
        let step = Name::Message(message.clone());
        let usage = Usage { input: 12, output: 900, cache_read: 40_000, ..Usage::default() };
        self.push(What::UsageTold { step: step.clone(), usage });
        self.push(What::StepEnded { step, stop_reason: Some("tool_use".to_owned()) });
    }

    fn grow(&mut self, voice: Voice, block: Option<&Name>) {
        for _ in 0..DELTAS_OF_A_BLOCK {
            let text = self.delta();
            self.push(What::Grew { voice, block: block.cloned(), text });
        }
    }

    /// About twenty characters, never twice the same.
    fn delta(&self) -> String {
        format!(" and {:07} other", self.record % 10_000_000)
    }

    fn call(&mut self, id: &Arc<str>) {
        let name = "Read";
        let path = self.record;
        let input = Json::parse(&format!(r#"{{"file_path":"src/module_{path}.rs","limit":200}}"#));
        self.push(What::ToolCalled(Box::new(ToolCall {
            call: Call::Id(id.clone()),
            parent_call_id: None,
            name: name.to_owned(),
            likeness: likeness(name, input.as_ref()),
            input,
            provider_executed: false,
            title: None,
            running: true,
        })));
    }

    fn end_call(&mut self, id: &Arc<str>) {
        let output = format!("{:06}  fn one_of_many() {{}}\n", self.record % 1_000_000).repeat(20);
        let result = Some(Json::string(&output));
        let outcome =
            Outcome { output: Some(output), result, exit_code: None, duration_ms: Some(12) };
        let call = Call::Id(id.clone());
        self.push(What::ToolEnded { call, end: ToolEnd::Completed, outcome });
    }
}

fn message(step: u32) -> Arc<str> {
    format!("msg_01{step:020}").into()
}

fn call_id(step: u32, nth: u32) -> Arc<str> {
    format!("toolu_01{step:016}{nth:04}").into()
}

/// Reasoning, text, and two calls whose inputs grow; then their results.
fn live_step(script: &mut Script, step: u32) {
    let message = message(step);
    let block = |index| Name::Block(message.clone(), index);
    script.start_step(&message);
    for (index, voice) in [(0, Voice::Reasoning), (1, Voice::Text)] {
        script.grow(voice, Some(&block(index)));
        script.push(What::BlockEnded { block: block(index) });
    }
    for nth in 0..2 {
        let call = call_id(step, nth);
        for delta in 0..DELTAS_OF_AN_INPUT {
            let name = if delta == 0 { "Read".to_owned() } else { String::new() };
            let text = script.delta();
            script.push(What::ToolInputGrew { call: Call::Id(call.clone()), name, text });
        }
        script.call(&call);
        script.push(What::BlockEnded { block: block(2 + nth) });
    }
    script.end_step(&message);
    for nth in 0..2 {
        script.end_call(&call_id(step, nth));
    }
}

/// The same step, block by block.
fn logged_step(script: &mut Script, step: u32) {
    let message = message(step);
    script.start_step(&message);
    for (index, voice) in [(0, Voice::Reasoning), (1, Voice::Text)] {
        let text: String = (0..DELTAS_OF_A_BLOCK).map(|_| script.delta()).collect();
        let block = Some(Name::Block(message.clone(), index));
        script.push(What::Said { voice, block, text, detail: SaidDetail::default() });
    }
    for nth in 0..2 {
        script.call(&call_id(step, nth));
    }
    script.end_step(&message);
    for nth in 0..2 {
        script.end_call(&call_id(step, nth));
    }
}

/// The same step from a source that names neither steps nor blocks.
fn nameless_step(script: &mut Script, step: u32) {
    script.grow(Voice::Reasoning, None);
    script.grow(Voice::Text, None);
    let call = call_id(step, 0);
    script.call(&call);
    script.end_call(&call);
}
