//! The direction of dependencies (ARCHITECTURE.md, "The crates"): what each crate may name.
//! Surfaces (server and terminal) read through `query` and let text out through `export`; they
//! cannot name the recorder. Nothing but the binary depends on a surface.

use cargo_metadata::{DependencyKind, MetadataCommand};

/// The workspace crates that each crate may use. A crate that is not listed fails the test.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("view", &["model"]),
    ("redact", &["model"]),
    ("sources", &["model"]),
    ("index", &[]),
    ("store", &["model", "view", "index"]),
    ("export", &["model", "view", "redact", "store"]),
    ("query", &["model", "view", "redact", "sources", "store", "export"]),
    ("ingest", &["model", "sources", "index", "store", "query", "redact"]),
    ("live", &["model", "sources"]),
    ("mcp", &["model", "view", "redact", "store", "query", "export"]),
    ("server", &["model", "view", "redact", "store", "query", "export", "live", "mcp"]),
    ("tui", &["model", "view", "redact", "store", "query", "export", "live"]),
];

/// Tests may use more: the hostile tests of the decoders paint what they decoded, the tools of the
/// MCP server read archives that a test records, and what two databases hold is compared as exports.
const TESTS_ALLOWED: &[(&str, &[&str])] =
    &[("sources", &["view"]), ("mcp", &["ingest"]), ("ingest", &["export"])];

/// Crates that do no I/O, and crates that they must not use.
const PURE: &[&str] = &["model", "view", "redact", "index"];
const IMPURE: &[&str] = &["tokio", "rusqlite", "axum", "ratatui", "ureq", "notify", "rustix"];

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
        let Some(name) = package.name.strip_prefix("unspool-") else { continue };
        seen.push(name.to_owned());
        let list_of = |table: &[(&str, &'static [&'static str])]| {
            table.iter().find(|(of, _)| *of == name).map(|(_, list)| *list)
        };
        let allowed =
            list_of(ALLOWED).unwrap_or_else(|| panic!("{name} has no place in the map of crates"));
        let in_tests = list_of(TESTS_ALLOWED).unwrap_or_default();
        for dependency in &package.dependencies {
            let is_test = dependency.kind == DependencyKind::Development;
            if let Some(used) = dependency.name.strip_prefix("unspool-") {
                let fine = allowed.contains(&used) || is_test && in_tests.contains(&used);
                assert!(fine, "{name} must not use {used}");
            }
            let is_impure = IMPURE.contains(&dependency.name.as_str());
            assert!(is_test || !is_impure || !PURE.contains(&name), "{name}: {}", dependency.name);
        }
    }
    let mut listed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, listed, "a crate is missing");
}
