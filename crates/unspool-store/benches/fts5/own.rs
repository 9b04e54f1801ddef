//! The own index, in the tables of an archive.

use unspool_index::{Limits, SegmentBuilder, SegmentItem, TextQuery, candidates, merge};
use unspool_store::database::block_store::{Blocks, SegmentWriter, SqliteBlockStore, add_segment};
use unspool_store::sql::Connection;
use unspool_store::store::StoreError;

use crate::corpus::Query;
use crate::variant::{Answer, Found, Variant, batches, text_of};
use crate::{Failure, HITS};

pub struct OwnIndex {
    pub name: &'static str,
    /// Whether all segments are merged into one. An import leaves up to 24 of them, and later
    /// merges are spread over time.
    pub merged: bool,
}

impl Variant for OwnIndex {
    fn name(&self) -> &'static str {
        self.name
    }

    fn build(&self, connection: &mut Connection, documents: &[String]) -> Result<(), Failure> {
        for batch in batches(documents) {
            let mut builder = SegmentBuilder::default();
            for row in batch {
                builder.begin(row as u64);
                builder.text(&documents[row]);
                builder.end();
            }
            let transaction = connection.transaction()?;
            add_segment(&transaction, &builder.finish())?;
            transaction.commit()?;
        }
        if self.merged { merge_all(connection) } else { Ok(()) }
    }

    fn look_up(
        &self,
        connection: &Connection,
        query: &Query,
        answer: Answer,
    ) -> Result<Option<Found>, Failure> {
        let mut limits = Limits::default();
        let query = TextQuery::parse(&query.typed());
        let mut found = Found { rows: Vec::new(), ranked: true, verified: true };
        loop {
            let page = candidates(&query, &SqliteBlockStore(connection), &limits)?;
            if page.everything || page.widened {
                return Err("a query does not suit the comparison: no document has its word".into());
            }
            found.ranked = !page.newest_first;
            for candidate in &page.documents {
                let row = candidate.document as i64;
                if query.matches(&[&text_of(connection, "texts.document", row)?]) {
                    found.rows.push(row);
                }
                if answer == Answer::First && found.rows.len() == HITS {
                    return Ok(Some(found));
                }
            }
            limits.before = page.documents.last().map(|candidate| candidate.document);
            if !page.more {
                return Ok(Some(found));
            }
        }
    }
}

/// As the maintenance of the archive does it, without dropping the words of deleted parts.
fn merge_all(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = connection.transaction()?;
    let rows: Vec<i64> = transaction
        .prepare("SELECT row FROM segment ORDER BY row")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut writer = SegmentWriter::begin(&transaction)?;
    let sources = rows.iter().map(|row| Blocks::new(&transaction, *row));
    let mut emit = |item: SegmentItem| -> Result<(), StoreError> { Ok(writer.put(&item)?) };
    let counts = merge(sources, &mut |_| true, &mut emit)?;
    writer.finish(counts)?;
    for row in rows {
        transaction.execute("DELETE FROM segment WHERE row = ?1", [row])?;
    }
    Ok(transaction.commit()?)
}
