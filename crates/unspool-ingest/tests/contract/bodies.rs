//! Random bodies of every kind, with any value that a source may contain.

use proptest::prelude::*;
use proptest::sample::select;
use unspool_model::id::SessionId;
use unspool_model::id::{PartId, StepId};
use unspool_model::json::Json;
use unspool_model::part::*;
use unspool_model::provenance::{
    Evidence, Feed, FeedQuestions, HiddenReason, Name, Origin, Positions,
};
use unspool_model::rank::{PartField, Ranks};

/// Text of any content and of many sizes, among them those around the thresholds for storing a
/// payload by content.
fn text() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "",
        "a",
        "\0",
        "\u{FEFF}",
        "\n",
        "\t",
        "\\n",
        "\\",
        "\"",
        "🦀",
        "\u{10FFFF}",
        "\u{202E}",
        "}",
        "- 1\n",
        "\\u0000",
    ]);
    let sizes = select(vec![0usize, 0, 1, 3, 100, 510, 511, 512, 513, 16_383, 16_384, 16_385]);
    prop_oneof![
        3 => any::<String>(),
        4 => (piece, sizes, any::<bool>()).prop_map(|(piece, size, exact)| {
            let mut text = piece.repeat(size / piece.len().max(1));
            if exact {
                text.extend(std::iter::repeat_n('x', size.saturating_sub(text.len())));
            }
            text
        }),
    ]
}

fn maybe<T: std::fmt::Debug + Clone>(
    of: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(of)
}

/// Raw JSON in many spellings.
fn json() -> impl Strategy<Value = Json> {
    let odd = select(vec![
        "null",
        "0",
        "-0.0",
        "1e999",
        "123456789012345678901234567890.000",
        "\"\"",
        "\"\\ud800\"",
        "\"\\udfff\\ud800x\"",
        "\"\\u0000\\n\\t\\\\n\\/\"",
        "[ ]",
        "{ \"a\" :\t1 ,\r\n \"a\" : 2 }",
        "{\"b\":1,\"a\":2}",
        "[\"\u{7f}\", \"\u{2028}\"]",
        "{\"\":{\"\":{}}}",
    ]);
    let deep = (1..200usize).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth));
    let whole = prop_oneof![
        3 => odd.prop_map(str::to_owned),
        1 => deep,
        3 => text().prop_map(|text| serde_json::to_string(&text).unwrap()),
        2 => (text(), text()).prop_map(|(key, value)| {
            let quoted = |text: &str| serde_json::to_string(text).unwrap();
            format!("{{ {} :  [{}, 1.50] }}", quoted(&key), quoted(&value))
        }),
    ];
    whole.prop_map(|text| Json::parse(&text).unwrap())
}

fn question() -> impl Strategy<Value = Question> {
    let kinds = [QuestionKind::Permission, QuestionKind::Choice, QuestionKind::Text];
    (maybe(text()), select(kinds.to_vec()), text(), any::<bool>()).prop_map(
        |(request_id, kind, text, multi_select)| {
            let option = QuestionOption { label: text.clone(), description: None };
            let header = Some(text.clone());
            let item = QuestionItem { header, question: text, options: vec![option], multi_select };
            Question { request_id, kind, items: vec![item] }
        },
    )
}

fn tool() -> impl Strategy<Value = Tool> {
    let states = [
        ToolState::Pending,
        ToolState::Running,
        ToolState::Completed,
        ToolState::Failed,
        ToolState::Denied,
        ToolState::Interrupted,
    ];
    let reported = (text(), maybe(text()), maybe(json()), text(), select(states.to_vec()));
    let became = (maybe(text()), maybe(json()), any::<Option<i64>>(), any::<Option<u64>>());
    (reported, became, maybe(question()), any::<bool>()).prop_map(
        |(reported, became, question, answered)| {
            let (name, title, input, input_text, state) = reported;
            let (output, result, exit_code, duration_ms) = became;
            let answer = Answer {
                decision: Decision::Answered,
                text: name.clone(),
                choices: vec![(name.clone(), String::new())],
                observed: false,
                by: None,
            };
            Tool {
                call_id: name.clone(),
                parent_call_id: title.clone(),
                name,
                input,
                input_text,
                state,
                reported_state: answered.then_some(state),
                output,
                result,
                exit_code,
                duration_ms,
                earlier: question
                    .clone()
                    .filter(|_| !answered)
                    .map(|question| EarlierQuestion { question, answer: answer.clone() })
                    .into_iter()
                    .collect(),
                answer: (answered && question.is_some()).then_some(answer),
                question,
                provider_executed: answered,
                title,
            }
        },
    )
}

