//! Golden files of every projection of every fixture, in `projected/` beside the recordings. They
//! are for review, so they are split into lines; machine formats are written as outlines in which
//! long texts are cut and represented by their digest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_render::project::{ALL, WriteMethod};

use crate::case::{all_cases, assert_none, root};
use crate::projections_trace::lookup::{CaseLookup, project};
use crate::projections_trace::{atif, otel};

/// A projection in the form of its golden file.
fn readable(form: &str, text: String) -> String {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    match form {
        "atif" => atif::readable(&read(&text)),
        "otel" => otel::readable(&read(&text)),
        // Drop the styles and the script: they are the same on every page.
        "html" => {
            let (_, body) = text.split_once("</style>").unwrap();
            let (body, _) = body.rsplit_once("<script>").unwrap();
            body.replace("><", ">\n<")
        }
        "json" | "uimessage" | "fixture" => text.replace("},{", "},\n{"),
        _ => text,
    }
}

fn golden(case: &Path, form: &str, nth: usize) -> PathBuf {
    // The extension must not look like a recording.
    let extension = if form == "markdown" { "md" } else { "txt" };
    let session = if nth == 0 { String::new() } else { format!("{nth}.") };
    case.join("projected").join(format!("{session}{form}.{extension}"))
}

fn first_line_that_differs(expected: &str, found: &str) -> String {
    let lines = expected.lines().zip(found.lines()).enumerate();
    let unlike = lines.into_iter().find(|(_, (expected, found))| expected != found);
    let cut = |line: &str| line.chars().take(200).collect::<String>();
    match unlike {
        Some((at, (expected, found))) => {
            format!("line {}\n  - {}\n  + {}", at + 1, cut(expected), cut(found))
        }
        None => "one has more lines than the other".to_owned(),
    }
}

#[test]
fn projections_match_their_goldens() {
    let bless = std::env::var_os("UNSPOOL_BLESS").is_some();
    // `history.rs` checks the model history by its rules.
    let forms: Vec<_> = ALL
        .iter()
        .filter(|form| matches!(form.method, WriteMethod::Projected(_)) && form.name != "history")
        .collect();
    let mut wrong = Vec::new();
    let mut wanted = BTreeSet::new();
    for case in all_cases() {
        if bless {
            let _ = std::fs::remove_dir_all(case.join("projected"));
            std::fs::create_dir(case.join("projected")).unwrap();
        }
        let lookup = CaseLookup::of_case(&case);
        for (nth, transcript) in lookup.0.iter().enumerate() {
            for form in &forms {
                let found = readable(form.name, project(form.name, &lookup, transcript));
                let path = golden(&case, form.name, nth);
                if bless {
                    std::fs::write(&path, &found).unwrap();
                }
                let expected = std::fs::read_to_string(&path).unwrap_or_default();
                if expected != found {
                    let place = path.strip_prefix(root()).unwrap().display().to_string();
                    wrong.push(format!("{place}: {}", first_line_that_differs(&expected, &found)));
                }
                wanted.insert(path);
            }
        }
        let kept = case.join("projected").read_dir().into_iter().flatten();
        let kept = kept.map(|file| file.unwrap().path());
        wrong.extend(
            kept.filter(|file| !wanted.contains(file))
                .map(|file| format!("{} is of nothing", file.display())),
        );
    }
    assert!(wanted.len() > 2400, "{}", wanted.len());
    assert_none(wrong);
}
