//! Properties of candidate values: character statistics, and tests for placeholders, code, paths
//! and words, which are not secrets.

/// Prefix of every replacement.
pub(super) const MARK: &str = "[redacted:";

/// Common non-secret values and words.
#[rustfmt::skip]
const ORDINARY_WORDS: &[&str] = &[
    "accepted", "admin", "allow", "anonymous", "argument", "array", "async", "await", "basic",
    "bearer", "bool", "boolean", "bytes", "change-me", "change_me", "changed", "changeit",
    "changeme", "cleared", "configured", "const", "correct", "created", "credential", "credentials",
    "default", "delete", "deleted", "denied", "deny", "disabled", "dummy", "email", "empty",
    "enabled", "encrypted", "env", "environment", "error", "expected", "expired", "export",
    "failed", "failure", "false", "field", "file", "fixme", "flag", "forgot", "from", "function",
    "generate", "generated", "hashed", "hidden", "identifier", "ignored", "import", "incorrect",
    "input", "instead", "integer", "invalid", "keychain", "keyring", "keyword", "literal", "locked",
    "login", "masked", "match", "mismatch", "mismatched", "missing", "never", "newpassword", "nil",
    "none", "null", "number", "numeric", "oauth", "oauth2", "object", "omitted", "operator",
    "option", "optional", "options", "parameter", "pass", "passwd", "password", "passwords",
    "passwort", "placeholder", "plain", "present", "private", "prompt", "protected", "provided",
    "public", "punctuation", "random", "read", "redacted", "rejected", "removed", "replace",
    "required", "reset", "return", "root", "sample", "secret", "secrets", "session", "set", "show",
    "skipped", "static", "stdin", "stored", "str", "string", "struct", "success", "supplied",
    "symbol", "template", "text", "that", "this", "todo", "token", "tokens", "true", "type",
    "unavailable", "unchanged", "undefined", "unknown", "unlocked", "unset", "unspecified",
    "unused", "updated", "user", "username", "valid", "value", "verified", "verify", "void",
    "whitespace", "with", "write", "wrong", "your",
];

/// Prefixes of agent and model ids, which look random but are not credentials.
const ID_PREFIXES: &[&str] = &[
    "toolu_",
    "call_",
    "msg_",
    "req_",
    "resp_",
    "item_",
    "chatcmpl-",
    "run_",
    "thread_",
    "step_",
    "srvtoolu_",
    "session_",
    "prt_",
    "ses_",
    "evt_",
    "file-",
];

/// Character statistics of a value.
pub(super) struct Shape {
    pub(super) length: usize,
    pub(super) lowercase: usize,
    pub(super) uppercase: usize,
    pub(super) digits: usize,
    pub(super) others: usize,
    /// Bits per character.
    pub(super) entropy: f64,
}

impl Shape {
    pub(super) fn of(value: &str) -> Shape {
        let mut counts = [0u32; 256];
        let (mut lowercase, mut uppercase, mut digits) = (0, 0, 0);
        for byte in value.bytes() {
            counts[usize::from(byte)] += 1;
            lowercase += usize::from(byte.is_ascii_lowercase());
            uppercase += usize::from(byte.is_ascii_uppercase());
            digits += usize::from(byte.is_ascii_digit());
        }
        let length = value.len();
        let share = |count: u32| f64::from(count) / length.max(1) as f64;
        let entropy = counts.iter().filter(|count| **count > 0).map(|count| share(*count));
        let entropy = entropy.map(|share| -share * share.log2()).sum();
        Shape {
            length,
            lowercase,
            uppercase,
            digits,
            others: length - lowercase - uppercase - digits,
            entropy,
        }
    }

    pub(super) fn letters(&self) -> usize {
        self.lowercase + self.uppercase
    }

    /// Only letters.
    pub(super) fn is_word(&self) -> bool {
        self.letters() == self.length
    }

    /// Looks machine-generated.
    pub(super) fn is_random(&self) -> bool {
        let mixed = self.digits >= 2 && self.letters() >= 2 && self.entropy >= 2.5;
        let long = self.digits >= 1 && self.letters() >= 4 && self.entropy >= 3.2;
        let letters = self.lowercase >= 4 && self.uppercase >= 4 && self.entropy >= 4.0;
        (self.length >= 8 && mixed) || (self.length >= 16 && long) || (self.length >= 24 && letters)
    }
}

