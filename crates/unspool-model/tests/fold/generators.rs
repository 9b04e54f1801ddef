//! Generators of random scripts over a small alphabet of names, feeds and events, so that
//! collisions, late events, repeats and nonsense are frequent.

use proptest::prelude::*;
use proptest::sample::select;
use unspool_model::assemble::content_hash;
use unspool_model::event::{
    AgentEnd, CallRef, EndReason, EventKind, ProseKind, ToolEnd, ToolOutcome,
};
use unspool_model::json::Json;
use unspool_model::part::Decision;
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Usage;

use crate::script::*;

/// Which events the scripts may contain.
#[derive(Clone, Copy)]
pub struct Alphabet {
    pub feeds: &'static [Feed],
    /// Prose and parts without names: a repeat of these is a new part.
    pub nameless: bool,
    /// Deltas of white space only.
    pub blanks: bool,
    /// Streams that replace each other.
    pub generations: bool,
    /// Events that name their turn.
    pub turn_names: bool,
    /// Names of parts of another kind, and turns without a name.
    pub nonsense: bool,
}

pub const LOG: &[Feed] = &[Feed::Log];

pub const ALL: Alphabet = Alphabet {
    feeds: &Feed::ALL,
    nameless: true,
    blanks: true,
    generations: true,
    turn_names: true,
    nonsense: true,
};

/// The events of one well-formed source.
pub const ONE_SOURCE: Alphabet = Alphabet {
    feeds: LOG,
    nameless: true,
    blanks: false,
    generations: false,
    turn_names: false,
    nonsense: false,
};

impl Alphabet {
    /// A script in which every line has its own key.
    pub fn script(self, most: usize) -> impl Strategy<Value = Vec<Line>> {
        let lines = prop::collection::vec(self.line(), 1..most);
        lines
            .prop_map(|lines| lines.into_iter().zip(0..).map(|(line, key)| line.key(key)).collect())
    }

    /// A script in which some lines are repeated later, under the same key.
    pub fn script_with_repeats(self, most: usize) -> impl Strategy<Value = Vec<Line>> {
        let repeats = prop::collection::vec((any::<prop::sample::Index>(), 0..most), 0..6);
        (self.script(most), repeats).prop_map(|(mut script, repeats)| {
            for (which, distance) in repeats {
                let from = which.index(script.len());
                let at = (from + 1 + distance).min(script.len());
                script.insert(at, script[from].clone());
            }
            script
        })
    }

    fn line(self) -> impl Strategy<Value = Line> {
        let generation = if self.generations {
            prop_oneof![4 => Just(None), 1 => (1..3u32).prop_map(Some)].boxed()
        } else {
            Just(None).boxed()
        };
        let turn = if self.turn_names {
            prop_oneof![4 => Just(None), 1 => prompts().prop_map(Some)].boxed()
        } else {
            Just(None).boxed()
        };
        (self.kind(), select(self.feeds), generation, turn).prop_map(
            |(kind, feed, generation, turn)| Line { generation, turn, feed, ..Line::from(kind) },
        )
    }

    fn kind(self) -> impl Strategy<Value = EventKind> {
        prop_oneof![
            3 => self.turns(),
            6 => self.prose(),
            8 => self.tools(),
            4 => agents(),
            3 => self.parts(),
        ]
    }

