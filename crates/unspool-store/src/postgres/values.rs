//! Values between the two databases. Queries speak SQLite's five types; the columns of PostgreSQL
//! have types of their own.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use rusqlite::types::{ToSql as SqliteToSql, ToSqlOutput, Value, ValueRef};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::sql;

/// PostgreSQL has no U+0000 in texts, and agents print it. It is stored as these two characters, and
/// so is the first of them.
const ESCAPE: u8 = 0x1a;
const ZERO: u8 = b'0';
const ITSELF: u8 = b'1';

/// A text without U+0000.
fn escaped(text: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr2(0, ESCAPE, text)?;
    let mut out = Vec::with_capacity(text.len() + 8);
    for byte in text {
        match *byte {
            0 => out.extend([ESCAPE, ZERO]),
            ESCAPE => out.extend([ESCAPE, ITSELF]),
            other => out.push(other),
        }
    }
    Some(out)
}

/// The text as it was.
fn unescaped(stored: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(ESCAPE, stored)?;
    let mut out = Vec::with_capacity(stored.len());
    let mut bytes = stored.iter();
    while let Some(byte) = bytes.next() {
        match *byte {
            // The second half may be cut off by `substr`.
            ESCAPE => match bytes.next() {
                Some(&ITSELF) => out.push(ESCAPE),
                Some(_) => out.push(0),
                None => {}
            },
            other => out.push(other),
        }
    }
    Some(out)
}

/// A value on its way to the server.
#[derive(Debug)]
pub struct Param(Value);

impl Param {
    pub fn of(value: &dyn SqliteToSql) -> sql::Result<Param> {
        let value = match value.to_sql()? {
            ToSqlOutput::Owned(value) => value,
            ToSqlOutput::Borrowed(value) => owned(value),
            _ => Value::Null,
        };
        Ok(Param(value))
    }
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

impl From<i64> for Param {
    fn from(number: i64) -> Param {
        Param(Value::Integer(number))
    }
}

impl ToSql for Param {
    fn to_sql(
        &self,
        to: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (&self.0, to) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT8) => out.put_i64(*number),
            (Value::Integer(number), &Type::INT4) => out.put_i32(i32::try_from(*number)?),
            (Value::Integer(number), &Type::BOOL) => out.put_u8(u8::from(*number != 0)),
            (Value::Integer(number), &Type::FLOAT8) => out.put_f64(*number as f64),
            (Value::Real(number), &Type::FLOAT8) => out.put_f64(*number),
            (Value::Text(text), &Type::TEXT | &Type::VARCHAR) => match escaped(text.as_bytes()) {
                Some(text) => out.put_slice(&text),
                None => out.put_slice(text.as_bytes()),
            },
            (Value::Blob(bytes), &Type::BYTEA) => out.put_slice(bytes),
            // SQLite does not mind: earlier builds stored some texts where blobs are now.
            (Value::Text(text), &Type::BYTEA) => out.put_slice(text.as_bytes()),
            (value, to) => return Err(format!("{} as {to}", value.data_type()).into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The bytes of a column as the server sent them.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A row of the server.
pub struct Row {
    row: tokio_postgres::Row,
    /// The texts that are stored in another form, by their column.
    texts: Vec<(usize, Vec<u8>)>,
}

impl Row {
    pub fn new(row: tokio_postgres::Row) -> Row {
        let mut texts = Vec::new();
        for (at, column) in row.columns().iter().enumerate() {
            if *column.type_() == Type::TEXT
                && let Ok(Raw(Some(raw))) = row.try_get(at)
                && let Some(text) = unescaped(raw)
            {
                texts.push((at, text));
            }
        }
        Row { row, texts }
    }

    pub fn value(&self, at: usize) -> sql::Result<ValueRef<'_>> {
        let Raw(Some(raw)) = self.row.try_get::<_, Raw<'_>>(at)? else { return Ok(ValueRef::Null) };
        let number = |bytes: Option<i64>| bytes.map(ValueRef::Integer);
        let found = match *self.row.columns()[at].type_() {
            Type::INT8 => number(raw.try_into().ok().map(i64::from_be_bytes)),
            Type::INT4 => number(raw.try_into().ok().map(i32::from_be_bytes).map(i64::from)),
            Type::INT2 => number(raw.try_into().ok().map(i16::from_be_bytes).map(i64::from)),
            Type::BOOL => number(raw.first().map(|byte| i64::from(*byte != 0))),
            Type::FLOAT8 => raw.try_into().ok().map(f64::from_be_bytes).map(ValueRef::Real),
            Type::BYTEA => Some(ValueRef::Blob(raw)),
            _ => {
                let decoded = self.texts.iter().find(|(column, _)| *column == at);
                Some(ValueRef::Text(decoded.map_or(raw, |(_, text)| text)))
            }
        };
        found.ok_or(sql::Error::Value(sql::FromSqlError::InvalidType))
    }
}

#[cfg(test)]
mod tests {
    use super::{escaped, unescaped};

    #[test]
    fn texts_come_back_whatever_is_in_them() {
        let texts: [&[u8]; 6] =
            [b"", b"plain", b"\0", b"a\0b\x1ac", b"\x1a0\x1a1", "\0ü\x1a\0".as_bytes()];
        for text in texts {
            let stored = escaped(text).unwrap_or_else(|| text.to_vec());
            assert!(!stored.contains(&0));
            assert_eq!(unescaped(&stored).unwrap_or(stored), text);
        }
    }
}
