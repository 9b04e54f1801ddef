//! Classifies names whose value is a secret: `DB_PASSWORD`, `clientSecret`, `x-api-key`.

/// The class of secret that a name announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SecretClass {
    /// May be chosen by a person: need not look random.
    Password,
    /// Multiple words.
    Phrase,
    Secret,
    Token,
    Key,
}

impl SecretClass {
    pub(super) fn kind(self) -> &'static str {
        match self {
            SecretClass::Password => "password",
            SecretClass::Phrase => "passphrase",
            SecretClass::Secret => "secret",
            SecretClass::Token => "token",
            SecretClass::Key => "api-key",
        }
    }
}

const MAX_NAME_BYTES: usize = 64;
const MAX_WORDS: usize = 12;

/// Words that may follow the significant word.
#[rustfmt::skip]
const SUFFIXES: &[&str] = &[
    "base", "base64", "b64", "value", "prod", "production", "dev", "development", "staging",
    "stage", "test", "testing", "live", "old", "new", "current", "default", "plain", "plaintext",
    "raw", "str", "env", "main", "backup", "local", "v1", "v2",
];

/// Tokens that are not credentials: language, design and pagination tokens.
#[rustfmt::skip]
const HARMLESS_TOKENS: &[&str] = &[
    "page", "next", "continuation", "sync", "cancel", "cancellation", "pagination", "eos", "bos",
    "pad", "unk", "sep", "mask", "cls", "stop", "end", "start", "first", "last", "special",
    "design", "theme", "color", "css", "prev", "previous", "lexer", "parser", "syntax", "cursor",
    "resume", "per", "max",
];

/// Words before `key` that make it a credential.
#[rustfmt::skip]
const SECRET_KEY_PREFIXES: &[&str] = &[
    "api", "access", "secret", "private", "signing", "encryption", "master", "auth", "account",
    "shared", "service", "admin", "deploy", "app", "application", "client", "server", "license",
    "storage", "subscription", "webhook", "session", "hmac", "jwt", "aes", "role", "security",
    "decryption", "fernet", "preshared",
];

/// Words before `seed` that make it a credential.
#[rustfmt::skip]
const SECRET_SEED_PREFIXES: &[&str] = &[
    "totp", "otp", "hotp", "mfa", "2fa", "authenticator", "wallet", "hd", "master", "recovery",
    "secret", "private",
];

/// Words for a password in other languages, as they stand in names.
#[rustfmt::skip]
const FOREIGN_PASSWORDS: &[&str] = &[
    "contrasena", "mdp", "kennwort", "senha", "haslo", "wachtwoord", "salasana", "parola",
];

#[rustfmt::skip]
const HARMLESS_KEYS: &[&str] = &[
    "public", "primary", "foreign", "cache", "sort", "partition", "row", "column", "unique",
    "idempotency", "object", "hot", "arrow", "map", "dict", "group", "index", "lookup", "host",
    "query", "json", "i18n",
];

/// The name that contains the word at `start..end`. `None` if it is too long for a name.
pub(super) fn name_around(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let belongs = |at: usize| {
        let byte = bytes.get(at).copied().unwrap_or_default();
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
    };
    let word_start = text[start..end].find(|c: char| c != ' ').map_or(start, |at| start + at);
    let mut from = start;
    while from > 0 && belongs(from - 1) {
        from -= 1;
        if start - from > MAX_NAME_BYTES {
            return None;
        }
    }
    // `%3Ftoken` is a question mark and a name.
    let code = bytes.get(from..word_start).unwrap_or_default();
    if from > 0
        && bytes.get(from - 1) == Some(&b'%')
        && code.len() >= 2
        && code.iter().take(2).all(u8::is_ascii_hexdigit)
    {
        from += 2;
    }
    // `\nPASSWORD` in escaped text is a newline and a name.
    if from > 0 && bytes.get(from - 1) == Some(&b'\\') && from < word_start {
        from += usize::from(matches!(bytes.get(from), Some(b'n' | b'r' | b't')));
    }
    // Some keywords end in a quote or sign, to tell them from longer words.
    let mut to = end;
    while to > start && !belongs(to - 1) {
        to -= 1;
    }
    while belongs(to) {
        to += 1;
        if to - end.min(to) > MAX_NAME_BYTES {
            return None;
        }
    }
    while to > from && matches!(bytes.get(to - 1), Some(b'.' | b'-')) {
        to -= 1;
    }
    (from < to).then_some((from, to))
}

