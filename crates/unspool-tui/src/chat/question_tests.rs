use crossterm::event::KeyModifiers;
use serde_json::{Value, json};
use unspool_live::form::FieldChoice;
use unspool_live::protocol::{PermissionKind, PermissionOption};
use unspool_live::wire::RequestId;

use super::*;
use crate::chat::question_layout::lay_out_subject;

fn question(kind: RequestedInput) -> OpenQuestion {
    OpenQuestion {
        id: "0".to_owned(),
        request: RequestId::number(0),
        session: "s".to_owned(),
        call: None,
        text: "Which?".to_owned(),
        kind,
        subject: Value::Null,
        since: 0,
    }
}

fn permission() -> OpenQuestion {
    let option =
        |id: &str, kind| PermissionOption { id: id.to_owned(), label: id.to_owned(), kind };
    question(RequestedInput::Permission(vec![
        option("y", PermissionKind::AllowOnce),
        option("n", PermissionKind::RejectOnce),
    ]))
}

fn field(name: &str, kind: FieldKind, choices: &[&str], own: bool) -> FormField {
    let choice = |value: &&str| FieldChoice {
        value: (*value).to_owned(),
        label: value.to_uppercase(),
        description: None,
    };
    FormField {
        name: name.to_owned(),
        text: name.to_owned(),
        kind,
        choices: choices.iter().map(choice).collect(),
        required: true,
        own_words: own.then(|| format!("{name}_custom")),
    }
}

