//! What collectors on other machines send to a server: pieces of the texts of their agents' files.
//! The collector encodes [`Unit`]s, the server stores the encoded bytes in a file and hands it to the
//! recorder ([`crate::request::Request::Receive`]), which answers each unit with a [`Receipt`].
//!
//! The server alone knows how much it has. A unit says where it begins; if the server has another
//! position it takes nothing and answers with its own.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use unspool_model::source::Fingerprint;

/// The path of the routes.
pub const PATH: &str = "/api/ship";
/// The route that says how much the server has.
pub const HELLO_PATH: &str = "/api/ship/hello";

/// Limits of the protocol, in bytes of text before compression.
pub const MAX_UNIT_BYTES: usize = 4 * 1024 * 1024;
pub const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// A longer line is not sent.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// The text of a unit has one long line at most, in which marks may be longer than the secrets.
pub const MAX_TEXT_BYTES: usize = 2 * MAX_LINE_BYTES;
/// A compressed request: what is encoded in base 64 hardly becomes shorter.
pub const MAX_BODY_BYTES: usize = 2 * MAX_REQUEST_BYTES + MAX_TEXT_BYTES;
/// The most units of a request. Each costs the server some reads, however short it is.
pub const MAX_UNITS: usize = 1000;
/// The most files that one `hello` may ask for.
pub const MAX_HELLO_FILES: usize = 1000;
/// The longest name of a file.
pub const MAX_NAME_BYTES: usize = 4096;

/// How far a file was sent: how often the sender has replaced it, and the part of the sender's own
/// text that was taken. Redaction changes lengths, so the server's text has other offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SentTo {
    pub generation: u32,
    pub offset: u64,
    /// Digests of both ends of the part that was taken, as hexadecimal numbers.
    #[serde(with = "hexadecimal")]
    pub head: u64,
    #[serde(with = "hexadecimal")]
    pub tail: u64,
    /// The file was not written to for a while then: its last record is whole.
    pub idle: bool,
}

impl SentTo {
    pub fn new(generation: u32, print: Fingerprint, idle: bool) -> SentTo {
        SentTo { generation, offset: print.offset, head: print.head, tail: print.tail, idle }
    }

    pub fn print(&self) -> Fingerprint {
        Fingerprint { offset: self.offset, head: self.head, tail: self.tail }
    }
}

/// What a collector asks before it sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The name of the machine, as it is to be shown.
    pub machine: String,
    /// Paths of files.
    pub files: Vec<String>,
}

/// The answer: for each file how far the server has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Positions {
    pub files: Vec<Option<SentTo>>,
}

/// What stands before the text of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnitHead {
    /// The path of the file on its machine.
    pub file: String,
    /// Where the unit begins in the sender's text.
    pub from: u64,
    /// How far the file is sent with it.
    pub to: SentTo,
    /// When the file was written, in nanoseconds.
    pub modified: i64,
    /// The file has more text that the sender knows of.
    pub more: bool,
    /// What was sent before holds a text that turned out to be a secret: nothing of it may stay.
    pub withdraws: bool,
    /// The length of the text that follows.
    pub length: usize,
}

/// A piece of a file: whole lines, redacted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    pub head: UnitHead,
    pub text: Vec<u8>,
}

/// What became of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    pub file: String,
    /// How far the server has the file now. None if it has nothing of it.
    pub taken: Option<SentTo>,
    /// Why it will not take the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The answers to a request, in the order of its units.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Receipts {
    pub receipts: Vec<Receipt>,
}

impl Unit {
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *to, &self.head)?;
        to.write_all(b"\n")?;
        to.write_all(&self.text)?;
        to.write_all(b"\n")
    }

    /// The next unit. None at the end. An error if the bytes are not units.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Unit>> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = Vec::new();
        let longest = (4 * MAX_NAME_BYTES) as u64;
        from.by_ref().take(longest).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let head: UnitHead = serde_json::from_slice(&line)
            .map_err(|error| invalid(&format!("the head of a unit cannot be read: {error}")))?;
        if head.length > MAX_TEXT_BYTES {
            return Err(invalid("a unit is too long"));
        }
        if head.file.is_empty() || head.file.len() > MAX_NAME_BYTES {
            return Err(invalid("the name of a file is empty or too long"));
        }
        if head.from > head.to.offset {
            return Err(invalid("a unit ends before it begins"));
        }
        let mut text = Vec::new();
        from.by_ref().take(head.length as u64).read_to_end(&mut text)?;
        let mut end = [0];
        if text.len() < head.length || from.read(&mut end)? == 0 || end != *b"\n" {
            return Err(invalid("the text of a unit is incomplete"));
        }
        Ok(Some(Unit { head, text }))
    }
}

mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader};

    use unspool_model::source::Fingerprint;

    use super::{SentTo, Unit, UnitHead};

    fn unit(text: &[u8]) -> Unit {
        let to = SentTo::new(1, Fingerprint { offset: 20, head: u64::MAX, tail: 7 }, true);
        let head = UnitHead {
            file: "/home/ann/a\nb.jsonl".to_owned(),
            from: 3,
            to,
            modified: 5,
            more: true,
            withdraws: false,
            length: text.len(),
        };
        Unit { head, text: text.to_vec() }
    }

    #[test]
    fn units_come_back_as_they_were() {
        let units = [unit(b"{\"a\":1}\n{\"b\":2}\n"), unit(b""), unit(b"\n\n\xff")];
        let mut bytes = Vec::new();
        units.iter().for_each(|unit| unit.write(&mut bytes).unwrap());
        let mut from = BufReader::new(bytes.as_slice());
        for unit in units {
            assert_eq!(Unit::read(&mut from).unwrap(), Some(unit));
        }
        assert_eq!(Unit::read(&mut from).unwrap(), None);
    }

    #[test]
    fn what_is_cut_off_or_made_up_is_an_error() {
        let mut bytes = Vec::new();
        unit(b"{\"a\":1}\n").write(&mut bytes).unwrap();
        for length in 1..bytes.len() {
            assert!(Unit::read(&mut BufReader::new(&bytes[..length])).is_err(), "{length}");
        }
        let head = |changed: &str| {
            let text = String::from_utf8(bytes.clone()).unwrap();
            text.replace("\"length\":8", changed)
        };
        // A unit that ends too early may still end at a line: what follows it is none.
        let read_all = |bytes: &[u8]| -> io::Result<()> {
            let mut from = BufReader::new(bytes);
            while Unit::read(&mut from)?.is_some() {}
            Ok(())
        };
        for wrong in ["\"length\":7", "\"length\":9", "\"length\":-1", "\"length\":99999999999"] {
            assert!(read_all(head(wrong).as_bytes()).is_err(), "{wrong}");
        }
        let backwards = String::from_utf8(bytes).unwrap().replace("\"from\":3", "\"from\":21");
        assert!(Unit::read(&mut BufReader::new(backwards.as_bytes())).is_err());
    }
}
