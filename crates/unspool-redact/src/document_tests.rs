//! Documents with several secrets, as text, as JSON, and inside a string of JSON.

use crate::{Redactor, Rules};
use unspool_model::json::Json;

fn text(text: &str) -> String {
    Redactor::new(&Rules::standard()).text(text).into_owned()
}

fn json(text: &str) -> String {
    Redactor::new(&Rules::standard()).json(&Json::checked(text)).text().to_owned()
}

#[test]
fn every_value_of_a_kubernetes_secret_is_replaced() {
    let manifest = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  username: YWRtaW4=\n  blob: c2VjcmV0IQ==\ntype: Opaque\n---\nkind: ConfigMap\ndata:\n  blob: plain\n";
    let expected = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  username: [redacted:secret:1]\n  blob: [redacted:secret:2]\ntype: Opaque\n---\nkind: ConfigMap\ndata:\n  blob: plain\n";
    assert_eq!(text(manifest), expected);
    assert_eq!(json(Json::string(manifest).text()), Json::string(expected).text());
    let printed = r#"{"items":[{"data":{"a":"YWRtaW4=","b":"Ym9iYnk="},"kind":"Secret","metadata":{"name":"x"}},{"data":{"a":"plain"},"kind":"ConfigMap"}],"kind":"List"}"#;
    let expected = r#"{"items":[{"data":{"a":"[redacted:secret:1]","b":"[redacted:secret:2]"},"kind":"Secret","metadata":{"name":"x"}},{"data":{"a":"plain"},"kind":"ConfigMap"}],"kind":"List"}"#;
    assert_eq!(text(printed), expected);
    assert_eq!(json(printed), expected);
}

#[test]
fn lists_and_objects_with_a_secret_name() {
    for (given, expected) in [
        (
            r#"{"passwords":["a1b2c3","hunterhorse","word"]}"#,
            r#"{"passwords":["[redacted:password:1]","[redacted:password:2]","word"]}"#,
        ),
        (
            r#"{"tokens":["x7Kq9ZmW2vB4nT6y","hello","12345678"]}"#,
            r#"{"tokens":["[redacted:token:1]","hello","12345678"]}"#,
        ),
        (
            r#"{"secrets":{"db":"x7Kq9ZmW2vB4nT6y","id":"y7Kq9ZmW2vB4nT6x"}}"#,
            r#"{"secrets":{"db":"[redacted:secret:1]","id":"y7Kq9ZmW2vB4nT6x"}}"#,
        ),
        (
            r#"{"password":{"value":"hunter2x"}}"#,
            r#"{"password":{"value":"[redacted:password:1]"}}"#,
        ),
        (
            r#"[{"value":"hunterhorse","type":"plain","name":"DB_PASSWORD"}]"#,
            r#"[{"value":"[redacted:password:1]","type":"plain","name":"DB_PASSWORD"}]"#,
        ),
    ] {
        assert_eq!(json(given), expected);
    }
    assert_eq!(
        text("passwords:\n  - a1b2c3\n  - \"hunterhorse\"\nother: x"),
        "passwords:\n  - [redacted:password:1]\n  - \"[redacted:password:2]\"\nother: x"
    );
}

#[test]
fn every_literal_of_a_secret_command_is_replaced() {
    assert_eq!(
        text(
            "kubectl create secret generic x --from-literal=a=8391 \\\n  --from-literal='b=two words'"
        ),
        "kubectl create secret generic x --from-literal=a=[redacted:secret:1] \\\n  --from-literal='b=[redacted:secret:2]'"
    );
}

#[test]
fn marks_of_markdown_do_not_hide_a_key() {
    let key = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    assert_eq!(text(&format!("**ghp_**{key} is mine")), "**[redacted:github-token:1] is mine");
    assert_eq!(text(&format!("`ghp_`{key}")), "`[redacted:github-token:1]");
    let (start, end) = key.split_at(20);
    assert_eq!(text(&format!("ghp_{start}*{end}*")), "[redacted:github-token:1]*");
}
