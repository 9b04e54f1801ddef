//! The direction of dependencies: core ← sources, store, render ← engine ← server, tui ← the
//! binary. Sources, store and render do not see each other.

use cargo_metadata::{DependencyKind, MetadataCommand};

/// The workspace crates that each crate may use. A crate that is not listed fails the test.
const ALLOWED: &[(&str, &[&str])] = &[
    ("unspool-core", &[]),
    ("unspool-sources", &["unspool-core"]),
    ("unspool-store", &["unspool-core"]),
    ("unspool-render", &["unspool-core"]),
    ("unspool-engine", &["unspool-core", "unspool-sources", "unspool-store", "unspool-render"]),
    (
        "unspool-server",
        &["unspool-core", "unspool-sources", "unspool-store", "unspool-render", "unspool-engine"],
    ),
    (
        "unspool-tui",
        &["unspool-core", "unspool-sources", "unspool-store", "unspool-render", "unspool-engine"],
    ),
];

/// Crates that unspool-core must not use: it does no I/O.
const IMPURE: &[&str] = &["tokio", "rusqlite", "axum", "ratatui", "reqwest", "notify"];

#[test]
fn crates_depend_in_one_direction() {
    let metadata = MetadataCommand::new()
        .manifest_path(crate::case::root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .unwrap();
    let mut seen = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if name == "unspool" {
            continue;
        }
        seen.push(name.to_owned());
        let allowed = ALLOWED
            .iter()
            .find(|(of, _)| *of == name)
            .unwrap_or_else(|| panic!("{name} has no place in the map of crates"))
            .1;
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            if used.starts_with("unspool") {
                assert!(allowed.contains(&used), "{name} must not use {used}");
            }
            if name == "unspool-core" && dependency.kind == DependencyKind::Normal {
                assert!(!IMPURE.contains(&used), "the core must stay pure: {used}");
            }
        }
    }
    let mut listed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, listed, "a crate is missing");
}

/// The folders of the engine and the ones that each may use, besides the files beside them.
const ENGINE_FOLDERS: &[(&str, &[&str])] = &[
    ("query", &["exchange"]),
    ("hooks", &[]),
    ("exchange", &[]),
    ("ingest", &["exchange", "hooks"]),
    ("recorder", &["ingest", "exchange", "hooks"]),
];

#[test]
fn folders_of_the_engine_depend_in_one_direction() {
    let source = crate::case::root().join("crates/unspool-engine/src");
    for (folder, allowed) in ENGINE_FOLDERS {
        let mut files = rust_files(&source.join(folder));
        assert!(!files.is_empty(), "{folder} is gone");
        files.push(source.join(format!("{folder}.rs")));
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let others = ENGINE_FOLDERS.iter().map(|(other, _)| other);
            for other in others.filter(|other| *other != folder && !allowed.contains(*other)) {
                let used = text.contains(&format!("crate::{other}::"));
                assert!(!used, "{} must not use {other}", file.display());
            }
        }
    }
}

fn rust_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files.extend(rust_files(&entry));
        } else {
            files.push(entry);
        }
    }
    files
}
