//! Law 1 for random transcripts: every projection writes each part that its format has, at its
//! place among parts of all kinds. Each part has a word of its own (`part7z`), in every field that a
//! format may show.

use proptest::prelude::*;
use unspool_export::project::{ALL, Options, Projection, Sdk, WriteMethod};
use unspool_model::id::{PartId, SessionId};
use unspool_model::json::Json;
use unspool_model::part::*;
use unspool_model::session::Transcript;

use crate::case::{captures, case_sessions, fold_in, root};
use crate::projections::projected;

/// Formats that group what a model call made by kind: they have every part, and their own tests
/// cover the order.
const GROUPED_FORMS: [&str; 4] = ["d2", "atif", "otel", "history"];

/// The kinds that a format leaves out: a model is not sent what only people see.
fn left_out(projection: &Projection) -> &'static [Kind] {
    match projection.name {
        "history" => &[
            Kind::Agent,
            Kind::TaskList,
            Kind::McpSnapshot,
            Kind::Source,
            Kind::Patch,
            Kind::Notice,
            Kind::Error,
            Kind::Data,
        ],
        _ => &[],
    }
}

/// A transcript with the steps of a real one and no parts.
fn frame() -> Transcript {
    let case = root().join("fixtures/claude-code/discovery-loop");
    let session_set = fold_in(&captures(&case), &[0]);
    let mut transcript = case_sessions(&session_set).next().unwrap().transcript();
    transcript.turns.retain(|turn| turn.number == 1);
    let turn = &mut transcript.turns[0];
    assert!(turn.steps.len() > 2, "parts of several steps");
    turn.parts.clear();
    transcript
}

fn tool(word: &str, state: ToolState) -> Tool {
    let input = serde_json::json!({ "command": word }).to_string();
    Tool {
        call_id: format!("call-{word}"),
        name: "Bash".to_owned(),
        input: Json::parse(&input),
        state,
        output: Some(word.to_owned()),
        ..Tool::default()
    }
}

/// A body of a kind in which every text is the word.
fn body(kind: Kind, word: &str, nth: usize) -> Body {
    let word = || word.to_owned();
    let some = || Some(word());
    match kind {
        Kind::Text => Body::Text(Text { text: word(), ..Text::default() }),
        Kind::Reasoning => Body::Reasoning(Reasoning { text: word(), ..Reasoning::default() }),
        Kind::Tool => {
            let states = [
                ToolState::Running,
                ToolState::Completed,
                ToolState::Failed,
                ToolState::Denied,
                ToolState::Interrupted,
            ];
            Body::Tool(Box::new(tool(&word(), states[nth % states.len()])))
        }
        Kind::Agent => {
            let (id, name, state) = (word(), word(), AgentState::Completed);
            let agent = Agent { id, name, task: word(), state, ..Agent::default() };
            Body::Agent(Agents { call_id: format!("agents-{}", word()), agents: vec![agent] })
        }
        Kind::Interjection => Body::Interjection(Interjection { text: word() }),
        Kind::TaskList => {
            let item = TaskItem { id: None, text: word(), state: TaskState::Pending };
            Body::TaskList(TaskList { items: vec![item] })
        }
        Kind::SkillLoad => Body::SkillLoad(SkillLoad { name: word(), call_id: None, text: word() }),
        Kind::McpSnapshot => {
            let server = McpServer { name: word(), status: some(), tools: vec![word()] };
            Body::McpSnapshot(McpSnapshot { servers: vec![server] })
        }
        Kind::ContextInfo => Body::ContextInfo(ContextInfo { title: word(), text: word() }),
        Kind::Compaction => {
            Body::Compaction(Compaction { summary: word(), ..Compaction::default() })
        }
        Kind::File => Body::File(File {
            name: some(),
            media_type: Some("text/plain".to_owned()),
            url: None,
            text: some(),
        }),
        Kind::Source => {
            let url = Some(format!("https://example.com/{}", word()));
            Body::Source(SourceLink { url, title: some(), quote: some() })
        }
        Kind::Patch => {
            let diff = format!("@@ -1 +1 @@\n-old\n+{}\n", word());
            Body::Patch(Patch { path: some(), diff, call_id: None })
        }
        Kind::Notice => Body::Notice(Notice { code: "informational".to_owned(), text: word() }),
        Kind::Error => Body::Error(Failure { code: None, status: None, text: word() }),
        Kind::Data => {
            let payload = Json::parse(&serde_json::json!({ "word": word() }).to_string());
            Body::Data(Data { kind: "thing".to_owned(), payload: payload.unwrap() })
        }
    }
}

