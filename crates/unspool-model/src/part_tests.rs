#![allow(clippy::unwrap_used)]

use super::Kind;

const SCHEMA: &str = include_str!("../../../docs/session.schema.json");
const FIELDS: &str = include_str!("../../../docs/json.md");

/// Law 4: a kind that a document or a stored name leaves out would be lost there.
#[test]
fn every_kind_has_one_name_everywhere() {
    for (nth, kind) in Kind::ALL.into_iter().enumerate() {
        let name = kind.name();
        assert_eq!(kind as usize, nth, "ALL has every kind, in order");
        assert_eq!(Kind::of_name(name), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), name);
        assert!(SCHEMA.contains(&format!("\"const\": \"{name}\"")), "the schema lacks {name}");
        assert!(FIELDS.contains(&format!("| `{name}` |")), "docs/json.md lacks {name}");
    }
    // The compiler makes this match as long as the enum.
    let last = |kind: Kind| match kind {
        Kind::Text
        | Kind::Reasoning
        | Kind::Tool
        | Kind::Agent
        | Kind::Interjection
        | Kind::TaskList
        | Kind::SkillLoad
        | Kind::McpSnapshot
        | Kind::ContextInfo
        | Kind::Compaction
        | Kind::File
        | Kind::Source
        | Kind::Patch
        | Kind::Notice
        | Kind::Error => false,
        Kind::Data => true,
    };
    assert!(last(Kind::ALL[Kind::ALL.len() - 1]), "a new kind goes before data, and into ALL");
}
