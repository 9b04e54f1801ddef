//! D2 diagrams of sessions are valid, whatever the sessions contain. The D2 compiler checks some of
//! them (`e2e/d2.test.mjs`); here our own strict reader checks all.

mod grammar;

use grammar::{Map, follow, read};
use unspool_export::project::d2::draw_document;
use unspool_export::project::thoughtflow::{Document, Label, MAX_TITLE_CHARS, MAX_TOOLTIP_CHARS};

use crate::case::all_cases;
use crate::thoughtflow::{export, transcripts};

fn drawn(document: &Document) -> String {
    let mut out = Vec::new();
    draw_document(document, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Parses a diagram, resolves its references, and compares it with its document.
fn check_diagram(document: &Document, text: &str) -> Result<Map, String> {
    let root = read(text)?;
    follow(&root)?;
    let layers = root.bare("layers").and_then(|layers| layers.map.as_ref());
    let boards = layers.map(Map::own).unwrap_or_default();
    assert_eq!(boards.len(), document.conversations.len());
    for (nth, run) in document.conversations.iter().enumerate() {
        let board = boards.get(format!("run-{}", nth + 1).as_str()).unwrap().map.as_ref().unwrap();
        let shapes = board.own();
        // Plus the link back to all runs; an empty run has a note.
        assert_eq!(shapes.len(), run.steps.len().max(1) + 1);
        let edges = run.edges();
        assert_eq!(board.edges.len(), edges.len());
        for shape in shapes.values() {
            // R-002-25
            let title = shape.text.as_deref().unwrap();
            assert!(
                title.contains("all runs") || title.chars().count() <= MAX_TITLE_CHARS + 8,
                "{title}"
            );
            let tooltip = shape.map.as_ref().and_then(|map| map.bare("tooltip"));
            let tooltip = tooltip.and_then(|tooltip| tooltip.text.as_deref()).unwrap_or_default();
            assert!(tooltip.chars().count() < 8 * MAX_TOOLTIP_CHARS);
        }
        // R-002-24
        let plain = |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
        for step in run.steps.iter().filter(|step| plain(&step.step_id)) {
            let said = shapes.values().any(|shape| {
                let tooltip = shape.map.as_ref().and_then(|map| map.bare("tooltip"));
                let tooltip = tooltip.and_then(|tooltip| tooltip.text.as_deref());
                tooltip.is_some_and(|tooltip| tooltip.contains(step.step_id.as_str()))
            });
            assert!(said || step.step_id.len() > 100, "{} says which step it is", step.step_id);
        }
    }
    Ok(root)
}

// R-002-20 to R-002-26
#[test]
fn every_recording_is_drawn_and_its_document_draws_the_same() {
    let mut seen = 0;
    for case in all_cases() {
        for transcript in transcripts(&case) {
            let diagram = export("d2", &transcript);
            let document: Document =
                serde_json::from_str(&export("thoughtflow", &transcript)).unwrap();
            assert_eq!(diagram, drawn(&document), "{}: the document is enough", case.display());
            if let Err(wrong) = check_diagram(&document, &diagram) {
                panic!("{}: {wrong}", case.display());
            }
            seen += document.conversations.len();
        }
    }
    assert!(seen > 300, "{seen}");
}

/// Texts that try to break out of D2 strings.
fn hostile() -> Vec<String> {
    let mut texts: Vec<String> = [
        "\"; }\n\"evil\": x",
        "a\\",
        "\\\"",
        "$x ${y} $${z}",
        "| |` ||| md\n# head",
        "a -> b; c <-> d",
        "<script>alert(1)</script>",
        "\u{1b}[31mred\u{1b}[0m\u{7}",
        "\u{202e}desrever\u{2066}",
        "\u{0}\u{1}\u{7f}\u{85}\u{9b}",
        "line\r\nline\u{2028}line",
        "javascript:alert(1)",
        "_",
        "",
        "   ",
        "null",
        "label.style.fill",
        "*",
        "&class: x",
        "...@file",
        "@import",
        "\u{feff}bom \u{200b} zero",
        "你好 🐦 ünï",
        "&#xFFFF; \u{ffff}\u{fffe} <b> </p> <!-- [x](javascript:alert(1))",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(10_000_000));
    texts.push("$\"\\\n".repeat(5_000));
    texts
}

/// A document whose texts are all from this list.
fn document_of(texts: &[String]) -> Document {
    let labels = [
        "user_message",
        "assistant_call",
        "tool_call",
        "tool_output",
        "tool_error",
        "generic",
        "policy.snapshot",
        "prompt.adaptations",
        "nlp.intent",
    ];
    let mut steps = Vec::new();
    for (nth, text) in texts.iter().enumerate() {
        let label = labels[nth % labels.len()];
        let payload = serde_json::json!({
            "text": text, "name": text, "model": text, "arguments": { text.as_str(): text, "link": text },
            "kind": text, "output": text, "version": text, "title": text,
        });
        steps.push(serde_json::json!({
            "step_id": text.chars().take(300).collect::<String>(), "label": label,
            "depends_on": [texts[(nth + 1) % texts.len()].chars().take(300).collect::<String>(), "nobody\n}"],
            "started_at": text.chars().take(50).collect::<String>(),
            "payload_started": payload, "payload_completed": payload,
        }));
    }
    let run =
        serde_json::json!({ "conversation_id": texts[0], "status": "burning", "steps": steps });
    let document = serde_json::json!({
        "session_id": "\n}\u{0}$x", "conversations": [run, { "conversation_id": "empty", "steps": [] }],
    });
    serde_json::from_value(document).unwrap()
}

// R-002-26
#[test]
fn no_text_breaks_out_of_a_diagram() {
    let document = document_of(&hostile());
    let text = drawn(&document);
    assert!(text.len() < 2_000_000, "a long line is cut: {}", text.len());
    check_diagram(&document, &text).unwrap();
}

// R-002-23
#[test]
fn steps_that_depend_on_nothing_stand_in_a_chain() {
    let steps = ["a", "A", "c"].map(|id| serde_json::json!({ "step_id": id, "label": "x" }));
    let run = serde_json::json!({ "conversation_id": "r", "steps": steps });
    let document: Document =
        serde_json::from_value(serde_json::json!({ "session_id": "s", "conversations": [run] }))
            .unwrap();
    let root = check_diagram(&document, &drawn(&document)).unwrap();
    let layers = root.bare("layers").unwrap().map.as_ref().unwrap().own();
    let edges = &layers["run-1"].map.as_ref().unwrap().edges;
    let wanted = [("a", "A (2)"), ("A (2)", "c")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(edges, &wanted, "D2 takes A for a");
}

// R-002-27
#[test]
fn a_session_without_runs_is_a_note() {
    let document = Document::default();
    let root = check_diagram(&document, &drawn(&document)).unwrap();
    assert_eq!(root.own().into_keys().collect::<Vec<_>>(), ["note"]);
}

// R-002-21, R-002-22
#[test]
fn runs_are_swimlanes_in_a_chain() {
    let runs = serde_json::json!([
        { "conversation_id": "a", "status": "completed", "duration_ms": 61_000, "steps": [] },
        { "conversation_id": "b", "status": "aborted", "steps": [] },
        { "conversation_id": "c", "status": "error", "duration_ms": 250, "steps": [] },
    ]);
    let document: Document =
        serde_json::from_value(serde_json::json!({ "session_id": "s", "conversations": runs }))
            .unwrap();
    let root = check_diagram(&document, &drawn(&document)).unwrap();
    let headings: Vec<&str> =
        root.own().into_values().map(|value| value.text.as_deref().unwrap()).collect();
    let wanted = ["Run 1 · completed · 1 min 1 s", "Run 2 · aborted", "Run 3 · error · 250 ms"];
    assert_eq!(headings, wanted);
    let links: Vec<&str> = root
        .own()
        .into_values()
        .map(|lane| lane.map.as_ref().and_then(|map| map.text("link")).unwrap())
        .collect();
    assert_eq!(links, ["layers.run-1", "layers.run-2", "layers.run-3"]);
    let wanted =
        [("run-1", "run-2"), ("run-2", "run-3")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(root.edges, wanted);
}

// Checks that the reader rejects invalid input.
#[test]
fn the_reader_rejects_invalid_d2() {
    let classes = "classes: { \"n\": { shape: text } }\n";
    let good = format!("{classes}\"a\": \"b\" {{ class: \"n\" }}");
    follow(&read(&good).unwrap()).unwrap();
    for bad in [
        "\"a\": \"b",
        "\"a\": \"$x\"",
        "\"a\": \"\\x\"",
        "\"a\": { class: \"n\"",
        "\"a\": \"b\" }",
        "colour: \"b\"",
        "\"a\": { shape: blob }",
        "\"a\": \"\u{202e}\"",
        "\"a\": \"b\"\n\"A\": \"c\"",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
    for bad in [
        "\"a\": \"b\" { class: \"none\" }",
        "\"a\": \"b\" { class: \"n\"; link: \"javascript:x\" }",
        "\"a\": \"b\" { class: \"n\"; link: \"layers.run-9\" }",
        "\"a\": \"b\" { class: \"n\"; tooltip: \"a <b> c\" }",
        "\"a\": \"b\" { class: \"n\" }\n\"a\" -> \"z\"",
    ] {
        let map = read(&format!("{classes}{bad}")).unwrap();
        assert!(follow(&map).is_err(), "{bad}");
    }
}

// R-002-02, R-002-24, R-002-25, R-002-43, R-002-44
#[test]
fn a_step_has_a_class_a_short_title_and_the_rest_in_its_tooltip() {
    let long = format!("It begins. {}", "More follows. ".repeat(40));
    let payload = serde_json::json!({ "text": long, "name": "Bash", "output": long });
    let step = |label: &str| serde_json::json!({ "step_id": format!("id of {label}"), "label": label, "payload_started": payload });
    let mut steps: Vec<serde_json::Value> =
        Label::ALL.iter().map(|label| step(label.name())).collect();
    let call = steps.iter_mut().find(|step| step["label"] == "assistant_call").unwrap();
    call["payload_started"] =
        serde_json::json!({ "model": "opus", "arguments": { "temperature": 0.5 } });
    call["payload_completed"] = serde_json::json!({ "response_id": "resp_7" });
    steps.push(step("nlp.intent"));
    let unbroken = serde_json::json!({ "text": "x".repeat(400) });
    steps.push(
        serde_json::json!({ "step_id": "u", "label": "user_message", "payload_started": unbroken }),
    );
    // An output without a call, and above a call without an output.
    steps.push(
        serde_json::json!({ "step_id": "o", "label": "tool_output", "depends_on": "nobody" }),
    );
    let run = serde_json::json!({ "conversation_id": "r", "steps": steps });
    let document: Document =
        serde_json::from_value(serde_json::json!({ "session_id": "s", "conversations": [run] }))
            .unwrap();
    let root = check_diagram(&document, &drawn(&document)).unwrap();
    let layers = root.bare("layers").unwrap().map.as_ref().unwrap().own();
    let board = layers["run-1"].map.as_ref().unwrap().own();
    let shape = |id: &str| {
        let shape = board[id];
        let map = shape.map.as_ref().unwrap();
        (shape.text.clone().unwrap(), map.text("class").unwrap(), map.text("tooltip").unwrap())
    };
    let classes = root.bare("classes").unwrap().map.as_ref().unwrap().own();
    for label in Label::ALL.map(Label::name) {
        let (_, class, tooltip) = shape(&format!("id of {label}"));
        assert!(class == label && classes.contains_key(class), "{class}");
        assert!(tooltip.contains(&format!("id of {label}")), "{tooltip}");
    }
    assert_eq!(shape("id of nlp.intent").1, "generic");
    for label in ["user_message", "assistant_message"] {
        let (title, _, tooltip) = shape(&format!("id of {label}"));
        assert_eq!(title, "It begins.");
        assert!(tooltip.contains(long.trim_end()), "{tooltip}");
    }
    assert_eq!(shape("u").0.chars().count(), 140);
    assert!(shape("u").2.contains(&"x".repeat(400)));
    let (_, _, tooltip) = shape("id of assistant_call");
    for said in ["opus", "temperature", "0.5", "resp_7"] {
        assert!(tooltip.contains(said), "{tooltip}");
    }
}
