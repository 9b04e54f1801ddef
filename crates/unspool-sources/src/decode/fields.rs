//! The fields of a JSON object, read one at a time. Vendors change a field's type from release to
//! release; a field that is not what we expect reads as absent, and never fails its record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use unspool_core::json::Json;

use super::outline::{Kind, Node};

/// The fields of one object, in their order, borrowed from the record and its outline. It is a
/// look at them and nothing more, so asking for the fields of a field costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields<'a> {
    text: &'a str,
    nodes: &'a [Node],
    /// Where the object is among the nodes. What is no object has no fields.
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(text: &'a str, nodes: &'a [Node]) -> Fields<'a> {
        Fields { text, nodes, at: 0 }
    }

    /// Whether there is an object at all.
    pub fn is_object(&self) -> bool {
        self.nodes.get(self.at).is_some_and(|node| node.kind == Kind::Object)
    }

    /// Whether all names are text: half a surrogate pair is none.
    pub(super) fn has_sound_names(&self) -> bool {
        let sound = |name: &str| serde_json::from_str::<String>(name).is_ok();
        self.entries().all(|(name, _)| name.kind == Kind::Plain || sound(self.source(name)))
    }

    /// The names and the values.
    fn entries(&self) -> impl Iterator<Item = (&'a Node, usize)> {
        let nodes = self.nodes;
        let object = nodes.get(self.at).filter(|node| node.kind == Kind::Object);
        let end = object.map_or(0, |node| node.behind as usize);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let (name, value) = (nodes.get(at).filter(|_| at < end)?, at + 1);
            at = nodes.get(value)?.behind as usize;
            Some((name, value))
        })
    }

    fn source(&self, node: &Node) -> &'a str {
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    /// The value of a field, by its place among the nodes.
    fn find(&self, name: &str) -> Option<usize> {
        let is = |node: &Node| {
            let held = self.text.as_bytes().get(node.start as usize + 1..node.end as usize - 1);
            match node.kind {
                Kind::Plain => held == Some(name.as_bytes()),
                Kind::Escaped => unescaped(self.source(node)) == name,
                Kind::Object | Kind::Array | Kind::Scalar => false,
            }
        };
        let (_, value) = self.entries().find(|(held, _)| is(held))?;
        (self.source(self.nodes.get(value)?) != "null").then_some(value)
    }

    fn node(&self, name: &str) -> Option<&'a Node> {
        self.nodes.get(self.find(name)?)
    }

    /// A value as it stands in the record.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.node(name).map(|node| self.source(node))
    }

    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.text_of(self.node(name)?)
    }

    fn text_of(&self, node: &Node) -> Option<Cow<'a, str>> {
        let source = self.source(node);
        match node.kind {
            Kind::Plain => source.get(1..source.len() - 1).map(Cow::Borrowed),
            Kind::Escaped => Some(Cow::Owned(unescaped(source))),
            Kind::Object | Kind::Array | Kind::Scalar => None,
        }
    }

    pub fn string(&self, name: &str) -> Option<String> {
        self.text(name).map(Cow::into_owned)
    }

    /// Whether a field is this text.
    pub fn is(&self, name: &str, text: &str) -> bool {
        self.text(name).is_some_and(|held| held == text)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.truth(name) == Some(true)
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

    pub fn fields(&self, name: &str) -> Fields<'a> {
        self.find(name).map(|at| Fields { at, ..*self }).unwrap_or_default()
    }

    /// The objects of an array.
    pub fn list(&self, name: &str) -> impl Iterator<Item = Fields<'a>> {
        let whole = *self;
        let array = self.find(name).filter(|at| whole.nodes[*at].kind == Kind::Array);
        let end = array.map_or(0, |at| whole.nodes[at].behind as usize);
        let mut next = array.map_or(0, |at| at + 1);
        let values = std::iter::from_fn(move || {
            let at = Some(next).filter(|at| *at < end)?;
            next = whole.nodes.get(at)?.behind as usize;
            Some(Fields { at, ..whole })
        });
        values.filter(Fields::is_object)
    }

    pub fn json(&self, name: &str) -> Option<Json> {
        Json::parse(self.raw(name)?)
    }

    /// Whether the field is a string.
    pub fn is_text(&self, name: &str) -> bool {
        self.node(name).is_some_and(|node| matches!(node.kind, Kind::Plain | Kind::Escaped))
    }

    /// Fields whose values are strings, in their order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let text = |node: &Node| self.text_of(node).map(Cow::into_owned);
        self.entries()
            .filter_map(|(name, value)| Some((text(name)?, text(self.nodes.get(value)?)?)))
            .collect()
    }

    /// The whole object again, for what we do not know: with its names in order, and without
    /// those that are told again.
    pub fn whole(&self) -> Json {
        let fields: BTreeMap<Cow<'a, str>, &str> = self
            .entries()
            .filter_map(|(name, at)| Some((self.text_of(name)?, self.source(self.nodes.get(at)?))))
            .collect();
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

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// The text of a JSON string with its quotes. Half a surrogate pair, which no string can hold,
/// becomes U+FFFD and does not cost the rest: programs that cut strings by UTF-16 units write them.
fn unescaped(source: &str) -> String {
    let mut rest = source.get(1..source.len() - 1).unwrap_or_default();
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        let mut behind = at + 2;
        text.push(match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let (letter, length) = unicode(&rest[at..]);
                behind = at + length;
                letter
            }
            // A quote, a slash, a backslash.
            other => char::from(other),
        });
        rest = rest.get(behind..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// The character that an escape with a number stands for, and how long the escape is.
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
