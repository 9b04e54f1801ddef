//! The filters of a search as conditions in SQL.

use crate::sql::Value;
use unspool_model::tools::filtered_by;

use crate::search::SearchRequest;

/// Conditions on the columns of a part, its turn and its session.
pub struct Filter {
    pub sql: String,
    pub values: Vec<Value>,
}

impl Filter {
    pub fn of(request: &SearchRequest) -> Filter {
        let mut filter = Filter { sql: String::new(), values: Vec::new() };
        let text = |value: &Option<String>| value.clone().map(Value::from);
        let session = request.session.map(|id| Value::from(id.to_string()));
        filter.require("session.id = ?", session);
        filter.require("session.agent = ?", text(&request.agent));
        filter.require("instr(session.project, ?) > 0", text(&request.project));
        match request.kind.as_deref() {
            Some("user") => filter.sql.push_str(" AND part.role = 'user'"),
            // As everywhere: an error part or a failed call (`Landmark::Error`).
            Some("error") => filter.sql.push_str(
                " AND (part.kind = 'error' OR part.state = 'failed') AND part.role <> 'user'",
            ),
            Some(kind) => {
                filter
                    .require("part.kind = ? AND part.role <> 'user'", Some(kind.to_owned().into()));
            }
            None => {}
        }
        if let Some(tool) = &request.tool {
            filter.require_any("part.tool", filtered_by(tool));
        }
        filter.require("part.state = ?", text(&request.state));
        filter.require(
            "EXISTS (SELECT 1 FROM step WHERE step.turn = part.turn AND step.id = part.step
                 AND instr(step.model, ?) > 0)",
            text(&request.model),
        );
        let time = "coalesce(part.started, part.ended, turn.started, turn.ended)";
        filter.require(&format!("{time} >= ?"), request.since.map(Value::from));
        filter.require(&format!("{time} < ?"), request.until.map(Value::from));
        filter
    }

    fn require_any(&mut self, column: &str, values: Vec<&str>) {
        let mut numbers = Vec::new();
        for value in values {
            self.values.push(value.to_owned().into());
            numbers.push(format!("?{}", self.values.len() + 1));
        }
        self.sql.push_str(&format!(" AND {column} IN ({})", numbers.join(", ")));
    }

    fn require(&mut self, condition: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.values.push(value);
            let numbered = condition.replace('?', &format!("?{}", self.values.len() + 1));
            self.sql.push_str(" AND ");
            self.sql.push_str(&numbered);
        }
    }
}