/// Presses keys: `v` is down, `^` is up, `\n` is Enter, other letters are themselves.
fn press(pane: &mut QuestionPane, question: &OpenQuestion, keys: &str) -> QuestionKey {
    let mut last = QuestionKey::Ignored;
    for letter in keys.chars() {
        let code = match letter {
            'v' => KeyCode::Down,
            '^' => KeyCode::Up,
            '\n' => KeyCode::Enter,
            letter => KeyCode::Char(letter),
        };
        last = pane.press(question, KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

fn form(value: Value) -> QuestionKey {
    QuestionKey::Answer(UserAnswer::Form(serde_json::from_value(value).unwrap()))
}

/// What is allowed is shown, whatever the agent calls it.
#[test]
fn the_command_and_all_other_fields_are_shown() {
    let shown = |title: &str, subject: Value| {
        let mut question = permission();
        (question.text, question.subject) = (format!("Allow {title}?"), subject);
        let mut pane = QuestionPane::new(&question, None, false);
        lay_out_subject(&question, &mut pane, 80);
        let SubjectLayout { head, lines, .. } = pane.subject.take().unwrap();
        let text: Vec<String> = head.iter().chain(&lines).map(Line::text).collect();
        (text.join("\n"), pane.truncated)
    };
    let (text, _) = shown("Confirm formatting", json!({"rawInput": {"command": "rm"}}));
    assert!(text.lines().any(|line| line.trim() == "rm"), "{text}");
    let (text, _) =
        shown("ls -l", json!({"rawInput": {"command": "ls -l", "run_in_background": true}}));
    assert_eq!(text.matches("ls -l").count(), 1, "{text}");
    assert!(text.contains("run_in_background"), "{text}");
    let mail = json!({"rawInput": {"to": "everyone"},
        "content": [{"type": "content", "content": {"type": "text", "text": "Sends a mail"}}]});
    let (text, _) = shown("mail", mail);
    assert!(text.contains("Sends a mail") && text.contains("everyone"), "{text}");
    // A script in the title is cut like any other.
    let script = (0..50).map(|nth| format!("line {nth}\n")).collect::<String>();
    let (text, truncated) = shown(&script, Value::Null);
    assert!(truncated && text.contains("line 49"), "{text}");
    let (text, truncated) = shown("x", json!({"omitted_bytes": 300_000}));
    assert!(truncated && text.contains("300,000 bytes"), "{text}");
}

#[test]
fn enter_alone_answers_nothing() {
    let question = permission();
    let mut pane = QuestionPane::new(&question, None, false);
    assert!(matches!(press(&mut pane, &question, "\n"), QuestionKey::Refused(_)));
    // Letters are no answers.
    assert_eq!(press(&mut pane, &question, "y"), QuestionKey::Ignored);
    let yes = QuestionKey::Answer(UserAnswer::Option("y".to_owned()));
    assert_eq!(press(&mut pane, &question, "1\n"), yes);
    let no = QuestionKey::Answer(UserAnswer::Option("n".to_owned()));
    assert_eq!(press(&mut pane, &question, "v\n"), no);
    // To talk about it is no.
    assert_eq!(press(&mut pane, &question, "3\n"), QuestionKey::Discuss);
}

#[test]
fn what_is_cut_is_read_before_it_is_allowed() {
    let question = permission();
    let mut pane = QuestionPane { truncated: true, ..QuestionPane::new(&question, None, false) };
    assert!(matches!(press(&mut pane, &question, "1\n"), QuestionKey::Refused(_)));
    assert!(pane.expanded);
    let yes = QuestionKey::Answer(UserAnswer::Option("y".to_owned()));
    assert_eq!(press(&mut pane, &question, "\n"), yes);
    let mut pane = QuestionPane { truncated: true, ..QuestionPane::new(&question, None, false) };
    let no = QuestionKey::Answer(UserAnswer::Option("n".to_owned()));
    assert_eq!(press(&mut pane, &question, "2\n"), no, "a refusal needs no reading");
}

#[test]
fn keys_before_the_question_was_drawn_are_typing() {
    let question = permission();
    let mut pane = QuestionPane::new(&question, None, false);
    let now = Instant::now();
    assert!(!pane.accepts(now));
    pane.drawn_at = Some(now);
    assert!(!pane.accepts(now + Duration::from_millis(249)));
    assert!(pane.accepts(now + GUARD_TIME));
}

#[test]
fn one_of_several_and_own_words() {
    let question =
        question(RequestedInput::Form(vec![field("unit", FieldKind::One, &["c", "f"], true)]));
    let mut pane = QuestionPane::new(&question, Some("kel"), false);
    let value = |chosen: &[&str], own: Option<&str>| {
        form(json!({"unit": {"chosen": chosen, "own_words": own}}))
    };
    assert_eq!(press(&mut pane, &question, "3xin\n"), value(&[], Some("kelxin")));
    let mut pane = QuestionPane::new(&question, None, false);
    assert_eq!(press(&mut pane, &question, "2\n"), value(&["f"], None));
    let mut pane = QuestionPane::new(&question, None, false);
    assert_eq!(press(&mut pane, &question, "v \n"), value(&["c"], None), "space, then enter");
    assert_eq!(press(&mut pane, &question, "vvv\n"), QuestionKey::Discuss);
}

#[test]
fn several_choices_are_toggled() {
    let days = field("days", FieldKind::Several, &["mon", "tue", "wed"], false);
    let question = question(RequestedInput::Form(vec![days]));
    let mut pane = QuestionPane::new(&question, None, false);
    let chosen = |days: &[&str]| form(json!({"days": {"chosen": days}}));
    assert_eq!(press(&mut pane, &question, "1 vv \n"), chosen(&["mon", "wed"]));
    assert_eq!(press(&mut pane, &question, "1 \n"), chosen(&["wed"]));
}

#[test]
fn a_form_with_several_questions_is_one_answer() {
    let question = question(RequestedInput::Form(vec![
        field("unit", FieldKind::One, &["c", "f"], false),
        field("loud", FieldKind::Switch, &[], false),
        field("name", FieldKind::Text, &[], false),
    ]));
    let mut pane = QuestionPane::new(&question, None, false);
    // Numbers count in the question of the chosen row.
    assert_eq!(press(&mut pane, &question, "2\n2\nBob\n"), QuestionKey::Changed);
    let expected = form(json!({"unit": {"chosen": ["f"]}, "loud": {"chosen": ["no"]},
        "name": {"chosen": ["Bob"]}}));
    assert_eq!(press(&mut pane, &question, "\n"), expected);
    assert_eq!(pane.draft(), "Bob");
}