/// True for placeholders: `<token>`, `${TOKEN}`, `xxxx`, `your-api-key`.
pub(super) fn is_placeholder(value: &str) -> bool {
    if value.is_empty() || value.contains(MARK) || value.contains("REDACTED") {
        return true;
    }
    let first = value.as_bytes().first().copied().unwrap_or_default();
    if matches!(first, b'$' | b'<' | b'{' | b'%' | b'(' | b'[' | b'&' | b'\\')
        || is_repetitive(value)
    {
        return true;
    }
    if ["${", "{{", "$(", "<%", "%s", "%v", "{}", "...", "…", "***", "•••"]
        .iter()
        .any(|part| value.contains(part))
    {
        return true;
    }
    let lowercase = value.to_ascii_lowercase();
    let words = [
        "your-",
        "your_",
        "yours",
        "my-",
        "my_",
        "xxx",
        "example",
        "placeholder",
        "changeme",
        "change-me",
        "change_me",
        "replace-",
        "replace_",
        "insert-",
        "insert_",
        "dummy",
        "-here",
        "_here",
        "not-a-",
        "fake-",
        "fake_",
        "enter-",
        "some-",
        "some_",
        "todo",
    ];
    lowercase == "your"
        || words.iter().any(|word| lowercase.contains(word))
        || lowercase.starts_with("your")
}

/// True if the value repeats very few characters.
fn is_repetitive(value: &str) -> bool {
    let mut seen: Vec<char> = Vec::with_capacity(4);
    for character in value.chars() {
        if !seen.contains(&character) {
            if seen.len() == 3 {
                return false;
            }
            seen.push(character);
        }
    }
    seen.len() <= 1 || (seen.len() <= 3 && value.len() >= 12)
}

/// True for sample keys, without their public prefix: `ghp_xxxxxxxx`, `AKIAIOSFODNN7EXAMPLE`.
pub(super) fn is_sample(key: &str) -> bool {
    let uppercase = key.to_ascii_uppercase();
    key.contains(MARK)
        || is_repetitive(key)
        || ["EXAMPLE", "XXXXXX", "YOUR_", "YOUR-", "PLACEHOLDER", "000000000000", "REDACTED"]
            .iter()
            .any(|word| uppercase.contains(word))
}

/// True for paths and URLs.
pub(super) fn is_path(value: &str) -> bool {
    let starts = ["/", "./", "../", "~/", "~\\", "file:", "data:", "vault:", "op://", "arn:"];
    let ends = [
        ".pem", ".key", ".json", ".txt", ".yaml", ".yml", ".env", ".toml", ".rs", ".py", ".js",
        ".ts", ".go", ".md", ".html", ".crt", ".pub", ".com", ".org", ".svg", ".png",
    ];
    let drive = value.len() > 2 && value.as_bytes().get(1..3) == Some(b":\\");
    let base64 =
        value.len() >= 40 && !value.contains('.') && value.bytes().any(|b| b.is_ascii_digit());
    (starts.iter().any(|start| value.starts_with(start)) && !base64)
        || value.contains("://")
        || drive
        || ends.iter().any(|end| value.ends_with(end))
}

/// True for code fragments: calls, field accesses, indexing.
pub(super) fn is_code(value: &str, quoted: bool) -> bool {
    let calls = value.contains("()") || value.ends_with('(') || value.contains("](");
    if calls || value.contains("::") || value.contains("->") || value.contains("=>") {
        return true;
    }
    if quoted {
        return false;
    }
    let names = |part: &str| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let field = value.split('.').count() > 1
        && value.split('.').all(|part| names(part) && !Shape::of(part).is_random());
    field
        || value.contains(['(', '[', '{'])
        || value.starts_with(['@', '*', '!', '#', '?', ':', '='])
}

