//! Tests of row recognition.

use super::super::{JsonOutline, recognise};

fn recognised_as(text: &str) -> Option<(&'static str, String)> {
    let mut outline = JsonOutline::default();
    let fields = outline.read(text).unwrap();
    let (format, recognised) = recognise(&fields)?;
    Some((format.agent, format!("{recognised:?}")))
}

#[test]
fn rows_are_recognised_by_what_they_have() {
    for (row, whose) in [
        (r#"{"role":"user","content":"hi"}"#, "Format"),
        (r#"{"role":"assistant","content":[{"type":"text","text":"hi"}]}"#, "Format"),
        (r#"{"type":"think","text":"hm","conversation_id":"c1"}"#, r#"Session("c1")"#),
        (r#"{"kind":"tool","name":"ls","args":"{}","session":"s"}"#, r#"Session("s")"#),
        (r#"{"type":"tool_result","tool_use_id":"t","content":"x"}"#, "Format"),
        (r#"{"prompt":"do it","result":null}"#, "Format"),
        (r#"{"type":"explore","prompt":"do it","result":"done","session":"7"}"#, r#"Session("7")"#),
    ] {
        assert_eq!(recognised_as(row), Some(("rows", whose.to_owned())), "{row}");
    }
    for other in [
        r#"{"role":"user"}"#,
        r#"{"type":"tool"}"#,
        r#"{"prompt":"do it"}"#,
        r#"{"type":"metric","text":"x"}"#,
        r#"{"level":"info","message":"started"}"#,
        r#"{"display":"/clear","pastedContents":{}}"#,
    ] {
        assert_eq!(recognised_as(other), None, "{other}");
    }
}
