//! Generators of random scripts over a small alphabet of names, feeds and events, so that
//! collisions, late events, repeats and nonsense are frequent.

use proptest::prelude::*;
use proptest::sample::select;
use unspool_core::assemble::likeness;
use unspool_core::event::{AgentEnd, Call, EndReason, Outcome, ToolEnd, Voice, What};
use unspool_core::json::Json;
use unspool_core::part::Decision;
use unspool_core::session::Usage;
use unspool_core::telling::{Name, Telling};

use crate::script::*;

/// Which events the scripts may contain.
#[derive(Clone, Copy)]
pub struct Alphabet {
    pub tellings: &'static [Telling],
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

pub const LOG: &[Telling] = &[Telling::Log];

pub const ALL: Alphabet = Alphabet {
    tellings: &Telling::ALL,
    nameless: true,
    blanks: true,
    generations: true,
    turn_names: true,
    nonsense: true,
};

/// The events of one well-formed source.
pub const ONE_SOURCE: Alphabet = Alphabet {
    tellings: LOG,
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
        (self.what(), select(self.tellings), generation, turn).prop_map(
            |(what, telling, generation, turn)| Line {
                generation,
                turn,
                telling,
                ..Line::from(what)
            },
        )
    }

    fn what(self) -> impl Strategy<Value = What> {
        prop_oneof![
            3 => self.turns(),
            6 => self.prose(),
            8 => self.tools(),
            4 => agents(),
            3 => self.parts(),
        ]
    }

