//! The URL query of a page. Every filter is part of the URL, so that it can be bookmarked.

/// Query parameters in order. Names are trusted constants; values are untrusted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UrlQuery(Vec<(&'static str, String)>);

impl UrlQuery {
    /// Sets a parameter, or removes it if the value is missing or empty.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Option<&str>) -> UrlQuery {
        self.0.retain(|(key, _)| *key != name);
        self.0
            .extend(value.filter(|value| !value.is_empty()).map(|value| (name, value.to_owned())));
        self
    }

    #[must_use]
    pub fn without(&self, name: &'static str) -> UrlQuery {
        self.clone().with(name, None)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `agent=codex&since=7d`.
    pub fn text(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        pairs.join("&")
    }

    /// The URL of a page with this query.
    pub fn at(&self, path: &str) -> String {
        if self.is_empty() { path.to_owned() } else { format!("{path}?{}", self.text()) }
    }
}

/// Percent-encodes a value for a query.
pub fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b':' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_what_the_address_says() {
        let query =
            UrlQuery::default().with("agent", Some("codex")).with("project", Some("/a b&c=ä"));
        assert_eq!(query.at("/"), "/?agent=codex&project=/a%20b%26c%3D%C3%A4");
        assert_eq!(query.without("agent").at("/"), "/?project=/a%20b%26c%3D%C3%A4");
        assert_eq!(query.clone().with("agent", Some("gemini")).get("agent"), Some("gemini"));
        assert_eq!(query.without("agent").without("project").at("/"), "/");
        assert!(query.with("agent", Some("")).get("agent").is_none(), "nothing is no choice");
    }
}
