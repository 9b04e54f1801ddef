use super::*;

/// One line per line: mark, numbers, and the changed words in brackets.
fn sketch(diff: &Diff) -> Vec<String> {
    let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
    lines
        .map(|line| {
            let mark = match line.kind {
                DiffKind::Context => ' ',
                DiffKind::Added => '+',
                DiffKind::Removed => '-',
            };
            let number = line.new.or(line.old).map(|n| n.to_string()).unwrap_or_default();
            let text: String = line
                .spans
                .iter()
                .map(
                    |span| {
                        if span.changed { format!("[{}]", span.text) } else { span.text.clone() }
                    },
                )
                .collect();
            format!("{number}{mark}{text}")
        })
        .collect()
}

#[test]
fn words_that_changed_are_marked() {
    let diff = between(Some("a.ts"), "if (age > ttl) {", "if (age > ttl * 1000) {", Some(12));
    assert_eq!(sketch(&diff), ["12-if (age > ttl) {", "12+if (age > ttl[ * 1000]) {"]);
    assert_eq!(diff.language.as_deref(), Some("typescript"));
    // Unrelated lines get no word marks.
    let diff = between(None, "alpha beta", "gamma delta", None);
    assert_eq!(sketch(&diff), ["-alpha beta", "+gamma delta"]);
}

#[test]
fn claude_code_patches_keep_their_numbers() {
    let hunks: Vec<PatchHunk> = serde_json::from_str(
        r#"[{"oldStart":10,"oldLines":3,"newStart":10,"newLines":2,"lines":
            ["   if (!e) return;","-    // BUG: ms","-    if (now > ttl) {","+    if (now > ttl * 1000) {","\\ No newline at end of file"]}]"#,
    )
    .unwrap();
    let diff = from_structured_patch(Some("/w/cache.ts"), &hunks);
    assert_eq!(
        sketch(&diff),
        [
            "10   if (!e) return;",
            "11-    // BUG: ms",
            "12-    if (now > ttl) {",
            "11+    if (now > ttl[ * 1000]) {"
        ]
    );
    assert_eq!(diff.counts(), (1, 2));
}

#[test]
fn unified_diffs_are_read_by_their_counts() {
    // The removed line `-- old` looks like a header but is not one.
    let text = "diff --git a/q.sql b/q.sql\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old\n+-- new\n x\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n";
    let diffs = patch(text);
    assert_eq!(
        diffs.iter().map(|d| d.path.as_deref().unwrap()).collect::<Vec<_>>(),
        ["q.sql", "gone.txt"]
    );
    assert_eq!(sketch(&diffs[0]), ["1--- [old]", "1+-- [new]", "2 x"]);
    assert_eq!(sketch(&diffs[1]), ["1-bye"]);
    assert!(patch("no patch at all\n- a list\n").is_empty());
}

#[test]
fn codex_patches() {
    let text = "*** Begin Patch\n*** Update File: src/a.rs\n@@ fn main()\n let x;\n-one\n+two\n*** Add File: b.txt\n+new\n*** End Patch\n";
    let diffs = patch(text);
    assert_eq!(sketch(&diffs[0]), [" let x;", "-one", "+two"]);
    assert_eq!(
        (diffs[1].path.as_deref(), sketch(&diffs[1])),
        (Some("b.txt"), vec!["1+new".to_owned()])
    );
}

#[test]
fn work_is_bounded() {
    let old: String = (0..4_000).map(|n| format!("old {n}\n")).collect();
    let new: String = (0..4_000).map(|n| format!("new {n}\n")).collect();
    assert_eq!(between(None, &old, &new, Some(1)).counts(), (4_000, 4_000));
}
