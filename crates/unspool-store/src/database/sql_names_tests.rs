//! Kind and state names in SQL are those of the model.

use unspool_model::part::{Kind, ToolState};

const SQL: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("hour_cache.sql"),
    include_str!("last_heard.sql"),
    include_str!("derived_columns.rs"),
    include_str!("facets.rs"),
    include_str!("failures.rs"),
    include_str!("read.rs"),
    include_str!("read/session.rs"),
    include_str!("read/session_list.rs"),
    include_str!("read/sources.rs"),
    include_str!("search.rs"),
    include_str!("stats.rs"),
    include_str!("stats/tool_calls.rs"),
    include_str!("stats/usage_totals.rs"),
    include_str!("subagents.rs"),
    include_str!("windows.rs"),
    include_str!("write.rs"),
    include_str!("write/parts.rs"),
    include_str!("write/payloads.rs"),
    include_str!("write/sums.rs"),
    include_str!("write/turns.rs"),
];

/// The texts that a column is compared with. Names put in by `format!` are not literals.
fn compared(column: &str) -> Vec<&'static str> {
    let start = format!("{column} = '");
    let after = SQL.iter().flat_map(|sql| sql.split(start.as_str()).skip(1));
    let literals = after.filter_map(|rest| rest.split('\'').next());
    literals.filter(|name| !name.starts_with('{')).collect()
}

#[test]
fn sql_compares_with_names_of_kinds_and_states() {
    let kinds = compared("kind");
    assert!(
        !kinds.is_empty() && kinds.iter().all(|name| Kind::of_name(name).is_some()),
        "{kinds:?}"
    );
    let states = compared("part.state");
    let is_state = |name: &&str| ToolState::of_name(name).is_some();
    assert!(states.iter().all(is_state), "{states:?}");
}
