use std::fs;

use super::*;

fn capture(folder: &DataFolder, pieces: &[&str]) -> PathBuf {
    let mut capture = StdinCapture::new(folder).unwrap();
    for piece in pieces {
        capture.append(piece.as_bytes()).unwrap();
    }
    capture.finish().unwrap();
    capture.path().unwrap().to_owned()
}

// Law 5.
#[test]
fn the_same_input_is_one_capture() {
    let data = tempfile::tempdir().unwrap();
    let folder = DataFolder::new(data.path().join("data"));
    let first = capture(&folder, &["a\nb\n", "c\n"]);
    assert_eq!(capture(&folder, &["a\n", "b\nc\n"]), first);
    assert_eq!(fs::read_to_string(&first).unwrap(), "a\nb\nc\n");
    // A part of it adds nothing.
    assert_eq!(capture(&folder, &["a\nb\n"]), first);
    assert_eq!(fs::read_to_string(&first).unwrap(), "a\nb\nc\n");
    // More of it continues it, even in the middle of a line that was cut off.
    assert_eq!(capture(&folder, &["a\nb\nc\n", "d"]), first);
    assert_eq!(capture(&folder, &["a\nb\nc\nde\n", "f\n"]), first);
    assert_eq!(fs::read_to_string(&first).unwrap(), "a\nb\nc\nde\nf\n");
}

#[test]
fn another_input_that_begins_alike_is_another_capture() {
    let data = tempfile::tempdir().unwrap();
    let folder = DataFolder::new(data.path().join("data"));
    let first = capture(&folder, &["a\n", "b\n", "c\n"]);
    let second = capture(&folder, &["a\n", "b\n", "x\n", "y\n"]);
    assert_ne!(first, second);
    assert_eq!(fs::read_to_string(&first).unwrap(), "a\nb\nc\n");
    assert_eq!(fs::read_to_string(&second).unwrap(), "a\nb\nx\ny\n");
    assert_eq!(capture(&folder, &["a\nb\nx\n"]), second);
    assert_ne!(capture(&folder, &["z\n"]), first);
    assert_eq!(folder.stdin_captures().read_dir().unwrap().count(), 3);
}

#[test]
fn two_inputs_at_a_time_do_not_share_a_capture() {
    let data = tempfile::tempdir().unwrap();
    let folder = DataFolder::new(data.path().join("data"));
    let mut one = StdinCapture::new(&folder).unwrap();
    let mut two = StdinCapture::new(&folder).unwrap();
    one.append(b"a\n").unwrap();
    two.append(b"a\n").unwrap();
    assert_ne!(one.path(), two.path());
}

#[test]
fn messages_call_a_capture_standard_input() {
    let data = tempfile::tempdir().unwrap();
    let folder = DataFolder::new(data.path().join("data"));
    let path = capture(&folder, &["a\n"]);
    assert_eq!(display_name(path.to_str().unwrap()), STDIN_NAME);
    assert_eq!(display_name("/home/me/stdin-1.jsonl"), "/home/me/stdin-1.jsonl");
}
