//! The fields of a JSON object, read one at a time. Vendors change a field's type from release to
//! release; a field that is not what we expect reads as absent, and never fails its record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::Deserialize;
use unspool_model::json::Json;

use super::json_outline::{ESCAPED_TAG, Node, NodeKind, tag};

/// The fields of one object, in source order, borrowed from the record and its outline. This is a
/// cheap view: nested fields cost no parsing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields<'a> {
    pub(super) text: &'a str,
    pub(super) nodes: &'a [Node],
    /// The index of the object's node. A value that is not an object has no fields.
    pub(super) at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(text: &'a str, nodes: &'a [Node]) -> Fields<'a> {
        Fields { text, nodes, at: 0 }
    }

    /// True if the value is an object.
    pub fn is_object(&self) -> bool {
        self.nodes.get(self.at).is_some_and(|node| node.kind == NodeKind::Object)
    }

    /// True if all names are valid strings: a lone surrogate is not.
    pub(super) fn has_sound_names(&self) -> bool {
        let sound = |name: &str| serde_json::from_str::<String>(name).is_ok();
        self.entries().all(|(name, _)| name.kind == NodeKind::Plain || sound(self.source(name)))
    }

    /// The name nodes and the indices of their values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a Node, usize)> {
        let nodes = self.nodes;
        let object = nodes.get(self.at).filter(|node| node.kind == NodeKind::Object);
        let end = object.map_or(0, |node| node.after as usize);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let (name, value) = (nodes.get(at).filter(|_| at < end)?, at + 1);
            at = nodes.get(value)?.after as usize;
            Some((name, value))
        })
    }

    pub(super) fn source(&self, node: &Node) -> &'a str {
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    /// The node index of a field's value.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let object = self.nodes.get(self.at).filter(|node| node.kind == NodeKind::Object)?;
        let wanted = tag(name.as_bytes());
        if object.tags & (1 << wanted) == 0 {
            return None;
        }
        let mut at = self.at + 1;
        while at < object.after as usize {
            let (held, value) = (self.nodes.get(at)?, self.nodes.get(at + 1)?);
            let found = if held.tag == wanted {
                self.plain(held) == Some(name)
            } else {
                held.tag == ESCAPED_TAG && unescaped(self.source(held)) == name
            };
            if found {
                let null = value.kind == NodeKind::Scalar && self.source(value) == "null";
                return (!null).then_some(at + 1);
            }
            at = value.after as usize;
        }
        None
    }

    fn node(&self, name: &str) -> Option<&'a Node> {
        self.nodes.get(self.find(name)?)
    }

    /// The source text of a value.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.node(name).map(|node| self.source(node))
    }

    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.text_of(self.node(name)?)
    }

    pub(super) fn text_of(&self, node: &Node) -> Option<Cow<'a, str>> {
        match node.kind {
            NodeKind::Plain => self.plain(node).map(Cow::Borrowed),
            NodeKind::Escaped => Some(Cow::Owned(unescaped(self.source(node)))),
            NodeKind::Object | NodeKind::Array | NodeKind::Scalar => None,
        }
    }

    /// A string without escapes, borrowed from the record.
    pub(super) fn plain(&self, node: &Node) -> Option<&'a str> {
        let inside = node.start as usize + 1..node.end as usize - 1;
        self.text.get(inside).filter(|_| node.kind == NodeKind::Plain)
    }

    pub fn string(&self, name: &str) -> Option<String> {
        self.text(name).map(Cow::into_owned)
    }

    /// True if a field is this string.
    pub fn is(&self, name: &str, text: &str) -> bool {
        self.text(name).is_some_and(|held| held == text)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.truth(name) == Some(true)
    }

    /// True if the input of a call asks for an agent in the background. Agents word it in two ways
    /// and copy each other's tools, so every decoder reads both (R-003-28).
    pub fn asks_for_background(&self) -> bool {
        self.flag("run_in_background") || self.is("mode", "background")
    }

    pub fn truth(&self, name: &str) -> Option<bool> {
        match self.raw(name)? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.raw(name)?.parse().ok()
    }

    /// An RFC 3339 timestamp.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        let text = self.text(name)?;
        usual_time(text.as_bytes()).or_else(|| text.parse().ok())
    }

    pub fn fields(&self, name: &str) -> Fields<'a> {
        self.find(name).map(|at| Fields { at, ..*self }).unwrap_or_default()
    }

    /// The objects of an array.
    pub fn list(&self, name: &str) -> impl Iterator<Item = Fields<'a>> {
        self.items(name).map(|(_, item)| item).filter(Fields::is_object)
    }

    /// The elements of an array: the source text, and the fields if it is an object.
    pub fn items(&self, name: &str) -> impl Iterator<Item = (&'a str, Fields<'a>)> {
        let whole = *self;
        let array = self.find(name).filter(|at| whole.nodes[*at].kind == NodeKind::Array);
        let end = array.map_or(0, |at| whole.nodes[at].after as usize);
        let mut next = array.map_or(0, |at| at + 1);
        std::iter::from_fn(move || {
            let at = Some(next).filter(|at| *at < end)?;
            let node = whole.nodes.get(at)?;
            next = node.after as usize;
            Some((whole.source(node), Fields { at, ..whole }))
        })
    }

    pub fn json(&self, name: &str) -> Option<Json> {
        json_of(self.raw(name)?)
    }

    /// True if the field is a string.
    pub fn is_text(&self, name: &str) -> bool {
        self.node(name).is_some_and(|node| matches!(node.kind, NodeKind::Plain | NodeKind::Escaped))
    }

    /// The fields with string values, in source order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let text = |node: &Node| self.text_of(node).map(Cow::into_owned);
        self.entries()
            .filter_map(|(name, value)| Some((text(name)?, text(self.nodes.get(value)?)?)))
            .collect()
    }

    /// The names and the source text of the values, in source order.
    pub fn each(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> {
        let whole = *self;
        self.entries().filter_map(move |(name, at)| {
            Some((whole.text_of(name)?, whole.source(whole.nodes.get(at)?)))
        })
    }

    /// The source text of a value, including `null`.
    pub fn raw_or_null(&self, name: &str) -> Option<&'a str> {
        self.each().find(|(held, _)| held == name).map(|(_, value)| value)
    }

    /// The whole object as JSON, for records of unknown kinds: names sorted, duplicates removed.
    pub fn whole(&self) -> Json {
        let fields: BTreeMap<Cow<'a, str>, &str> = self.each().collect();
        let mut text = String::from("{");
        for (name, value) in fields {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(Json::string(&name).text());
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Json::parse(&text).unwrap_or_else(|| Json::string(&text))
    }

    /// The names of the fields, in source order.
    pub fn names(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let whole = *self;
        self.entries().filter_map(move |(name, _)| whole.text_of(name))
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// A value of an outline as JSON. No parsing is needed: the outline validated it.
pub fn json_of(source: &str) -> Option<Json> {
    Some(Json::checked(source))
}

/// Parses a time as JavaScript writes it: `2026-11-15T00:28:32.334Z`. Every record has one, and a
/// general parser takes five times as long.
fn usual_time(text: &[u8]) -> Option<Timestamp> {
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if text.len() != 24 || marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let number = |digits: Range<usize>| {
        text[digits].iter().try_fold(0_i16, |number, digit| {
            Some(number * 10 + i16::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?))
        })
    };
    let small = |at: usize| number(at..at + 2)?.try_into().ok();
    let fraction = i32::from(number(20..23)?) * 1_000_000;
    let (year, month, day) = (number(0..4)?, small(5)?, small(8)?);
    let time = DateTime::new(year, month, day, small(11)?, small(14)?, small(17)?, fraction);
    Offset::UTC.to_timestamp(time.ok()?).ok()
}

/// Unescapes a JSON string, given with its quotes. A lone surrogate becomes U+FFFD and the rest is
/// kept: programs that cut strings by UTF-16 units write them.
pub(super) fn unescaped(source: &str) -> String {
    let mut rest = source.get(1..source.len() - 1).unwrap_or_default();
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        let mut after = at + 2;
        text.push(match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let (letter, length) = unicode(&rest[at..]);
                after = at + length;
                letter
            }
            // Quote, slash or backslash.
            other => char::from(other),
        });
        rest = rest.get(after..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// The character of a `\u` escape (or surrogate pair), and the length of the escape.
fn unicode(source: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = source.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
            let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        (Some(code), _) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        (None, _) => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