    fn turns(self) -> BoxedStrategy<EventKind> {
        let names = if self.nonsense {
            prop_oneof![
                4 => prompts().prop_map(|name| vec![name]),
                1 => Just(vec![]),
                1 => Just(vec![record("n1")]),
                1 => Just(vec![Name::ByContent(1, 0)]),
            ]
            .boxed()
        } else {
            // Log and stream have the prompt's id, hooks only its text.
            prop_oneof![
                4 => prompts().prop_map(|name| vec![name]),
                1 => Just(vec![prompt_name("p1"), Name::ByContent(1, 0)]),
                1 => Just(vec![Name::ByContent(1, 0)]),
                1 => Just(vec![Name::ByContent(2, 0)]),
                1 => Just(vec![record("u1")]),
            ]
            .boxed()
        };
        let reasons = select(vec![
            EndReason::Completed,
            EndReason::Failed(None),
            EndReason::Failed(Some("boom".to_owned())),
            EndReason::Interrupted,
            EndReason::Idle,
            EndReason::Superseded,
            EndReason::Unseen,
        ]);
        prop_oneof![
            4 => names.prop_map(|names| started(names, vec![words("ask")]).kind),
            3 => reasons.prop_map(EventKind::TurnEnded),
            1 => any::<bool>().prop_map(EventKind::ThinkingUpdated),
            1 => (any::<bool>(), 0..4).prop_map(|(is_reply, id)| {
                EventKind::MessageRecordNamed { is_reply, id: format!("r{id}"), parent: None }
            }),
            1 => prompts().prop_map(|to| EventKind::Rewound { turns: vec![to] }),
            1 => Just(EventKind::TurnInherited),
            3 => messages().prop_map(|step| EventKind::StepStarted { step, model: None }),
            1 => messages().prop_map(|step| EventKind::StepEnded { step, stop_reason: None }),
            1 => messages().prop_map(|step| {
                EventKind::RequestNamed { request: step.id_text().into(), step }
            }),
            1 => (messages(), 0..9u64).prop_map(|(step, input)| EventKind::UsageUpdated {
                step,
                usage: Usage { input, ..Usage::default() },
            }),
        ]
        .boxed()
    }

    fn prose(self) -> BoxedStrategy<EventKind> {
        // The index determines the kind of prose, as in a real message.
        let named = (select(vec!["m1", "m2"]), 0..4u32).prop_map(|(message, index)| {
            let prose_kind = if index % 2 == 0 { ProseKind::Reasoning } else { ProseKind::Text };
            (prose_kind, Some(block(message, index)))
        });
        let voices = select(vec![ProseKind::Text, ProseKind::Reasoning]);
        let target = match (self.nameless, self.nonsense) {
            (false, _) => named.boxed(),
            (true, false) => {
                prop_oneof![2 => named, 1 => voices.prop_map(|prose_kind| (prose_kind, None))]
                    .boxed()
            }
            (true, true) => {
                let odd = (voices.clone(), names())
                    .prop_map(|(prose_kind, name)| (prose_kind, Some(name)));
                prop_oneof![4 => named, 2 => voices.prop_map(|prose_kind| (prose_kind, None)), 1 => odd]
                    .boxed()
            }
        };
        let deltas = if self.blanks { vec!["a", "b", "c ", " ", ""] } else { vec!["a", "b", "c "] };
        let grown = (target.clone(), select(deltas)).prop_map(|((prose_kind, block), text)| {
            EventKind::ProseDelta { prose_kind, block, text: text.to_owned() }
        });
        let whole = (target.clone(), select(vec!["a", "ab", "c "])).prop_map(
            |((prose_kind, block), text)| {
                said_with(prose_kind, block, text, Default::default()).kind
            },
        );
        let begun = target.clone().prop_filter_map("a name", |(_, block)| {
            Some(EventKind::BlockStarted { block: block? })
        });
        let over = target
            .prop_filter_map("a name", |(_, block)| Some(EventKind::BlockEnded { block: block? }));
        prop_oneof![4 => grown, 2 => whole, 1 => begun, 1 => over].boxed()
    }

