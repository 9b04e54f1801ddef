//! Every projection of every fixture is deterministic, valid in its format, and contains every
//! part's text exactly once and in order.

use std::fs;

use serde_json::Value;
use unspool_export::project::{self, ALL, Options, Projection, Sdk, SessionStream, WriteMethod};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Text};
use unspool_model::session::Transcript;
use unspool_redact::Redactor;
use unspool_view::lines::{LineOptions, layout};
use unspool_view::{plain, present};

use crate::by_source::{assert_seen, by_source};
use crate::case::{all_cases, assert_none, captures, case_sessions, cases, fold_in, name, root};

/// Formats that have only some of the text, or not in order; their own tests cover them.
const PARTIAL_FORMS: [&str; 4] = ["d2", "atif", "otel", "history"];
/// Formats that typeset Markdown for people.
const TYPESET_FORMS: [&str; 3] = ["markdown", "html", "text"];

pub fn projected(projection: &Projection, transcript: &Transcript, options: &Options) -> String {
    let WriteMethod::Projected(tell) = projection.method else {
        panic!("{} is stored", projection.name)
    };
    let mut out = Vec::new();
    let unchanged = Redactor::off().release_transcript(transcript.clone());
    tell(SessionStream::of(&unchanged), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn rendered() -> impl Iterator<Item = &'static Projection> {
    ALL.iter().filter(|projection| matches!(projection.method, WriteMethod::Projected(_)))
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The text of a file, without the syntax of its format.
fn read(projection: &Projection, text: &str) -> String {
    match projection.extension {
        "json" | "fixture.json" | "history.json" => {
            let checked: Result<Value, _> = serde_json::from_str(text);
            checked.unwrap_or_else(|error| panic!("{} is no JSON: {error}", projection.name));
            strings(text)
        }
        "html" => {
            let body = text.split_once("</style>").unwrap().1.replace("<\\/", "</");
            // Drop the language above a block of code.
            let pieces = body.split("<figcaption>").enumerate();
            let body: String = pieces
                .map(|(nth, piece)| match piece.split_once("</figcaption>") {
                    Some((_, behind)) if nth > 0 => behind,
                    Some(_) | None => piece,
                })
                .collect();
            let mut out = String::new();
            let mut inside = false;
            for c in body.chars() {
                match c {
                    '<' => inside = true,
                    '>' => inside = false,
                    c if !inside => out.push(c),
                    _ => {}
                }
            }
            decoded(&out)
        }
        // Drop fences: they name the language.
        "md" => {
            let lines =
                text.lines().filter(|line| !line.trim_start_matches(['>', ' ']).starts_with("```"));
            decoded(&lines.collect::<Vec<_>>().join("\n"))
        }
        _ => decoded(text),
    }
}

fn decoded(text: &str) -> String {
    let signs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    signs.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The strings of a JSON document, in document order.
fn strings(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        let mut escaped = false;
        let end = rest[at + 1..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = at + 1 + end.unwrap() + 1;
        out.push_str(&serde_json::from_str::<String>(&rest[at..end]).unwrap());
        out.push(' ');
        rest = &rest[end..];
    }
    out
}

/// The text of a part as a format writes it.
fn words(body: &Body, typeset: bool) -> Option<String> {
    let text = match body {
        Body::Text(text) if typeset => {
            let shown = present::markdown::blocks(&text.text);
            plain::paint(&layout(&shown, 100_000, &LineOptions::everything()))
        }
        Body::Text(text) => text.text.clone(),
        Body::Reasoning(reasoning) if !reasoning.redacted => reasoning.text.clone(),
        _ => return None,
    };
    Some(text)
}

/// The first text that is missing or out of order.
fn first_lost_text(transcript: &Transcript, projection: &Projection, text: &str) -> Option<String> {
    let typeset = TYPESET_FORMS.contains(&projection.name);
    // HTML lists are numbered by the browser.
    let letters = |text: &str| match projection.name {
        "html" => letters(text).chars().filter(|c| !c.is_numeric()).collect(),
        _ => letters(text),
    };
    let found: String = letters(&read(projection, text));
    let mut rest = found.as_str();
    for turn in &transcript.turns {
        let bodies = turn.user.iter().chain(turn.parts.iter().map(|part: &Part| &part.body));
        let said = bodies.filter_map(|body| words(body, typeset)).map(|text| letters(&text));
        for wanted in said.filter(|wanted| !wanted.is_empty()) {
            match rest.find(&wanted) {
                Some(at) => rest = &rest[at + wanted.len()..],
                None => return Some(wanted.chars().take(120).collect()),
            }
        }
    }
    None
}

by_source!(law_1_no_projection_loses_or_moves_a_word);

fn law_1_no_projection_loses_or_moves_a_word(source: &str) {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in cases(source) {
        let captures = captures(&case);
        let order: Vec<usize> = (0..captures.len()).collect();
        let session_set = fold_in(&captures, &order);
        for decoded_session in case_sessions(&session_set) {
            let transcript = &decoded_session.transcript();
            for projection in rendered() {
                let options = Options::default();
                let text = projected(projection, transcript, &options);
                let what = format!("{} as {}", name(&case), projection.name);
                if text != projected(projection, transcript, &options) {
                    wrong.push(format!("{what} differs from time to time"));
                }
                seen += 1;
                if PARTIAL_FORMS.contains(&projection.name) {
                    continue;
                }
                if let Some(words) = first_lost_text(transcript, projection, &text) {
                    wrong.push(format!("{what} has not, or not here: {words}"));
                }
            }
        }
    }
    assert_seen(
        source,
        seen,
        [520, 60, 24, 840, 72, 470, 48, 230, 72, 140, 60, 48, 380, 114, 90, 70, 20],
    );
    assert_none(wrong);
}

#[test]
fn the_schema_is_published() {
    let path = root().join("docs/session.schema.json");
    let text = format!("{:#}\n", unspool_server::session_schema());
    if std::env::var_os("UNSPOOL_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "bless it with UNSPOOL_BLESS=1");
}

// Every exported session is valid against the published schema.
by_source!(the_schema_says_what_is_written);

fn the_schema_says_what_is_written(source: &str) {
    let schema = unspool_server::session_schema();
    let form = Projection::named("json").unwrap();
    let mut wrong = Vec::new();
    for case in cases(source) {
        let captures = captures(&case);
        let order: Vec<usize> = (0..captures.len()).collect();
        for decoded_session in case_sessions(&fold_in(&captures, &order)) {
            let text = projected(form, &decoded_session.transcript(), &Options::default());
            let value: Value = serde_json::from_str(&text).unwrap();
            for (name, part) in [("session", &value["session"]), ("turns", &value["turns"])] {
                let rendered = crate::schema::check(&schema, &schema["properties"][name], part);
                wrong.extend(rendered.err().map(|error| format!("{}: {error}", self::name(&case))));
            }
        }
    }
    assert_none(wrong);
}

/// Text with the special characters of every format.
const HOSTILE: &str = "| pipes | $dollar ${x} \"quotes\" 'single' `ticks` ```\nfence\n```\n</script><script>alert(1)</script>\
    <img src=x onerror=alert(1)> \u{1b}[31mred\u{1b}[0m \u{1b}]8;;evil\u{7} \u{202e}bidi\u{202c} \0 nul \\ back <!-- --> ]]> \
    </style> {{x}} %s <\\/div> &amp; &#x3c; https://evil.example javascript:alert(1)";

/// A session in which every text is hostile.
fn hostile() -> Transcript {
    let case = root().join("fixtures/claude-code/discovery-loop");
    let session_set = fold_in(&captures(&case), &[0]);
    let mut transcript = case_sessions(&session_set).next().unwrap().transcript();
    transcript.session.facts.project = Some(HOSTILE.to_owned());
    for turn in &mut transcript.turns {
        let said = Text { text: HOSTILE.to_owned(), ..Text::default() };
        turn.user = vec![Body::Text(said)];
        for (nth, part) in turn.parts.iter_mut().enumerate() {
            match &mut part.body {
                Body::Text(text) => text.text = format!("{nth} {HOSTILE}"),
                Body::Reasoning(thought) => {
                    thought.text = format!("{nth} {HOSTILE}");
                    thought.redacted = false;
                }
                Body::Tool(tool) => {
                    tool.name = format!("tool {HOSTILE}");
                    tool.input = Json::parse(
                        r#"{"__proto__":{"x":1},"half":"\ud83d","constructor":{"prototype":{}}}"#,
                    );
                    tool.output = Some(HOSTILE.repeat(3));
                    tool.result = None;
                }
                _ => {}
            }
        }
    }
    transcript
}

// Law 8
#[test]
fn law_8_nothing_that_an_agent_wrote_breaks_a_form() {
    let transcript = hostile();
    for projection in rendered() {
        for sdk in [Sdk::Common, Sdk::Seven] {
            let text = projected(projection, &transcript, &Options { sdk, ..Options::default() });
            let form = projection.name;
            if !PARTIAL_FORMS.contains(&form) && !TYPESET_FORMS.contains(&form) {
                assert_eq!(first_lost_text(&transcript, projection, &text), None, "{form}");
            }
            match projection.extension {
                "html" => {
                    let (_, body) = text.split_once("</style>").unwrap();
                    assert_eq!(body.matches("<script>").count(), 1, "ours alone");
                    assert!(!body.contains("<img src=x"), "{form}");
                }
                "json" | "fixture.json" | "history.json" => drop(read(projection, &text)),
                _ => {
                    let odd = text.chars().find(|c| {
                        c.is_control() && *c != '\n' && *c != '\t'
                            || ('\u{202a}'..='\u{202e}').contains(c)
                    });
                    assert_eq!(odd, None, "{form}");
                }
            }
        }
    }
}

#[test]
fn lines_of_ten_megabytes_leave_whole() {
    let mut transcript = hostile();
    let long = "wide open ".repeat(1024 * 1024);
    let turn = transcript.turns.last_mut().unwrap();
    let part = turn.parts.iter_mut().find(|part| matches!(part.body, Body::Text(_))).unwrap();
    part.body = Body::Text(Text { text: long, ..Text::default() });
    for projection in rendered() {
        let text = projected(projection, &transcript, &Options::default());
        if PARTIAL_FORMS.contains(&projection.name) {
            continue;
        }
        let wide = letters(&read(projection, &text)).matches("wideopen").count();
        assert!(wide >= 1024 * 1024, "{}: {wide}", projection.name);
    }
}

// Checks that `first_lost_text` detects a moved text.
#[test]
fn a_word_that_moved_is_noticed() {
    let case = root().join("fixtures/ai-sdk/multi-step-interleaved");
    let session_set = fold_in(&captures(&case), &[0, 1]);
    let mut transcript = case_sessions(&session_set).next().unwrap().transcript();
    let parts = &mut transcript.turns.last_mut().unwrap().parts;
    let speaking: Vec<usize> =
        (0..parts.len()).filter(|at| words(&parts[*at].body, false).is_some()).collect();
    let [first, .., last] = speaking.as_slice() else { panic!("{speaking:?}") };
    let mut moved = transcript.clone();
    let moving = moved.turns.last_mut().unwrap();
    let (one, other) = (moving.parts[*first].body.clone(), moving.parts[*last].body.clone());
    moving.parts[*first].body = other;
    moving.parts[*last].body = one;
    for projection in rendered().filter(|one| !PARTIAL_FORMS.contains(&one.name)) {
        let text = projected(projection, &transcript, &Options::default());
        assert_eq!(first_lost_text(&transcript, projection, &text), None, "{}", projection.name);
        assert!(first_lost_text(&moved, projection, &text).is_some(), "{}", projection.name);
    }
}

#[test]
fn the_documentation_has_every_form() {
    let page = std::fs::read_to_string(root().join("docs/exports.md")).unwrap();
    assert!(
        page.contains(&project::table()),
        "put this into docs/exports.md:\n{}",
        project::table()
    );
    for projection in ALL {
        assert!(Projection::named(projection.name).is_some());
        assert_eq!(ALL.iter().filter(|other| other.name == projection.name).count(), 1);
    }
}

#[test]
fn newer_sdk_states_are_written_only_for_newer_sdks() {
    let case = root().join("fixtures/ai-sdk/output-denied");
    let session_set = fold_in(&captures(&case), &[0, 1]);
    let transcript = case_sessions(&session_set).next().unwrap().transcript();
    let form = Projection::named("uimessage").unwrap();
    let common = projected(form, &transcript, &Options::default());
    let newer = projected(form, &transcript, &Options { sdk: Sdk::Seven, ..Options::default() });
    assert!(
        !common.contains("\"state\":\"output-denied\"") && common.contains("output-error"),
        "{common}"
    );
    assert!(
        newer.contains("\"state\":\"output-denied\"") && newer.contains("\"approved\":false"),
        "{newer}"
    );
}

// R-001-06
#[test]
fn messages_have_only_the_parts_their_role_allows() {
    let form = Projection::named("uimessage").unwrap();
    let mut wrong = Vec::new();
    let mut seen = [0; 3];
    // An application's own messages are passed through.
    for case in all_cases().iter().filter(|case| name(case.parent().unwrap()) != "ai-sdk") {
        for transcript in crate::thoughtflow::transcripts(case) {
            let text = projected(form, &transcript, &Options::default());
            let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
            for message in messages {
                let kinds = message["parts"].as_array().unwrap().iter();
                let kinds: Vec<&str> = kinds.map(|part| part["type"].as_str().unwrap()).collect();
                let may: &[&str] = match message["role"].as_str().unwrap() {
                    "system" => &["text"],
                    "user" => &["text", "file"],
                    _ => continue,
                };
                seen[may.len()] += 1;
                if !kinds.iter().all(|kind| may.contains(kind)) || kinds.is_empty() {
                    wrong.push(format!("{}: {} has {kinds:?}", name(case), message["role"]));
                }
            }
        }
    }
    assert!(seen[2] > 200, "{seen:?}");
    assert_none(wrong);
}

/// The messages of a case.
fn messages_of(case: &str) -> Vec<Value> {
    let transcripts = crate::thoughtflow::transcripts(&root().join("fixtures").join(case));
    let form = Projection::named("uimessage").unwrap();
    serde_json::from_str(&projected(form, &transcripts[0], &Options::default())).unwrap()
}

// R-001-22
#[test]
fn signatures_are_kept_under_the_name_of_their_provider() {
    let messages = messages_of("claude-code/discovery-loop");
    let parts = messages.iter().flat_map(|message| message["parts"].as_array().unwrap());
    let reasoning: Vec<&Value> = parts.filter(|part| part["type"] == "reasoning").collect();
    let has = |name: &str| {
        let field = |part: &&&Value| part["providerMetadata"]["anthropic"][name].is_string();
        reasoning.iter().filter(field).count()
    };
    assert!(has("signature") > 0 && has("redactedData") > 0, "{reasoning:#?}");
    assert_eq!(has("signature") + has("redactedData"), reasoning.len());
}

// R-001-24
#[test]
fn a_message_says_where_it_comes_from() {
    for message in messages_of("claude-code/discovery-loop") {
        let metadata = &message["metadata"];
        assert_eq!(metadata["sessionId"], "112b2623-935f-4249-9e9a-c45c61ba0d98");
        assert_eq!(metadata["cwd"], "/home/dev/weather-app");
        assert!(metadata["gitBranch"].is_string() && metadata["version"].is_string());
        assert!(metadata["createdAt"].as_str().unwrap().starts_with("2026-11-15T00:22:4"));
    }
    // A message begins with a record of its role, whose ids it has.
    let log = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    let log = fs::read_to_string(log).unwrap();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = messages_of("claude-code/discovery-loop");
    for message in &named {
        let first = records.iter().find(|record| record["type"] == message["role"]).unwrap();
        assert_eq!(message["metadata"]["uuid"], first["uuid"], "{message}");
        assert_eq!(message["metadata"]["parentUuid"], first["parentUuid"], "{message}");
    }
    assert_eq!(named.len(), 2);
}

// R-001-23
#[test]
fn a_reply_that_failed_has_the_flag() {
    let messages = messages_of("claude-code/error-authentication");
    let [user, reply] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(user["metadata"].get("error"), None);
    assert_eq!((&reply["role"], &reply["metadata"]["error"]), (&"assistant".into(), &true.into()));
    // The error is text, so that a client shows it. Its code is beside it.
    let texts: Vec<&Value> = reply["parts"].as_array().unwrap().iter().collect();
    let [_, error] = texts.as_slice() else { panic!("{reply}") };
    assert_eq!((&error["type"], &error["state"]), (&"text".into(), &"done".into()));
    assert!(error["text"].as_str().unwrap().contains("Invalid API key"), "{error}");
    assert_eq!(error["providerMetadata"]["unspool"]["error"]["code"], "authentication_failed");
    let fine = messages_of("claude-code/question-answered");
    assert!(fine.iter().all(|message| message["metadata"].get("error").is_none()));
}
