use super::*;
use crate::chat::validate;
use crate::protocol::{FieldValue, UserAnswer};

const PERMISSION: &str = r#"{"id":"evt_1","type":"permission.asked","properties":{"id":"per_1",
    "sessionID":"ses_1","permission":"bash","patterns":["./deploy.sh"],
    "metadata":{"command":"./deploy.sh"},"always":["./deploy.sh *"],
    "tool":{"messageID":"msg_1","callID":"call_1"}}}"#;
const FORM: &str = r#"{"directory":"/a project","payload":{"type":"question.asked","properties":{"id":"que_1",
    "sessionID":"ses_1","questions":[{"question":"Which unit?","header":"Unit","options":[
    {"label":"Celsius","description":"Metric"},{"label":"Fahrenheit"}]},
    {"question":"Which stations?","multiple":true,"options":[{"label":"ZRH"},{"label":"OSL"}]}],
    "tool":{"callID":"call_2"}}}}"#;

fn question_of(event: &str) -> OpencodeQuestion {
    match QuestionEvent::of_event(event.as_bytes()) {
        Some(QuestionEvent::Asked(question)) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_permission_is_answered_with_the_servers_words() {
    let question = question_of(PERMISSION);
    let open = question.open(0);
    assert_eq!(
        (open.text.as_str(), open.call.as_deref()),
        ("Allow `./deploy.sh`?", Some("call_1"))
    );
    for (option, words, body) in [
        ("once", None, json!({"reply": "once"})),
        ("always", Some("x"), json!({"reply": "always"})),
        ("reject", None, json!({"reply": "reject"})),
        ("reject", Some(" not on Friday "), json!({"reply": "reject", "message": "not on Friday"})),
    ] {
        let answer = UserAnswer::Option(option.to_owned());
        let valid = validate(&open, &answer, 10_000).unwrap();
        let reply = question.reply(&valid, words);
        assert_eq!(reply, Reply { path: "/permission/per_1/reply".to_owned(), body });
    }
    let reply = question.reply(&ValidAnswer::Declined, None);
    assert_eq!(reply.body, json!({"reply": "reject"}), "nobody says yes by declining");
}

#[test]
fn questions_are_answered_in_their_order() {
    let question = question_of(FORM);
    let open = question.open(0);
    let value = |chosen: &[&str], own: Option<&str>| FieldValue {
        chosen: chosen.iter().map(|one| (*one).to_owned()).collect(),
        own_words: own.map(str::to_owned),
    };
    let form = [
        ("0".to_owned(), value(&["Celsius"], None)),
        ("1".to_owned(), value(&["ZRH", "OSL"], Some("BGO"))),
    ];
    let answer = UserAnswer::Form(form.into_iter().collect());
    let valid = validate(&open, &answer, 10_000).unwrap();
    let reply = question.reply(&valid, None);
    assert_eq!(reply.path, "/question/que_1/reply?directory=/a%20project");
    assert_eq!(reply.body, json!({"answers": [["Celsius"], ["ZRH", "OSL", "BGO"]]}));
    let reply = question.reply(&ValidAnswer::Declined, None);
    assert_eq!(reply.path, "/question/que_1/reject?directory=/a%20project");
}

#[test]
fn other_events_and_strange_ids_are_no_questions() {
    for (event, over) in [
        (
            r#"{"type":"permission.replied","properties":{"sessionID":"ses_1","requestID":"per_1","reply":"once"}}"#,
            "allowed",
        ),
        (
            r#"{"type":"permission.replied","properties":{"sessionID":"ses_1","requestID":"per_1","reply":"reject"}}"#,
            "refused",
        ),
        (
            r#"{"type":"question.rejected","properties":{"sessionID":"ses_1","requestID":"per_1"}}"#,
            "declined",
        ),
    ] {
        let expected = QuestionEvent::Over("per_1".to_owned(), over);
        assert_eq!(QuestionEvent::of_event(event.as_bytes()), Some(expected));
    }
    let rests = r#"{"type":"session.idle","properties":{"sessionID":"ses_1"}}"#;
    let expected = QuestionEvent::Rests("ses_1".to_owned());
    assert_eq!(QuestionEvent::of_event(rests.as_bytes()), Some(expected));
    let strange = PERMISSION.replace("per_1", "../session/ses_1/abort");
    assert_eq!(QuestionEvent::of_event(strange.as_bytes()), None);
    let text = r#"{"type":"message.part.delta","properties":{"sessionID":"ses_1","delta":"permission.asked"}}"#;
    assert_eq!(QuestionEvent::of_event(text.as_bytes()), None);
    assert_eq!(QuestionEvent::of_event(b"permission. ses_ not JSON"), None);
}