/// A transcript with these parts: their kinds, and whether a model call begins with each.
fn transcript(frame: &Transcript, turns: &[Vec<(usize, bool)>]) -> Transcript {
    let mut whole = frame.clone();
    let template = whole.turns.remove(0);
    let mut count = 0;
    for (number, kinds) in (1..).zip(turns) {
        let mut turn = template.clone();
        turn.number = number;
        turn.id = unspool_model::id::TurnId(SessionId::of("turn", &number.to_string()).0);
        turn.user = vec![body(Kind::Text, &format!("part{count}z"), 0)];
        count += 1;
        let mut step = 0;
        for (kind, begins) in kinds {
            step = (step + usize::from(*begins)).min(turn.steps.len() - 1);
            let word = format!("part{count}z");
            let mut kind = Kind::ALL[kind % Kind::ALL.len()];
            // Views show agents and the call directly before them as one, agents first; the cases of
            // sub-agents cover that.
            let before = turn.parts.last().map(|part: &Part| part.body.kind());
            if kind == Kind::Agent && before == Some(Kind::Tool) {
                kind = Kind::Notice;
            }
            turn.parts.push(Part {
                id: PartId(SessionId::of("part", &word).0),
                place: Place(turn.parts.len() as i64 * 2),
                step: Some(turn.steps[step].id),
                started: turn.started,
                ended: turn.started,
                evidence: Vec::new(),
                origin: Default::default(),
                body: body(kind, &word, count),
            });
            count += 1;
        }
        whole.turns.push(turn);
    }
    whole
}

/// The words in the order in which they appear first.
fn found(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for piece in text.split("part").skip(1) {
        let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
        let word = format!("part{digits}z");
        if !digits.is_empty() && piece[digits.len()..].starts_with('z') && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// The metadata of a message lists the names of its files, before its parts.
fn without_filenames(text: String) -> String {
    let Some((before, rest)) = text.split_once("\"filenames\":[") else { return text };
    let after = rest.split_once(']').map_or("", |(_, after)| after);
    format!("{before}{}", without_filenames(after.to_owned()))
}

/// The words that the format must have, in order.
fn expected(projection: &Projection, transcript: &Transcript) -> Vec<String> {
    let mut words = Vec::new();
    let mut count = 0;
    let left_out = left_out(projection);
    for turn in &transcript.turns {
        let parts = turn.parts.iter().map(|part| part.body.kind());
        for kind in turn.user.iter().map(Body::kind).chain(parts) {
            // A summary replaces everything before it.
            if projection.name == "history" && kind == Kind::Compaction {
                words.clear();
            }
            if !left_out.contains(&kind) {
                words.push(format!("part{count}z"));
            }
            count += 1;
        }
    }
    words
}

fn check(transcript: &Transcript) -> Result<(), String> {
    for projection in ALL {
        let WriteMethod::Projected(_) = projection.method else { continue };
        for sdk in [Sdk::Common, Sdk::Seven] {
            let text = projected(projection, transcript, &Options { sdk, ..Options::default() });
            let text = without_filenames(text);
            let (mut found, mut expected) = (found(&text), expected(projection, transcript));
            if GROUPED_FORMS.contains(&projection.name) {
                found.sort_unstable();
                expected.sort_unstable();
            }
            if found != expected {
                let kinds = transcript.turns.iter().flat_map(|turn| &turn.parts);
                let kinds: Vec<&str> = kinds.map(|part| part.body.kind().name()).collect();
                let name = projection.name;
                return Err(format!("{name} of {kinds:?}: {found:?}, not {expected:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn law_1_a_projection_has_each_kind_of_part() {
    let frame = frame();
    let mut wrong = Vec::new();
    for kind in 0..Kind::ALL.len() {
        wrong.extend(check(&transcript(&frame, &[vec![(kind, false)]])).err());
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn law_1_every_projection_keeps_the_order_of_all_parts() {
    let frame = frame();
    let part = (0..Kind::ALL.len(), any::<bool>());
    let turns = prop::collection::vec(prop::collection::vec(part, 0..14), 1..4);
    proptest!(ProptestConfig::with_cases(96), |(turns in turns)| {
        check(&transcript(&frame, &turns)).map_err(TestCaseError::fail)?;
    });
}

/// The check sees a part that moved, one that is missing and one that is there too much.
#[test]
fn a_part_that_moved_is_noticed() {
    assert_eq!(found("a part1z b part2z part1z"), ["part1z", "part2z"]);
    let frame = frame();
    let whole = transcript(&frame, &[vec![(0, false), (2, false), (15, false), (1, true)]]);
    let json = Projection::named("json").unwrap();
    let text = projected(json, &whole, &Options::default());
    assert_eq!(found(&text), expected(json, &whole));
    for (from, to) in [("part2z", "part3z"), ("part2z", "gone"), ("part0z", "part0z part9z")] {
        let moved = text.replace(from, to);
        assert_ne!(found(&moved), expected(json, &whole), "{from}");
    }
}
