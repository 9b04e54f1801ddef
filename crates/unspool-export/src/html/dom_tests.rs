use std::fs;
use std::path::{Path, PathBuf};

use super::{PART, REASONING, TURN, TURN_HEAD, USER};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn no_other_file_spells_a_prefix() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        files(&folder.join("src"), &mut paths);
        if folder.join("assets").is_dir() {
            files(&folder.join("assets"), &mut paths);
        }
    }
    assert!(paths.iter().any(|path| path.ends_with("app.js")));
    assert!(paths.len() > 300, "{}", paths.len());
    let is_test = |path: &Path| path.to_string_lossy().ends_with("_tests.rs");
    paths.retain(|path| !is_test(path) && !path.ends_with("dom.rs"));
    let mut spelled = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        for prefix in [TURN, TURN_HEAD, USER, PART, REASONING] {
            // In a string, a template or a link; followed by the end, a value or a placeholder.
            for start in ["\"", "'", "`", "#"] {
                for end in ["\"", "'", "`", "{", "$", "("] {
                    if text.contains(&format!("{start}{prefix}{end}")) {
                        spelled.push(format!("{}: {start}{prefix}{end}", path.display()));
                    }
                }
            }
        }
    }
    assert!(spelled.is_empty(), "{spelled:#?}");
}

#[test]
fn scripts_get_the_prefixes() {
    let script = super::script();
    assert!(script.contains("export const ID = { turn: \"t-\", user: \"u-\", part: \"p-\" };"));
}