    fn tools(self) -> BoxedStrategy<EventKind> {
        let calls = || {
            let alike = content_hash("Bash", Json::parse(r#"{"q":1}"#).as_ref());
            let nameless = self.feeds.len() > 1;
            let ids = select(vec!["t1", "t2", "t3"]).prop_map(call_id);
            if nameless {
                prop_oneof![6 => ids, 1 => (0..2u32).prop_map(move |n| CallRef::ByContent(alike, n))]
                    .boxed()
            } else {
                ids.boxed()
            }
        };
        let ends = select(vec![
            ToolEnd::Completed,
            ToolEnd::Failed,
            ToolEnd::Denied,
            ToolEnd::Interrupted,
            ToolEnd::Rejected,
        ]);
        let outcome = || {
            (any::<bool>(), any::<bool>()).prop_map(|(output, exit)| ToolOutcome {
                output: output.then(|| "out".to_owned()),
                exit_code: exit.then_some(1),
                ..ToolOutcome::default()
            })
        };
        let requests = select(vec![None, Some("r1"), Some("r2")]);
        let asks = (calls(), requests, any::<bool>(), prop::bool::weighted(0.2));
        prop_oneof![
            1 => calls().prop_map(|call| EventKind::ToolInputDelta { call, name: "Bash".into(), text: "{".into() }),
            5 => calls().prop_map(|call| {
                let mut kind = called("x", "Bash").kind;
                if let EventKind::ToolCalled(slot) = &mut kind {
                    slot.call = call;
                }
                kind
            }),
            1 => calls().prop_map(|call| EventKind::ToolStarted { call }),
            1 => calls().prop_map(|call| EventKind::ToolOutputDelta { call, text: "o".into() }),
            4 => (calls(), ends, outcome()).prop_map(|(call, end, outcome)| EventKind::ToolEnded { call, end, outcome }),
            1 => (calls(), outcome()).prop_map(|(call, outcome)| EventKind::ToolRefined { call, outcome }),
            2 => asks.prop_map(|(call, request, requested, inferred)| EventKind::QuestionAsked {
                call,
                tool: "Bash".into(),
                question: question(request, if inferred { "Allow?" } else { "Run?" }),
                requested,
                inferred,
            }),
            1 => (calls(), select(vec![Decision::Allowed, Decision::Denied])).prop_map(|(call, decision)| {
                let mut kind = answered("x", decision).kind;
                if let EventKind::QuestionAnswered { call: slot, .. } = &mut kind {
                    *slot = call;
                }
                kind
            }),
        ]
        .boxed()
    }

    fn parts(self) -> BoxedStrategy<EventKind> {
        let names = |of: [&'static str; 2]| {
            let mut names = vec![Some(of[0]), Some(of[1])];
            names.extend(self.nameless.then_some(None));
            select(names)
        };
        let usual = prop_oneof![
            (names(["n1", "n2"]), select(vec!["retry", "interrupted"]))
                .prop_map(|(name, code)| notice(name, code).kind),
            names(["e1", "e2"]).prop_map(|name| failed(name, "broken").kind),
            (names(["d1", "d2"]), select(vec!["1", "2"]))
                .prop_map(|(name, payload)| data(name, "x", payload).kind),
        ];
        if self.nonsense {
            let odd = crate::generators::names().prop_map(|name| {
                let mut kind = data(None, "odd", "{}").kind;
                if let EventKind::Part(slot, _) = &mut kind {
                    *slot = Some(name);
                }
                kind
            });
            prop_oneof![5 => usual, 1 => odd].boxed()
        } else {
            usual.boxed()
        }
    }
}

/// Omits repeated deltas.
pub fn deltas_once(script: Vec<Line>) -> Vec<Line> {
    let mut seen = Vec::new();
    script
        .into_iter()
        .filter(|line| {
            let delta = matches!(
                line.kind,
                EventKind::ProseDelta { .. }
                    | EventKind::ToolInputDelta { .. }
                    | EventKind::ToolOutputDelta { .. }
            );
            let again = delta && seen.contains(&line.key);
            seen.push(line.key);
            !again
        })
        .collect()
}

/// Omits events that depend on their order: an event of an agent by its id alone before its start,
/// the end or usage of a step before its start, and a turn or step that begins again after another
/// one.
pub fn in_order(script: Vec<Line>) -> Vec<Line> {
    let mut introduced = Vec::new();
    let mut begun: Vec<(Feed, Name)> = Vec::new();
    let mut begin = |feed: Feed, name: &Name| {
        let kind = |name: &Name| matches!(name, Name::Message(_));
        let mut before =
            begun.iter().rev().filter(|(by, held)| *by == feed && kind(held) == kind(name));
        let current = before.next().is_some_and(|(_, held)| held == name);
        let again = before.any(|(_, held)| held == name);
        if !again && !current {
            begun.push((feed, name.clone()));
        }
        current || !again
    };
    let mut steps: Vec<(Feed, Name)> = Vec::new();
    script
        .into_iter()
        .filter(|line| match &line.kind {
            EventKind::AgentStarted { agent, .. }
            | EventKind::AgentProgressed { agent, .. }
            | EventKind::AgentEnded { agent, .. } => {
                introduced.extend(agent.call.as_ref().and(agent.id.clone()));
                agent.call.is_some() || agent.id.as_ref().is_some_and(|id| introduced.contains(id))
            }
            EventKind::StepStarted { step, .. } => {
                steps.push((line.feed, step.clone()));
                begin(line.feed, step)
            }
            EventKind::TurnStarted { names, .. } => {
                let first: Vec<bool> = names.iter().map(|name| begin(line.feed, name)).collect();
                line.turn.is_none() && first.into_iter().all(|first| first)
            }
            EventKind::StepEnded { step, .. }
            | EventKind::UsageUpdated { step, .. }
            | EventKind::RequestNamed { step, .. } => steps.contains(&(line.feed, step.clone())),
            EventKind::SessionUpdated { .. }
            | EventKind::TitleSet(_)
            | EventKind::StartedBy(_)
            | EventKind::BranchedOff(_)
            | EventKind::OutcomesOnly(_)
            | EventKind::ContextWindowReported { .. }
            | EventKind::SessionEnded
            | EventKind::SessionResumed
            | EventKind::TurnInherited
            | EventKind::UserAdded(_)
            | EventKind::MessageRecordNamed { .. }
            | EventKind::ThinkingUpdated(_)
            | EventKind::TurnEnded(_)
            | EventKind::Rewound { .. }
            | EventKind::ProvenanceUpdated { .. }
            | EventKind::PromptRecorded(_)
            | EventKind::SnapshotTaken { .. }
            | EventKind::ProseDelta { .. }
            | EventKind::ProseCompleted { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::BlockEnded { .. }
            | EventKind::ToolInputDelta { .. }
            | EventKind::ToolCalled(_)
            | EventKind::ToolStarted { .. }
            | EventKind::ToolOutputDelta { .. }
            | EventKind::ToolEnded { .. }
            | EventKind::ToolRefined { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::Part(..) => true,
        })
        .collect()
}

fn agents() -> BoxedStrategy<EventKind> {
    let which = || {
        select(vec![("t1", ""), ("t1", "a"), ("t1", "b"), ("t2", "c"), ("", "a"), ("", "c")])
            .prop_map(|(call, id)| agent_of(call, id))
    };
    let ends = select(vec![AgentEnd::Completed, AgentEnd::Failed, AgentEnd::Interrupted]);
    prop_oneof![
        3 => (which(), any::<bool>()).prop_map(|(agent, background)| EventKind::AgentStarted {
            agent,
            name: "Explore".into(),
            task: "look".into(),
            background,
        }),
        1 => (which(), any::<bool>()).prop_map(|(agent, background)| EventKind::AgentProgressed {
            agent,
            activity: Some("Read".into()),
            background,
        }),
        2 => (which(), ends).prop_map(|(agent, end)| EventKind::AgentEnded { agent, end }),
    ]
    .boxed()
}

fn prompts() -> impl Strategy<Value = Name> + Clone {
    select(vec!["p1", "p2", "p3"]).prop_map(prompt_name)
}

fn messages() -> impl Strategy<Value = Name> {
    select(vec!["m1", "m2", "m3"]).prop_map(message)
}

/// Names of anything.
fn names() -> impl Strategy<Value = Name> + Clone {
    select(vec![
        Name::Call("t1".into()),
        Name::AgentsOf("t1".into()),
        block("m1", 0),
        message("m1"),
        prompt_name("p1"),
        record("n1"),
        Name::ByContent(1, 0),
        Name::Nth(Feed::Log, 0),
        Name::Ending,
        Name::Preamble,
    ])
}