/// A body of any kind.
pub fn body() -> impl Strategy<Value = Body> {
    let (two, four) = (|| (text(), text()), || (maybe(text()), maybe(text()), maybe(text())));
    let others = prop_oneof![
        (text(), any::<bool>(), prop::collection::vec(json(), 0..3))
            .prop_map(|(text, open, citations)| Body::Text(Text { text, open, citations })),
        (text(), any::<(bool, bool)>(), (maybe(text()), maybe(text())), any::<Option<u64>>())
            .prop_map(
                |(text, (open, redacted), (signature, signer), duration_ms)| Body::Reasoning(
                    Reasoning { text, open, redacted, signature, signer, duration_ms }
                )
            ),
        (two(), any::<bool>()).prop_map(|((id, task), background)| {
            let agent = Agent { id, task, background, ..Agent::default() };
            Body::Agent(Agents { call_id: agent.id.clone(), agents: vec![agent.clone(), agent] })
        }),
        text().prop_map(|text| Body::Interjection(Interjection { text })),
        two().prop_map(|(id, text)| {
            let item = TaskItem { id: Some(id), text, state: TaskState::Cancelled };
            Body::TaskList(TaskList { items: vec![item; 3] })
        }),
        two().prop_map(|(name, text)| Body::SkillLoad(SkillLoad {
            call_id: Some(name.clone()),
            name,
            text,
        })),
        two().prop_map(|(name, tool)| Body::McpSnapshot(McpSnapshot {
            servers: vec![McpServer { status: Some(name.clone()), name, tools: vec![tool; 2] }],
        })),
        two().prop_map(|(title, text)| Body::ContextInfo(ContextInfo { title, text })),
        (text(), any::<Option<u64>>()).prop_map(|(summary, tokens)| Body::Compaction(Compaction {
            trigger: None,
            tokens_before: tokens,
            tokens_after: tokens,
            duration_ms: tokens,
            summary,
        })),
        (four(), maybe(text())).prop_map(|((name, media_type, url), text)| Body::File(File {
            name,
            media_type,
            url,
            text,
        })),
        four().prop_map(|(url, title, quote)| Body::Source(SourceLink { url, title, quote })),
        (four(), text()).prop_map(|((path, call_id, _), diff)| Body::Patch(Patch {
            path,
            diff,
            call_id,
        })),
        two().prop_map(|(code, text)| Body::Notice(Notice { code, text })),
        (maybe(text()), any::<Option<u64>>(), text())
            .prop_map(|(code, status, text)| { Body::Error(Failure { code, status, text }) }),
        (text(), json()).prop_map(|(kind, payload)| Body::Data(Data { kind, payload })),
    ];
    prop_oneof![3 => others, 1 => tool().prop_map(|tool| Body::Tool(Box::new(tool)))]
}

/// A part with a body of any kind, and random evidence and origin.
pub fn part() -> impl Strategy<Value = Part> {
    let time = || {
        let seconds = -377_000_000_000i64..253_000_000_000;
        maybe((seconds, 0..1_000_000_000i32)).prop_map(|time| {
            time.and_then(|(second, nano)| jiff::Timestamp::new(second, nano).ok())
        })
    };
    let evidence = (any::<u16>(), any::<u64>(), any::<u32>(), any::<u64>()).prop_map(
        |(source, offset, length, digest)| Evidence {
            feed: Feed::Hooks,
            source,
            offset,
            length,
            digest,
        },
    );
    (body(), time(), time(), prop::collection::vec(evidence, 0..4), origin(), any::<i64>())
        .prop_map(|(body, started, ended, evidence, origin, place)| Part {
            id: PartId(SessionId::of("a", "part").0),
            place: Place(place),
            step: (place % 2 == 0).then(|| StepId(SessionId::of("a", "step").0)),
            started,
            ended,
            evidence,
            origin,
            body,
        })
}

fn origin() -> impl Strategy<Value = Origin> {
    (text(), any::<[bool; 5]>(), any::<[Option<u32>; 3]>(), any::<(u64, u32)>()).prop_map(
        |(name, [rejected, awaited_answer, denied, hidden, unfinished], at, (content, nth))| {
            let mut ranks = Ranks::default();
            ranks.claim(PartField::OutputText, Feed::Log);
            ranks.claim(PartField::Body, Feed::Hooks);
            let mut told = FeedQuestions {
                feed: Feed::Stream,
                source: at[0].is_some().then_some(nth as u16),
                asked: vec![(Some(name.clone()), content), (None, 0)],
                answers: Vec::new(),
                current: 1,
                inferred: hidden,
            };
            told.answers.extend(denied.then(|| Answer {
                decision: Decision::Denied,
                text: name.clone(),
                choices: Vec::new(),
                observed: true,
                by: None,
            }));
            let (id, other): (std::sync::Arc<str>, _) = (name.into(), Feed::Stream);
            Origin {
                names: vec![
                    Name::Preamble,
                    Name::Call(id.clone()),
                    Name::Block(id, nth),
                    Name::ByContent(content, nth),
                    Name::Nth(other, nth),
                    Name::Ending,
                ],
                at: Positions(at),
                ranks,
                rejected,
                awaited_answer,
                denied,
                hidden: hidden.then_some(HiddenReason::SubAgentCall),
                occurrences: vec![(awaited_answer, content, nth)],
                unfinished,
                cut: if unfinished { vec![(3, "words".to_owned())] } else { Vec::new() },
                questions: if rejected { vec![told] } else { Vec::new() },
                elsewhere: if denied { vec![Feed::Hooks] } else { Vec::new() },
            }
        },
    )
}
