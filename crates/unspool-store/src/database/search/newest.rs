//! A search without words: the newest parts that pass its filters, such as all failed calls.

use crate::sql::Value;
use crate::sql::params_from_iter;

use super::Search;
use crate::pack::Extent;
use crate::rows::RowId;
use crate::search::{Hit, beginning};
use crate::store::StoreError;

impl Search<'_, '_> {
    pub(super) fn newest(&mut self) -> Result<(), StoreError> {
        let limit = i64::try_from(self.request.limit).unwrap_or(i64::MAX).saturating_add(1);
        let sql = format!(
            "SELECT part.row FROM part JOIN turn ON turn.row = part.turn
                 JOIN session ON session.row = turn.session
             WHERE NOT part.hidden{}
             ORDER BY coalesce(part.started, part.ended, turn.started, turn.ended) DESC
                 NULLS LAST,
                 part.row DESC
             LIMIT ?1",
            self.filter.sql
        );
        // The filter's values are numbered from 2 on.
        let values = std::iter::once(Value::from(limit)).chain(self.filter.values.iter().cloned());
        let mut rows: Vec<RowId> = self
            .connection
            .prepare_cached(&sql)?
            .query_map(params_from_iter(values), |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        self.results.more = rows.len() > self.request.limit;
        rows.truncate(self.request.limit);
        let wanted: Vec<(RowId, f32)> = rows.iter().map(|row| (*row, 0.0)).collect();
        let mut texts = self.loader.rows(&rows)?;
        for found in self.load_hits(&wanted)? {
            let Some(text) = texts.remove(&found.row) else { continue };
            if let Some(loaded) = self.loader.open_if_readable(text, Extent::WithoutResult)? {
                let snippet = beginning(&loaded.part.body, self.request.width);
                self.results.hits.push(Hit { snippet, ..found.hit });
            }
        }
        Ok(())
    }
}