/// True for compound words such as names of models and packages: `claude-sonnet-4-5-20250929`.
pub(super) fn is_wordy(value: &str) -> bool {
    let parts =
        value.split(['-', '_', '.', ':', '/', ' ', ',', '+']).filter(|part| !part.is_empty());
    let mut count = 0;
    let mut words = 0;
    for part in parts {
        count += 1;
        let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let plain = letters + digits == part.len();
        let word = plain && letters >= 2 && digits <= 2 && !is_jumbled(part);
        let number = plain && letters <= 1 && digits <= 8;
        if !word && !number {
            return false;
        }
        words += usize::from(word);
    }
    count >= 1 && words >= 1
}

/// True for letters that form neither a word nor a camel-case name such as `MasterKeyUsage`.
pub(super) fn is_jumbled(word: &str) -> bool {
    let bytes = word.as_bytes();
    let turns = bytes.windows(2).filter(|pair| match pair {
        [a, b] => a.is_ascii_lowercase() && b.is_ascii_uppercase(),
        _ => false,
    });
    let words = turns.count() + 1;
    let vowels = bytes.iter().filter(|b| b"aeiouyAEIOUY".contains(b)).count();
    let long = bytes.len() > 14 && (vowels * 5 < bytes.len() || bytes.len() > 40);
    (words > 2 && bytes.len() < words * 4)
        || (bytes.len() >= 8 && vowels == 0)
        || long
        || (bytes.len() >= 12 && has_rare_pairs(bytes))
}

/// For each letter, the letters that hardly ever follow it in a word: bit 0 is `a`. Together they
/// are less than one of 10,000 pairs in 22,000 different words of documentation and source code.
#[rustfmt::skip]
const RARE_PAIRS: [u32; 26] = [
    0x14210, 0x2e1a4ea, 0x2c02242, 0x2c10280, 0x2000000, 0x2e1a682, 0x2e1862c, 0x2e1a6ee,
    0x1510280, 0x3ebbeee, 0x3e396a6, 0x2c11280, 0x3e306e0, 0x2810200, 0x3010080, 0x2e13202,
    0x3eff7ff, 0x2810200, 0x2800202, 0x2a10642, 0x1710680, 0x3ffaeea, 0x3f9966e, 0x2773e6a,
    0x3b306ec, 0xfbbeee,
];

/// True if a fifth of the pairs of letters are rare: so it is for 19 of 20 random words of 16
/// letters and for hardly any real one. The alphabet is no secret.
fn has_rare_pairs(word: &[u8]) -> bool {
    let (mut pairs, mut rare, mut steps) = (0, 0, 0);
    for pair in word.windows(2) {
        let [a, b] = [pair[0], pair[1]];
        // Two words of a camel-case name meet here.
        if !a.is_ascii_alphabetic()
            || !b.is_ascii_alphabetic()
            || (a.is_ascii_lowercase() && b.is_ascii_uppercase())
        {
            continue;
        }
        let (a, b) = (a.to_ascii_lowercase() - b'a', b.to_ascii_lowercase() - b'a');
        pairs += 1;
        rare += usize::from(RARE_PAIRS[usize::from(a)] >> b & 1 == 1);
        steps += usize::from(b == a + 1);
    }
    pairs >= 8 && rare * 5 >= pairs && steps * 2 < pairs
}

/// True for number literals: `0xC000090A_u32`.
pub(super) fn is_number(value: &str) -> bool {
    let hexadecimal = value.strip_prefix("0x").or(value.strip_prefix("0X"));
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit() || b"_uUlLiI".contains(&b));
    let typed = value.trim_end_matches(|c: char| c.is_ascii_digit());
    let typed = typed.trim_end_matches(['u', 'i', 'f', '_']);
    let digits = typed.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    // An object identifier: `1.2.840.113549`.
    let dotted = value.contains('.') && value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    dotted
        || hexadecimal.is_some_and(|digits| plain(digits) && digits.len() <= 24)
        || (typed.len() < value.len() && value.contains(['u', 'i', 'f']) && digits)
}

pub(super) fn is_ordinary(value: &str) -> bool {
    ORDINARY_WORDS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

pub(super) fn is_id(value: &str) -> bool {
    ID_PREFIXES.iter().any(|prefix| value.starts_with(prefix))
}

/// Decodes base64, without incomplete trailing bits. `None` if the text is not base64.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut bit_count) = (0u32, 0u32);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            out.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    Some(out)
}
