//! The tables of the statistics as CSV (RFC 4180), for spreadsheets. Column names are those of the
//! JSON and a stable interface.

use unspool_model::prompt::SourceShare;

use super::{
    GroupFigures, HourFigures, SessionFigures, Stats, ToolFigures, UsageFigures, time_text,
};

/// A table of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatsTable {
    Day,
    Week,
    Month,
    Hour,
    Model,
    Agent,
    Project,
    Tool,
    Session,
}

impl StatsTable {
    pub const ALL: [StatsTable; 9] = [
        StatsTable::Day,
        StatsTable::Week,
        StatsTable::Month,
        StatsTable::Hour,
        StatsTable::Model,
        StatsTable::Agent,
        StatsTable::Project,
        StatsTable::Tool,
        StatsTable::Session,
    ];

    /// The names of all tables, in the order of `ALL`.
    pub const NAMES: &'static [&'static str] =
        &["day", "week", "month", "hour", "model", "agent", "project", "tool", "session"];

    pub fn name(self) -> &'static str {
        match self {
            StatsTable::Day => "day",
            StatsTable::Week => "week",
            StatsTable::Month => "month",
            StatsTable::Hour => "hour",
            StatsTable::Model => "model",
            StatsTable::Agent => "agent",
            StatsTable::Project => "project",
            StatsTable::Tool => "tool",
            StatsTable::Session => "session",
        }
    }

    pub fn of_name(name: &str) -> Option<StatsTable> {
        StatsTable::ALL.into_iter().find(|table| table.name() == name)
    }
}

const USAGE_COLUMNS: [&str; 11] = [
    "input",
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "cost_usd",
    "partial_cost_usd",
    "estimated_cost_usd",
    "unpriced_steps",
    "spent_usd",
    "is_estimated",
];

impl Stats {
    /// One table as CSV, with a line of column names.
    pub fn csv(&self, table: StatsTable) -> String {
        match table {
            StatsTable::Day => groups(table, &self.by_day),
            StatsTable::Week => groups(table, &self.by_week),
            StatsTable::Month => groups(table, &self.by_month),
            StatsTable::Model => groups(table, &self.by_model),
            StatsTable::Agent => groups(table, &self.by_agent),
            StatsTable::Project => groups(table, &self.by_project),
            StatsTable::Hour => hours(&self.by_hour),
            StatsTable::Tool => tools(&self.tools),
            StatsTable::Session => sessions(&self.most_expensive),
        }
    }
}

/// What prompts consisted of, as CSV.
pub fn pieces<'a>(sources: impl Iterator<Item = &'a SourceShare>) -> String {
    let columns = ["kind", "source", "mcp_server", "chars", "estimated_tokens"];
    let rows = sources.map(|share| {
        let names = [Some(share.kind.name()), share.source.as_deref(), share.server()];
        let figures = [share.chars, share.tokens].map(|count| count.to_string());
        names.map(text).into_iter().chain(figures).collect()
    });
    written(columns, rows)
}

fn groups(table: StatsTable, groups: &[GroupFigures]) -> String {
    let columns = [table.name(), "sessions", "turns", "steps"];
    let rows = groups.iter().map(|group| {
        let mut row = vec![text(group.name.as_deref())];
        row.extend([group.sessions, group.turns, group.steps].map(|count| count.to_string()));
        row.extend(usage(&group.usage));
        row
    });
    written(columns.into_iter().chain(USAGE_COLUMNS), rows)
}

fn hours(hours: &[HourFigures]) -> String {
    let rows = hours.iter().map(|hour| {
        let HourFigures { weekday, hour, turns, steps, tokens } = *hour;
        let of_week = [weekday, hour].map(|number| number.to_string());
        of_week.into_iter().chain([turns, steps, tokens].map(|count| count.to_string())).collect()
    });
    written(["weekday", "hour", "turns", "steps", "tokens"], rows)
}

fn tools(tools: &[ToolFigures]) -> String {
    let columns = [
        "tool",
        "calls",
        "completed",
        "failed",
        "denied",
        "interrupted",
        "running",
        "error_rate",
        "known",
        "median_ms",
        "p95_ms",
        "total_ms",
        "with_waiting",
    ];
    let rows = tools.iter().map(|tool| {
        let took = &tool.duration;
        let mut row = vec![text(Some(&tool.name))];
        let ends = [tool.completed, tool.failed, tool.denied, tool.interrupted, tool.running];
        row.extend([tool.calls].into_iter().chain(ends).map(|count| count.to_string()));
        row.push(number(tool.error_rate));
        row.extend(
            [Some(took.measured), took.median_ms, took.p95_ms]
                .map(|count| count.map(|count| count.to_string()).unwrap_or_default()),
        );
        row.extend([took.total_ms, took.with_waiting].map(|count| count.to_string()));
        row
    });
    written(columns, rows)
}

fn sessions(sessions: &[SessionFigures]) -> String {
    let columns = ["session", "title", "agent", "project", "started_at", "sub_agents", "turns"];
    let rows = sessions.iter().map(|one| {
        let mut row = vec![
            text(Some(&one.session)),
            text(one.title.as_deref()),
            text(Some(&one.agent)),
            text(one.project.as_deref()),
            time_text(one.started).unwrap_or_default(),
        ];
        row.extend([one.sub_agents, one.turns].map(|count| count.to_string()));
        row.extend(usage(&one.usage));
        row
    });
    written(columns.into_iter().chain(USAGE_COLUMNS), rows)
}

fn usage(figures: &UsageFigures) -> Vec<String> {
    let tokens = figures.tokens;
    let mut row: Vec<String> =
        [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.reasoning]
            .map(|count| count.to_string())
            .into();
    row.extend([
        number(figures.cost_usd),
        number(figures.partial_cost_usd),
        number(figures.estimated_cost_usd),
        figures.unpriced_steps.to_string(),
        number(figures.spent_usd),
        figures.is_estimated.to_string(),
    ]);
    row
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A quoted text. Agents choose the names of tools, models and projects, and a spreadsheet
/// calculates a cell that begins like a formula: an apostrophe makes it a text (law 8).
fn text(value: Option<&str>) -> String {
    let Some(value) = value else { return String::new() };
    let is_formula = value.trim_start().starts_with(['=', '+', '-', '@'])
        || value.starts_with(['\t', '\r', '\n']);
    let mark = if is_formula { "'" } else { "" };
    let visible: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{mark}{}\"", visible.replace('"', "\"\""))
}

fn written<'a>(
    columns: impl IntoIterator<Item = &'a str>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut out = columns.into_iter().collect::<Vec<_>>().join(",");
    for row in rows {
        out.push_str("\r\n");
        out.push_str(&row.join(","));
    }
    out.push_str("\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_tables() {
        let names: Vec<&str> = StatsTable::ALL.into_iter().map(StatsTable::name).collect();
        assert_eq!(names, StatsTable::NAMES);
        for table in StatsTable::ALL {
            assert_eq!(StatsTable::of_name(table.name()), Some(table));
            let csv = Stats::default().csv(table);
            assert_eq!(csv.lines().count(), 1, "{csv}");
        }
        assert_eq!(StatsTable::of_name("year"), None);
    }

    #[test]
    fn a_name_is_never_a_formula_or_a_second_cell() {
        // Law 8
        for (name, cell) in [
            ("plain, with \"quotes\"", "\"plain, with \"\"quotes\"\"\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            (" +1", "\"' +1\""),
            ("@sum", "\"'@sum\""),
            ("two\r\nlines", "\"two  lines\""),
        ] {
            assert_eq!(text(Some(name)), cell);
        }
        assert_eq!(text(None), "");
    }
}
