//! Tables of SQLite's FTS5.

use unspool_index::TextQuery;
use unspool_store::sql::Connection;

use crate::corpus::{Query, Wanted};
use crate::variant::{Answer, Found, Variant, batches, file_of, text_of};
use crate::{Failure, HITS};

/// FTS5 collects this many bytes in memory before it writes a segment. The default of 1 MB suits
/// small transactions and makes a large import merge more often.
const HASH_BYTES: usize = 32 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    Words,
    Trigrams,
}

pub struct Fts5Table {
    pub name: &'static str,
    pub tokens: Tokens,
    /// Whether the index has the positions of tokens (`detail=full`), which phrases need.
    pub positions: bool,
    /// Whether the table stores the texts as well.
    pub stores_text: bool,
}

/// A query as FTS5 takes it.
struct Expression {
    text: String,
    /// Whether results must be compared with their texts, because the expression is weaker than
    /// the query.
    verify: bool,
}

impl Fts5Table {
    fn options(&self) -> String {
        let mut options = String::from("text");
        if self.tokens == Tokens::Trigrams {
            options.push_str(", tokenize='trigram'");
        }
        if !self.stores_text {
            options.push_str(", content=''");
        }
        if !self.positions {
            options.push_str(", detail=none");
        }
        options
    }

    /// None if the table cannot narrow the query down.
    fn expression(&self, query: &Query) -> Option<Expression> {
        match self.tokens {
            Tokens::Words => self.expression_of_words(query),
            Tokens::Trigrams => self.expression_of_trigrams(query),
        }
    }

    fn expression_of_words(&self, query: &Query) -> Option<Expression> {
        match &query.wanted {
            Wanted::Words(words) => {
                Some(Expression { text: all_of(words.iter().cloned()), verify: false })
            }
            Wanted::Phrase(text) if self.positions => {
                Some(Expression { text: all_of([text.clone()]), verify: false })
            }
            Wanted::Phrase(text) => Some(Expression {
                text: all_of(text.split(' ').map(str::to_owned)),
                verify: text.contains(' '),
            }),
            Wanted::Fragment(_) => None,
        }
    }

    fn expression_of_trigrams(&self, query: &Query) -> Option<Expression> {
        let (texts, whole_words) = match &query.wanted {
            Wanted::Words(words) => (words.as_slice(), true),
            Wanted::Phrase(text) | Wanted::Fragment(text) => (std::slice::from_ref(text), false),
        };
        if texts.iter().any(|text| text.chars().count() < 3) {
            return None;
        }
        let text = match self.positions {
            true => all_of(texts.iter().cloned()),
            false => all_of(texts.iter().flat_map(|text| trigrams(text))),
        };
        Some(Expression { text, verify: whole_words || !self.positions })
    }
}

fn all_of(texts: impl IntoIterator<Item = String>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| format!("\"{text}\"")).collect();
    quoted.join(" AND ")
}

fn trigrams(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.windows(3).map(|three| three.iter().collect()).collect()
}

impl Variant for Fts5Table {
    fn name(&self) -> &'static str {
        self.name
    }

    fn build(&self, connection: &mut Connection, documents: &[String]) -> Result<(), Failure> {
        let connection = file_of(connection)?;
        connection.execute_batch(&format!(
            "CREATE VIRTUAL TABLE search USING fts5({});
             INSERT INTO search (search, rank) VALUES ('hashsize', {HASH_BYTES});",
            self.options()
        ))?;
        for batch in batches(documents) {
            let transaction = connection.unchecked_transaction()?;
            let mut insert =
                transaction.prepare("INSERT INTO search (rowid, text) VALUES (?1, ?2)")?;
            for row in batch {
                insert.execute((row as i64, &documents[row]))?;
            }
            drop(insert);
            transaction.commit()?;
        }
        connection.execute("INSERT INTO search (search) VALUES ('optimize')", [])?;
        Ok(())
    }

    fn look_up(
        &self,
        connection: &Connection,
        query: &Query,
        answer: Answer,
    ) -> Result<Option<Found>, Failure> {
        let Some(expression) = self.expression(query) else { return Ok(None) };
        // A contentless table without positions has no frequencies: bm25() is zero for all.
        let ranked = self.positions && query.ranked;
        let order = if ranked { "rank" } else { "rowid DESC" };
        let sql = format!("SELECT rowid FROM search WHERE search MATCH ?1 ORDER BY {order}");
        let mut statement = file_of(connection)?.prepare_cached(&sql)?;
        let mut rows = statement.query([expression.text])?;
        let texts = if self.stores_text { "search" } else { "texts.document" };
        let verifier = TextQuery::parse(&query.typed());
        let mut found = Found { rows: Vec::new(), ranked, verified: expression.verify };
        while let Some(row) = rows.next()? {
            if answer == Answer::First && found.rows.len() == HITS {
                break;
            }
            let row = row.get(0)?;
            if answer == Answer::All && !expression.verify {
                found.rows.push(row);
                continue;
            }
            let text = text_of(connection, texts, row)?;
            if !expression.verify || verifier.matches(&[&text]) {
                found.rows.push(row);
            }
        }
        Ok(Some(found))
    }
}
