//! A strict parser for the subset of D2 that we write: it accepts only known keywords and escapes,
//! and resolves links, classes and edges to their targets.

use std::collections::BTreeMap;

use unspool_view::block::is_deceptive;

/// The content of a pair of braces.
#[derive(Debug, Default)]
pub struct Map {
    pub entries: Vec<(Key, Value)>,
    pub edges: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Bare(String),
    Quoted(String),
}

#[derive(Debug, Default)]
pub struct Value {
    pub bare: Option<String>,
    pub text: Option<String>,
    pub map: Option<Map>,
}

const WORDS: &[&str] = &[
    "direction",
    "classes",
    "layers",
    "class",
    "tooltip",
    "link",
    "shape",
    "style",
    "fill",
    "stroke",
    "font-size",
    "width",
    "italic",
    "bold",
];
const SHAPES: &[&str] = &["rectangle", "hexagon", "page", "stored_data", "document", "text"];

impl Map {
    pub fn bare(&self, name: &str) -> Option<&Value> {
        let found = self.entries.iter().find(|(key, _)| *key == Key::Bare(name.to_owned()));
        found.map(|(_, value)| value)
    }

    /// The entries with quoted keys: ours, not D2 keywords.
    pub fn own(&self) -> BTreeMap<&str, &Value> {
        let named = self.entries.iter().filter_map(|(key, value)| match key {
            Key::Quoted(key) => Some((key.as_str(), value)),
            Key::Bare(_) => None,
        });
        named.collect()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.bare(name).and_then(|value| value.text.as_deref())
    }
}

pub fn read(text: &str) -> Result<Map, String> {
    let mut reader = Reader { rest: text, line: 1 };
    let map = reader.map(0)?;
    if !reader.rest.is_empty() {
        return Err(format!("line {}: a brace too many", reader.line));
    }
    Ok(map)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn wrong<T>(&self, what: &str) -> Result<T, String> {
        let near: String = self.rest.chars().take(60).collect();
        Err(format!("line {}: {what} at {near:?}", self.line))
    }

    fn spaces(&mut self) {
        while self.peek() == Some(' ') {
            self.take();
        }
    }

    fn map(&mut self, depth: usize) -> Result<Map, String> {
        let mut map = Map::default();
        loop {
            match self.peek() {
                Some(' ' | '\n' | ';') => {
                    self.take();
                }
                Some('#') => while self.take().is_some_and(|c| c != '\n') {},
                Some('}') if depth > 0 => {
                    self.take();
                    return Ok(map);
                }
                None if depth == 0 => return Ok(map),
                None => return self.wrong("a brace is open"),
                Some('}') => return Ok(map),
                Some(_) => self.statement(&mut map, depth)?,
            }
        }
    }

    fn statement(&mut self, map: &mut Map, depth: usize) -> Result<(), String> {
        let key = match self.peek() {
            Some('"') => Key::Quoted(self.string()?),
            _ => {
                let word = self.word();
                if !WORDS.contains(&word.as_str()) {
                    return self.wrong(&format!("{word:?} is no word of D2's"));
                }
                Key::Bare(word)
            }
        };
        self.spaces();
        if let Some(rest) = self.rest.strip_prefix("-> ") {
            self.rest = rest;
            let Key::Quoted(from) = key else { return self.wrong("an edge of a word") };
            map.edges.push((from, self.string()?));
            return Ok(());
        }
        if self.take() != Some(':') {
            return self.wrong("no colon behind a key");
        }
        self.spaces();
        let mut value = Value::default();
        match self.peek() {
            Some('"') => value.text = Some(self.string()?),
            Some('{') => {}
            _ => value.bare = Some(self.word()),
        }
        self.spaces();
        if self.peek() == Some('{') {
            self.take();
            value.map = Some(self.map(depth + 1)?);
        }
        if !matches!(self.peek(), Some(' ' | '\n' | ';' | '}') | None) {
            return self.wrong("something stands behind a value");
        }
        if let (Key::Bare(word), Some(bare)) = (&key, &value.bare) {
            let accepted = match word.as_str() {
                "direction" => bare == "down",
                "shape" => SHAPES.contains(&bare.as_str()),
                "italic" | "bold" => bare == "true",
                "font-size" | "width" => bare.parse::<u32>().is_ok(),
                _ => false,
            };
            if !accepted {
                return self.wrong(&format!("{word}: {bare} means nothing"));
            }
        }
        let lower = |key: &Key| match key {
            Key::Bare(key) | Key::Quoted(key) => key.to_lowercase(),
        };
        if map.entries.iter().any(|(accepted, _)| {
            lower(accepted) == lower(&key) && *accepted != Key::Bare(lower(&key))
        }) {
            return self.wrong(&format!("{key:?} stands there twice"));
        }
        map.entries.push((key, value));
        Ok(())
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) =
            self.peek().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        {
            word.push(c);
            self.take();
        }
        word
    }

    fn string(&mut self) -> Result<String, String> {
        self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                None | Some('\n') => return self.wrong("a quote is open"),
                Some('"') => return Ok(text),
                Some('$') => return self.wrong("a dollar without its escape"),
                Some('\\') => match self.take() {
                    Some(c @ ('"' | '\\' | '$')) => text.push(c),
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    _ => return self.wrong("an escape that D2 does not have"),
                },
                Some(c)
                    if c.is_control()
                        || is_deceptive(c)
                        || matches!(c, '\u{fffe}' | '\u{ffff}') =>
                {
                    return self.wrong(&format!("U+{:04X}", c as u32));
                }
                Some(c) => text.push(c),
            }
        }
    }
}

/// Resolves classes, links and edges in the root board and all its layers.
pub fn follow(root: &Map) -> Result<(), String> {
    let classes = root.bare("classes").and_then(|classes| classes.map.as_ref());
    let classes: Vec<&str> = classes.map(|map| map.own().into_keys().collect()).unwrap_or_default();
    let layers = root.bare("layers").and_then(|layers| layers.map.as_ref());
    let boards = layers.map(Map::own).unwrap_or_default();
    shapes(root, &classes, &|link| {
        link.strip_prefix("layers.").is_some_and(|name| boards.contains_key(name))
    })?;
    for (name, board) in &boards {
        let map = board.map.as_ref().ok_or(format!("{name} is no board"))?;
        // Parts are on the page of the session.
        shapes(map, &classes, &|link| link == "_" || link.starts_with("/s/"))?;
    }
    Ok(())
}

fn shapes(map: &Map, classes: &[&str], leads: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let own = map.own();
    for (from, to) in &map.edges {
        if !own.contains_key(from.as_str()) || !own.contains_key(to.as_str()) {
            return Err(format!("an edge from {from:?} to {to:?}, and one of them is not there"));
        }
    }
    for (key, value) in own {
        let map = value.map.as_ref().ok_or(format!("{key:?} has no class"))?;
        let class = map.text("class").unwrap_or_default();
        if !classes.contains(&class) {
            return Err(format!("{key:?} has the class {class:?}, which is not there"));
        }
        // The compiler parses tooltips as Markdown and rejects broken markup.
        let tooltip = map.text("tooltip").unwrap_or_default();
        let tag = |(sign, next): (char, char)| {
            sign == '<' && (next.is_ascii_alphabetic() || "/!?".contains(next))
        };
        if tooltip.chars().zip(tooltip.chars().skip(1)).any(tag) {
            return Err(format!("{key:?} has a tag in its tooltip"));
        }
        if let Some(link) = map.text("link").filter(|link| !leads(link)) {
            return Err(format!("{key:?} leads to {link:?}"));
        }
        shapes(map, classes, leads)?;
    }
    Ok(())
}
