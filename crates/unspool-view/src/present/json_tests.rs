use super::*;

#[test]
fn pretty_keeps_order_numbers_and_depth() {
    let text = r#"{"z":1.10,"a":[],"n":12345678901234567890,"t":"a{\"b\",c:","o":{"k":null}}"#;
    let expected = "{\n  \"z\": 1.10,\n  \"a\": [],\n  \"n\": 12345678901234567890,\n  \"t\": \"a{\\\"b\\\",c:\",\n  \"o\": {\n    \"k\": null\n  }\n}";
    assert_eq!(pretty(text), expected);
    assert_eq!(pretty(expected), expected);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(pretty(&deep).len() < 2_000_000);
    // Invalid JSON is passed through.
    pretty("\"unclosed \\");
    pretty("}}]],,");
}

#[test]
fn a_long_list_does_not_grow_by_its_indentation() {
    let list = format!("{}1{}", "[".repeat(40), ",1".repeat(1_000_000) + &"]".repeat(40));
    let shown = pretty(&list);
    assert!(shown.starts_with("[\n  [\n    ["));
    assert!(shown.len() < list.len() + MAX_INDENTED_BYTES, "{} bytes", shown.len());
    let is_space = |c: char| c.is_ascii_whitespace();
    assert!(shown.split(is_space).collect::<String>() == list);
}

#[test]
fn binary_is_named_not_printed() {
    let data = "aZ0+".repeat(200);
    let shown = pretty(&format!(r#"{{"data":"{data}"}}"#));
    assert_eq!(shown, "{\n  \"data\": \"‹600 bytes of binary data›\"\n}");
    assert_eq!(binary_size(&format!("data:image/png;base64,{data}")), Some(600));
    assert_eq!(binary_size(&"word ".repeat(100)), None);
    assert_eq!(binary_size(&"a".repeat(1000)), None);
}
