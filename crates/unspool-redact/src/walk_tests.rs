//! Checks the fields that may hold agent or user text, and the fields that never change.

use unspool_model::id::{Id, PartId, SessionId, StepId, TurnId};
use unspool_model::part::{
    Answer, Decision, Place, Question, QuestionItem, QuestionKind, QuestionOption, ToolState,
};
use unspool_model::provenance::{Name, Origin, Positions};
use unspool_model::session::{
    PromptPiece, Provenance, SessionState, TitleOrigin, Trigger, TurnState, Usage,
};

use super::*;
use crate::tests::planted;
use crate::{RedactionReport, Rules};

fn json(text: &str) -> Json {
    Json::parse(&format!(
        r#"{{"n": 1.50, "deep": [{{"z":{0}}}, 12345678901234567890], "a" : {0}}}"#,
        Json::string(text).text()
    ))
    .unwrap()
}

fn bodies(text: &str) -> Vec<Body> {
    let own = || text.to_owned();
    let some = || Some(text.to_owned());
    let tool = Tool {
        call_id: "toolu_01".to_owned(),
        name: "Bash".to_owned(),
        input: Some(json(text)),
        // Truncated input.
        input_text: format!(r#"{{"command": {}, "timeo"#, Json::string(text).text()),
        state: ToolState::Completed,
        output: some(),
        result: Some(json(text)),
        question: Some(Question {
            request_id: None,
            kind: QuestionKind::Choice,
            items: vec![QuestionItem {
                header: some(),
                question: own(),
                options: vec![QuestionOption { label: own(), description: some() }],
                multi_select: false,
            }],
        }),
        answer: Some(Answer {
            decision: Decision::Answered,
            text: own(),
            choices: vec![(own(), own())],
            observed: true,
            by: None,
        }),
        earlier: vec![EarlierQuestion {
            question: Question {
                request_id: None,
                kind: QuestionKind::Permission,
                items: vec![QuestionItem { question: own(), ..QuestionItem::default() }],
            },
            answer: Answer {
                decision: Decision::Allowed,
                text: own(),
                choices: vec![(own(), own())],
                observed: true,
                by: None,
            },
        }],
        title: some(),
        ..Tool::default()
    };
    let agent = Agent {
        id: "a1".to_owned(),
        name: own(),
        task: own(),
        activity: some(),
        ..Agent::default()
    };
    let server =
        McpServer { name: "github".to_owned(), status: some(), tools: vec!["issues".to_owned()] };
    vec![
        Body::Text(Text { text: own(), open: false, citations: vec![json(text)] }),
        Body::Reasoning(Reasoning {
            text: own(),
            signature: Some("EqQBCgIYAhIkMDEyMzQ1Njc4OWFiY2RlZg==".to_owned()),
            ..Reasoning::default()
        }),
        Body::Tool(Box::new(tool)),
        Body::Agent(Agents { call_id: "toolu_02".to_owned(), agents: vec![agent] }),
        Body::Interjection(Interjection { text: own() }),
        Body::TaskList(TaskList { items: vec![TaskItem { text: own(), ..TaskItem::default() }] }),
        Body::SkillLoad(SkillLoad { name: "skill".to_owned(), call_id: None, text: own() }),
        Body::McpSnapshot(McpSnapshot { servers: vec![server] }),
        Body::ContextInfo(ContextInfo { title: own(), text: own() }),
        Body::Compaction(Compaction { summary: own(), ..Compaction::default() }),
        Body::File(File { name: some(), media_type: None, url: some(), text: some() }),
        Body::Source(SourceLink { url: some(), title: some(), quote: some() }),
        Body::Patch(Patch { path: some(), diff: own(), call_id: None }),
        Body::Notice(Notice { code: "hook-feedback".to_owned(), text: own() }),
        Body::Error(Failure { code: None, status: Some(401), text: own() }),
        Body::Data(Data { kind: "odd".to_owned(), payload: json(text) }),
    ]
}

fn part(number: u64, body: Body) -> Part {
    Part {
        id: PartId(Id::derive([&number.to_le_bytes()[..]])),
        place: Place(number as i64),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

fn turn(number: u32, user: Vec<Body>, parts: Vec<Body>) -> Turn {
    Turn {
        id: TurnId(Id::derive([&number.to_le_bytes()[..]])),
        number,
        trigger: Trigger::User,
        user,
        thinking_mode: false,
        state: TurnState::Completed,
        abandoned: false,
        inherited: false,
        started: None,
        ended: None,
        steps: Vec::new(),
        parts: parts.into_iter().zip(1..).map(|(body, at)| part(at, body)).collect(),
        origin: TurnOrigin::default(),
    }
}

/// A session with the same text in every text field.
fn everywhere(text: &str) -> Transcript {
    let mut turn = turn(1, bodies(text), bodies(text));
    turn.origin.ends[0] =
        Some(TurnEnd { reason: EndReason::Failed(Some(text.to_owned())), at: None });
    let before = "Be kind. äöü\n";
    let prompt = format!("{before}{text}\nEnd of it.");
    let start = before.chars().count();
    let end = start + text.chars().count();
    let piece = |value: &str, from: usize, to: usize| PromptPiece {
        kind: "piece".to_owned(),
        value: value.to_owned(),
        span: Some((from as u32, to as u32)),
    };
    turn.steps.push(Step {
        id: StepId(Id::derive([&b"step"[..]])),
        name: Name::Message("m".into()),
        at: Positions::default(),
        model: Some("model".into()),
        usage: Usage::default(),
        stop_reason: None,
        request: None,
        provenance: Some(Provenance {
            pieces: vec![
                piece(before, 0, start),
                piece(text, start, end),
                piece("\nEnd of it.", end, end + 11),
            ],
            final_prompt: Some(prompt),
            snapshots: Vec::new(),
        }),
    });
    let facts = Facts {
        project: Some(text.to_owned()),
        branch: Some(text.to_owned()),
        title: Some(Title { text: text.to_owned(), origin: TitleOrigin::Custom }),
        ..Facts::default()
    };
    let session = Session {
        id: SessionId::of("agent", "one"),
        agent: "agent".to_owned(),
        agent_session_id: "one".to_owned(),
        facts,
        state: SessionState::Ended,
        parent: None,
        forked_from: None,
    };
    Transcript { session, turns: vec![turn] }
}

fn redact(transcript: &mut Transcript) -> RedactionReport {
    let rules = Rules::standard();
    let mut redactor = Redactor::new(&rules);
    redactor.transcript(transcript);
    redactor.report().clone()
}

#[test]
fn planted_secrets_are_found_in_every_field_and_nothing_else_changes() {
    for case in planted() {
        let mut transcript = everywhere(&case.text);
        let report = redact(&mut transcript);
        let expected = everywhere(&case.redacted);
        assert_eq!(transcript, expected, "{}", case.text);
        assert_eq!(report.secrets.len(), 1, "{}", case.text);
        // Spans of pieces, user, parts, session, end.
        assert!(report.count() > 80, "{} of {}", report.count(), case.text);
        assert!(!serde_json::to_string(&report).unwrap().contains(&case.secret));
        // Redact again, in a new export.
        redact(&mut transcript);
        assert_eq!(transcript, expected);
    }
}

#[test]
fn json_inside_json_is_looked_into() {
    let rules = Rules::standard();
    // What is recognised by the text around it over several lines or quotes is found in texts and in
    // JSON, and not where that text is escaped twice (docs/redaction.md).
    let across = [
        "\"\"\"",
        ":\n",
        "=\n",
        "=>\n",
        "variable \"",
        "\"GITLAB_PAT\"",
        "assword:\"",
        "assword:'",
    ];
    let is_plain = |text: &str| !across.iter().any(|part| text.contains(part));
    let mut missed = Vec::new();
    for case in planted().into_iter().filter(|case| is_plain(&case.text)) {
        let inner = Json::string(&case.text);
        let whole = Json::string(&format!(r#"{{"stdout": {}, "n": 1}}"#, inner.text()));
        let found = Redactor::new(&rules).json(&whole);
        let once: String = serde_json::from_str(found.text()).unwrap();
        let twice: serde_json::Value =
            serde_json::from_str(&once).unwrap_or_else(|e| panic!("{e}: {once}"));
        let text = twice["stdout"].as_str().unwrap();
        if text.contains(&case.secret) || !text.contains("[redacted:") {
            missed.push(text.to_owned());
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn names_of_fields_are_witnesses() {
    let rules = Rules::standard();
    for (given, expected) in [
        (
            r#"{"env":{"API_SECRET":"sesame-open7"}}"#,
            r#"{"env":{"API_SECRET":"[redacted:secret:1]"}}"#,
        ),
        (
            r#"{"password" : "hunter\"2x", "b": 1e400}"#,
            r#"{"password" : "[redacted:password:1]", "b": 1e400}"#,
        ),
        (r#"["curl","--password","hunter2x"]"#, r#"["curl","--password","[redacted:password:1]"]"#),
        (
            r#"[{"name":"DB_PASSWORD","value":"hunter2x"}]"#,
            r#"[{"name":"DB_PASSWORD","value":"[redacted:password:1]"}]"#,
        ),
        (
            r#"{"headers":{"Cookie":"a=b; sid=x7Kq9ZmW2vB4nT6y"}}"#,
            r#"{"headers":{"Cookie":"a=b; sid=[redacted:cookie:1]"}}"#,
        ),
        (
            r#"{"Authorization":"Token x7Kq9ZmW2vB4nT6y"}"#,
            r#"{"Authorization":"Token [redacted:token:1]"}"#,
        ),
        // Escaped slashes hide the URL, escaped letters the name.
        (r#"{"u":"redis:\/\/:hunter2x@h"}"#, r#"{"u":"redis:\/\/:[redacted:password:1]@h"}"#),
        (r#"{"u":"p\u0061ssword: hunter2x"}"#, r#"{"u":"p\u0061ssword: [redacted:password:1]"}"#),
        // Half a surrogate pair before and after.
        (
            r#"{"u":"\ud83d PASSWORD=hunter2x \udc00"}"#,
            r#"{"u":"\ud83d PASSWORD=[redacted:password:1] \udc00"}"#,
        ),
        (
            r#"{"max_tokens":"4096","token":{"type":"string"}}"#,
            r#"{"max_tokens":"4096","token":{"type":"string"}}"#,
        ),
        (r#"{"password":"hunter2x"#, r#"{"password":"[redacted:password:1]"#),
    ] {
        let found = Redactor::new(&rules).json(&Json::checked(given));
        assert_eq!(found.text(), expected);
    }
}

#[test]
fn what_a_later_turn_gives_away_is_replaced_in_an_earlier_one() {
    let text = |text: &str| Body::Text(Text { text: text.to_owned(), ..Text::default() });
    let mut transcript = everywhere("nothing");
    transcript.turns = vec![
        turn(1, vec![text("use x7Kq9ZmW2vB4nT6y")], vec![]),
        turn(2, vec![], vec![text("API_KEY=x7Kq9ZmW2vB4nT6y")]),
    ];
    let report = redact(&mut transcript);
    assert_eq!(transcript.turns[0].user[0].prose(), Some("use [redacted:api-key:1]"));
    assert_eq!(transcript.turns[1].content(), "API_KEY=[redacted:api-key:1]");
    let places = &report.secrets[0].places;
    assert_eq!(places[0], Location { turn: Some(1), owner: Owner::User, field: "text".to_owned() });
    assert_eq!(places[1].owner, Owner::Part(transcript.turns[1].parts[0].id));
}

#[test]
fn output_and_result_agree_and_the_report_says_where() {
    let tool = Tool {
        input: Json::parse(r#"{"env":{"TOKEN":"x7Kq9ZmW2vB4nT6y"}}"#),
        output: Some("login ok: x7Kq9ZmW2vB4nT6y".to_owned()),
        result: Json::parse(
            r#"{"stdout":"login ok: x7Kq9ZmW2vB4nT6y","lines":["a","x7Kq9ZmW2vB4nT6y"]}"#,
        ),
        ..Tool::default()
    };
    let mut transcript = everywhere("nothing");
    transcript.turns = vec![turn(7, vec![], vec![Body::Tool(Box::new(tool))])];
    let report = redact(&mut transcript);
    let Body::Tool(tool) = &transcript.turns[0].parts[0].body else { panic!() };
    assert_eq!(tool.output.as_deref(), Some("login ok: [redacted:token:1]"));
    assert_eq!(
        tool.result.as_ref().unwrap().text(),
        r#"{"stdout":"login ok: [redacted:token:1]","lines":["a","[redacted:token:1]"]}"#
    );
    let fields: Vec<&str> =
        report.secrets[0].places.iter().map(|location| location.field.as_str()).collect();
    assert_eq!(fields, ["input.env.TOKEN", "output", "result.stdout", "result.lines[1]"]);
    assert!(report.secrets[0].places.iter().all(|location| location.turn == Some(7)));
}

// R-001-22: the vendor's signature is unchanged.
#[test]
fn signatures_and_pictures_stay() {
    let signature = "token=x7Kq9ZmW2vB4nT6y/password:hunter2hunter2/Bearer x7Kq9ZmW2vB4nT6y";
    let picture = "data:image/png;base64,/password=hunter2x";
    let reasoning = Reasoning { signature: Some(signature.to_owned()), ..Reasoning::default() };
    let file = File { url: Some(picture.to_owned()), ..File::default() };
    let mut transcript = everywhere("nothing");
    transcript.turns = vec![turn(1, vec![Body::File(file)], vec![Body::Reasoning(reasoning)])];
    let before = transcript.clone();
    assert!(redact(&mut transcript).is_empty());
    assert_eq!(transcript, before);
    let key = planted().into_iter().find(|case| case.kind == "anthropic-key").unwrap().secret;
    if let Body::Reasoning(reasoning) = &mut transcript.turns[0].parts[0].body {
        reasoning.signature = Some(format!("a {key}"));
    }
    redact(&mut transcript);
    let Body::Reasoning(reasoning) = &transcript.turns[0].parts[0].body else { panic!() };
    assert_eq!(reasoning.signature.as_deref(), Some("a [redacted:anthropic-key:1]"));
}

// Law 12: only closed parts of a running turn leave.
#[test]
fn a_live_turn_leaves_without_its_open_parts() {
    let rules = Rules::standard();
    let text =
        |text: &str, open| Body::Text(Text { text: text.to_owned(), open, citations: Vec::new() });
    let call = Tool {
        input_text: "{\"token\": \"ghp_".to_owned(),
        state: ToolState::Running,
        output: Some("ghp_".to_owned()),
        result: Some(Json::string("ghp_")),
        ..Tool::default()
    };
    let parts =
        vec![text("a", false), Body::Tool(Box::new(call)), text("b", true), text("c", false)];
    let mut running = turn(1, Vec::new(), parts);
    running.state = TurnState::Running;

    let sent = Redactor::new(&rules).release_live_turn(running.clone());
    let [first, called] = sent.parts.as_slice() else { panic!("{sent:?}") };
    assert_eq!(first.body, text("a", false));
    let Body::Tool(tool) = &called.body else { panic!("{called:?}") };
    assert_eq!((&*tool.input_text, &tool.output, &tool.result), ("", &None, &None));

    assert_eq!(*Redactor::off().release_live_turn(running.clone()), running);
    running.state = TurnState::Completed;
    assert_eq!(*Redactor::new(&rules).release_live_turn(running.clone()), running);
}

// Law 12: the beginning of a secret is one as well.
#[test]
fn a_running_turn_leaves_without_words_that_may_go_on() {
    let rules = Rules::standard();
    let text =
        |text: &str, open| Body::Text(Text { text: text.to_owned(), open, citations: Vec::new() });
    let reasoning = |text: &str| {
        Body::Reasoning(Reasoning { text: text.to_owned(), open: true, ..Reasoning::default() })
    };
    let call = |input: &str, output: &str, state| {
        let (input_text, output) = (input.to_owned(), Some(output.to_owned()));
        Body::Tool(Box::new(Tool { input_text, output, state, ..Tool::default() }))
    };
    let parts = vec![
        text("a ghp_closed", false),
        text("the key is\nghp_x7Kq9Z", true),
        reasoning("ghp_x7Kq9Z"),
        call("{\"token\": \"ghp_x7", "line 1\nTOKEN=ghp_x7", ToolState::Running),
        call("", "a ghp_closed", ToolState::Completed),
        text("whole words ", true),
    ];
    let mut running = turn(1, Vec::new(), parts);
    running.state = TurnState::Running;
    let sent = Redactor::new(&rules).release_turn(running.clone());
    let bodies: Vec<&Body> = sent.parts.iter().map(|part| &part.body).collect();
    let expected = [
        text("a ghp_closed", false),
        text("the key is\n…", true),
        reasoning("…"),
        call("{\"token\": …", "line 1\n…", ToolState::Running),
        call("", "a ghp_closed", ToolState::Completed),
        text("whole words ", true),
    ];
    assert_eq!(bodies, expected.iter().collect::<Vec<_>>());
    assert_eq!(*Redactor::off().release_turn(running.clone()), running);
    running.state = TurnState::Completed;
    assert_eq!(*Redactor::new(&rules).release_turn(running.clone()), running);
}

#[test]
fn a_redactor_that_is_off_changes_nothing() {
    let before = everywhere(&planted()[0].text);
    let mut off = Redactor::off();
    assert_eq!(*off.release_transcript(before.clone()), before);
    assert!(off.report().is_empty());
}

#[path = "walk_names_tests.rs"]
mod names;