/// The class of a name, if its value is a secret.
pub(super) fn classify(name: &str) -> Option<SecretClass> {
    let mut words = [""; MAX_WORDS];
    let mut count = split(name, &mut words);
    let is = |word: &str, list: &[&str]| list.iter().any(|other| word.eq_ignore_ascii_case(other));
    while count > 1 {
        let last = words[count - 1];
        if !is(last, SUFFIXES) && !last.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        count -= 1;
    }
    let words = &words[..count];
    let (last, before) = words.split_last()?;
    let ends = |endings: &[&str]| {
        endings.iter().any(|ending| {
            let start = last.len().wrapping_sub(ending.len());
            last.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(ending))
        })
    };
    let any_before = |list: &[&str]| before.iter().any(|word| is(word, list));
    if ends(&["password", "passwd", "passwort", "passcode", "pwd", "storepass", "keypass"])
        || ends(&["rootpw", "dbpass", "userpass", "rootpass", "adminpass", "sshpass", "ftppass"])
        || ends(&["smtppass", "mailpass", "ldappass", "bindpass", "bindpw", "sudopass"])
        || is(last, &["pass", "pw", "psk"])
        || is(last, FOREIGN_PASSWORDS)
    {
        return Some(SecretClass::Password);
    }
    if ends(&["passphrase", "mnemonic"]) {
        return Some(SecretClass::Phrase);
    }
    // WordPress: `AUTH_SALT`, `LOGGED_IN_SALT`.
    let salted = before.last().is_some_and(|word| is(word, &["auth", "in", "nonce", "secret"]));
    let salt = is(last, &["salt"]) && salted;
    // AWS: `SecretString`, `secret_string`.
    let stored = is(last, &["string"]) && before.last().is_some_and(|word| is(word, &["secret"]));
    if ends(&["secret", "credential", "credentials"]) || salt || stored {
        return Some(SecretClass::Secret);
    }
    if ends(&["token"]) {
        return (!any_before(HARMLESS_TOKENS)).then_some(SecretClass::Token);
    }
    let constant = !before.is_empty() && !name.bytes().any(|byte| byte.is_ascii_lowercase());
    // A personal access token. In small letters it may be a pattern.
    if is(last, &["pat"]) && constant {
        return Some(SecretClass::Token);
    }
    // The seed of one-time codes or of a wallet, not that of a random generator.
    let seeded = before.last().is_some_and(|word| is(word, SECRET_SEED_PREFIXES));
    if is(last, &["seed"]) && seeded || is(last, &["wif"]) {
        return Some(SecretClass::Key);
    }
    if ends(&["apikey", "accesskey", "secretkey", "privatekey", "accountkey", "authkey"])
        || ends(&["signingkey", "encryptionkey", "masterkey", "sharedkey"])
        || is(last, &["auth", "authorization"])
    {
        return Some(SecretClass::Key);
    }
    let opens = before.last().is_some_and(|word| is(word, SECRET_KEY_PREFIXES));
    // `primaryMasterKey` is one of two keys of an account, not the key of a row.
    let harmless =
        |word: &&str| is(word, HARMLESS_KEYS) && !(opens && word.eq_ignore_ascii_case("primary"));
    if is(last, &["key"]) && !before.iter().any(harmless) {
        return (opens || constant).then_some(SecretClass::Key);
    }
    None
}

/// The name without the plural: `passwords`, `apiKeys`.
pub(super) fn singular(name: &str) -> &str {
    let stem = name.strip_suffix(['s', 'S']).unwrap_or(name);
    if stem.ends_with(['s', 'S']) { name } else { stem }
}

/// True if the last word of a name is one for a password in another language.
pub(super) fn is_foreign(name: &str) -> bool {
    let mut words = [""; MAX_WORDS];
    let count = split(name, &mut words);
    let last = words.get(count.saturating_sub(1)).copied().unwrap_or_default();
    !name.is_ascii() || FOREIGN_PASSWORDS.iter().any(|word| word.eq_ignore_ascii_case(last))
}

/// Splits a name into words at separators and camel-case boundaries.
fn split<'a>(name: &'a str, words: &mut [&'a str; MAX_WORDS]) -> usize {
    let bytes = name.as_bytes();
    let mut count = 0;
    let mut start = 0;
    let mut put = |from: usize, to: usize| {
        if let Some(word) = name.get(from..to)
            && !word.is_empty()
        {
            if count == MAX_WORDS {
                words.rotate_left(1);
                count -= 1;
            }
            words[count] = word;
            count += 1;
        }
        count
    };
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).copied().unwrap_or_default();
        let previous = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or_default();
        if matches!(byte, b'_' | b'-' | b'.' | b' ') {
            put(start, at);
            start = at + 1;
        } else if byte.is_ascii_uppercase()
            && (previous.is_ascii_lowercase()
                || (previous.is_ascii_uppercase() && next.is_ascii_lowercase()))
        {
            put(start, at);
            start = at;
        }
    }
    put(start, bytes.len())
}