    fn turns(self) -> BoxedStrategy<What> {
        let names = if self.nonsense {
            prop_oneof![
                4 => prompts().prop_map(|name| vec![name]),
                1 => Just(vec![]),
                1 => Just(vec![record("n1")]),
                1 => Just(vec![Name::Alike(1, 0)]),
            ]
            .boxed()
        } else {
            // Log and stream have the prompt's id, hooks only its text.
            prop_oneof![
                4 => prompts().prop_map(|name| vec![name]),
                1 => Just(vec![prompt_name("p1"), Name::Alike(1, 0)]),
                1 => Just(vec![Name::Alike(1, 0)]),
                1 => Just(vec![Name::Alike(2, 0)]),
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
            4 => names.prop_map(|names| started(names, vec![words("ask")]).what),
            3 => reasons.prop_map(What::TurnEnded),
            1 => any::<bool>().prop_map(What::ThinkingTold),
            1 => prompts().prop_map(|to| What::Rewound { turns: vec![to] }),
            1 => Just(What::TurnInherited),
            3 => messages().prop_map(|step| What::StepStarted { step, model: None }),
            1 => messages().prop_map(|step| What::StepEnded { step, stop_reason: None }),
            1 => (messages(), 0..9u64).prop_map(|(step, input)| What::UsageTold {
                step,
                usage: Usage { input, ..Usage::default() },
            }),
        ]
        .boxed()
    }

    fn prose(self) -> BoxedStrategy<What> {
        // The index determines the kind of prose, as in a real message.
        let named = (select(vec!["m1", "m2"]), 0..4u32).prop_map(|(message, index)| {
            let voice = if index % 2 == 0 { Voice::Reasoning } else { Voice::Text };
            (voice, Some(block(message, index)))
        });
        let voices = select(vec![Voice::Text, Voice::Reasoning]);
        let target = match (self.nameless, self.nonsense) {
            (false, _) => named.boxed(),
            (true, false) => {
                prop_oneof![2 => named, 1 => voices.prop_map(|voice| (voice, None))].boxed()
            }
            (true, true) => {
                let odd = (voices.clone(), names()).prop_map(|(voice, name)| (voice, Some(name)));
                prop_oneof![4 => named, 2 => voices.prop_map(|voice| (voice, None)), 1 => odd]
                    .boxed()
            }
        };
        let deltas = if self.blanks { vec!["a", "b", "c ", " ", ""] } else { vec!["a", "b", "c "] };
        let grown = (target.clone(), select(deltas))
            .prop_map(|((voice, block), text)| What::Grew { voice, block, text: text.to_owned() });
        let whole =
            (target.clone(), select(vec!["a", "ab", "c "])).prop_map(|((voice, block), text)| {
                said_with(voice, block, text, Default::default()).what
            });
        let begun = target
            .clone()
            .prop_filter_map("a name", |(_, block)| Some(What::BlockStarted { block: block? }));
        let over =
            target.prop_filter_map("a name", |(_, block)| Some(What::BlockEnded { block: block? }));
        prop_oneof![4 => grown, 2 => whole, 1 => begun, 1 => over].boxed()
    }

    fn tools(self) -> BoxedStrategy<What> {
        let calls = || {
            let alike = likeness("Bash", Json::parse(r#"{"q":1}"#).as_ref());
            let nameless = self.tellings.len() > 1;
            let ids = select(vec!["t1", "t2", "t3"]).prop_map(call_id);
            if nameless {
                prop_oneof![6 => ids, 1 => (0..2u32).prop_map(move |n| Call::Alike(alike, n))]
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
            (any::<bool>(), any::<bool>()).prop_map(|(output, exit)| Outcome {
                output: output.then(|| "out".to_owned()),
                exit_code: exit.then_some(1),
                ..Outcome::default()
            })
        };
        let asks = (calls(), select(vec![None, Some("r1"), Some("r2")]), any::<bool>());
        prop_oneof![
            1 => calls().prop_map(|call| What::ToolInputGrew { call, name: "Bash".into(), text: "{".into() }),
            5 => calls().prop_map(|call| {
                let mut what = called("x", "Bash").what;
                if let What::ToolCalled(told) = &mut what {
                    told.call = call;
                }
                what
            }),
            1 => calls().prop_map(|call| What::ToolStarted { call }),
            1 => calls().prop_map(|call| What::ToolOutputGrew { call, text: "o".into() }),
            4 => (calls(), ends, outcome()).prop_map(|(call, end, outcome)| What::ToolEnded { call, end, outcome }),
            1 => (calls(), outcome()).prop_map(|(call, outcome)| What::ToolRefined { call, outcome }),
            2 => asks.prop_map(|(call, request, requested)| What::QuestionAsked {
                call,
                tool: "Bash".into(),
                question: question(request, "Run?"),
                requested,
            }),
            1 => (calls(), select(vec![Decision::Allowed, Decision::Denied])).prop_map(|(call, decision)| {
                let mut what = answered("x", decision).what;
                if let What::QuestionAnswered { call: told, .. } = &mut what {
                    *told = call;
                }
                what
            }),
        ]
        .boxed()
    }

    fn parts(self) -> BoxedStrategy<What> {
        let names = |of: [&'static str; 2]| {
            let mut names = vec![Some(of[0]), Some(of[1])];
            names.extend(self.nameless.then_some(None));
            select(names)
        };
        let usual = prop_oneof![
            (names(["n1", "n2"]), select(vec!["retry", "interrupted"]))
                .prop_map(|(name, code)| notice(name, code).what),
            names(["e1", "e2"]).prop_map(|name| failed(name, "broken").what),
            (names(["d1", "d2"]), select(vec!["1", "2"]))
                .prop_map(|(name, payload)| data(name, "x", payload).what),
        ];
        if self.nonsense {
            let odd = crate::alphabet::names().prop_map(|name| {
                let mut what = data(None, "odd", "{}").what;
                if let What::DataGiven(told, _) = &mut what {
                    *told = Some(name);
                }
                what
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
                line.what,
                What::Grew { .. } | What::ToolInputGrew { .. } | What::ToolOutputGrew { .. }
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
    let mut known = Vec::new();
    let mut begun: Vec<(Telling, Name)> = Vec::new();
    let mut begin = |telling: Telling, name: &Name| {
        let kind = |name: &Name| matches!(name, Name::Message(_));
        let mut before =
            begun.iter().rev().filter(|(by, held)| *by == telling && kind(held) == kind(name));
        let current = before.next().is_some_and(|(_, held)| held == name);
        let again = before.any(|(_, held)| held == name);
        if !again && !current {
            begun.push((telling, name.clone()));
        }
        current || !again
    };
    let mut steps: Vec<(Telling, Name)> = Vec::new();
    script
        .into_iter()
        .filter(|line| match &line.what {
            What::AgentStarted { agent, .. }
            | What::AgentProgressed { agent, .. }
            | What::AgentEnded { agent, .. } => {
                known.extend(agent.call.as_ref().and(agent.id.clone()));
                agent.call.is_some() || agent.id.as_ref().is_some_and(|id| known.contains(id))
            }
            What::StepStarted { step, .. } => {
                steps.push((line.telling, step.clone()));
                begin(line.telling, step)
            }
            What::TurnStarted { names, .. } => {
                let first: Vec<bool> = names.iter().map(|name| begin(line.telling, name)).collect();
                line.turn.is_none() && first.into_iter().all(|first| first)
            }
            What::StepEnded { step, .. } | What::UsageTold { step, .. } => {
                steps.contains(&(line.telling, step.clone()))
            }
            What::SessionTold { .. }
            | What::TitleTold(_)
            | What::StartedBy(_)
            | What::BranchedOff(_)
            | What::OutcomesOnly(_)
            | What::SessionEnded
            | What::TurnInherited
            | What::UserAdded(_)
            | What::ThinkingTold(_)
            | What::TurnEnded(_)
            | What::Rewound { .. }
            | What::ProvenanceTold { .. }
            | What::SnapshotTaken { .. }
            | What::Grew { .. }
            | What::Said { .. }
            | What::BlockStarted { .. }
            | What::BlockEnded { .. }
            | What::ToolInputGrew { .. }
            | What::ToolCalled(_)
            | What::ToolStarted { .. }
            | What::ToolOutputGrew { .. }
            | What::ToolEnded { .. }
            | What::ToolRefined { .. }
            | What::QuestionAsked { .. }
            | What::QuestionAnswered { .. }
            | What::Interjected(..)
            | What::TasksListed(..)
            | What::SkillLoaded(..)
            | What::McpListed(..)
            | What::ContextAdded(..)
            | What::Compacted(..)
            | What::FileGiven(..)
            | What::SourceCited(..)
            | What::Patched(..)
            | What::Noticed(..)
            | What::Failed(..)
            | What::DataGiven(..) => true,
        })
        .collect()
}

fn agents() -> BoxedStrategy<What> {
    let which = || {
        select(vec![("t1", ""), ("t1", "a"), ("t1", "b"), ("t2", "c"), ("", "a"), ("", "c")])
            .prop_map(|(call, id)| agent_of(call, id))
    };
    let ends = select(vec![AgentEnd::Completed, AgentEnd::Failed, AgentEnd::Interrupted]);
    prop_oneof![
        3 => (which(), any::<bool>()).prop_map(|(agent, background)| What::AgentStarted {
            agent,
            name: "Explore".into(),
            task: "look".into(),
            background,
        }),
        1 => (which(), any::<bool>()).prop_map(|(agent, background)| What::AgentProgressed {
            agent,
            activity: Some("Read".into()),
            background,
        }),
        2 => (which(), ends).prop_map(|(agent, end)| What::AgentEnded { agent, end }),
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
        Name::Alike(1, 0),
        Name::Nth(Telling::Log, 0),
        Name::Ending,
        Name::Preamble,
    ])
}
