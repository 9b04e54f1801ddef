//! Planted secrets that must be found, ordinary text that must not change, and properties that hold
//! for any text.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::contexts::CONTEXTS;
use super::providers::PROVIDERS;
use super::*;

/// A generated secret in its context, from its description in `planted.txt`.
pub(super) struct Planted {
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) secret: String,
    /// The expected output.
    pub(super) redacted: String,
}

pub(super) fn planted() -> Vec<Planted> {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let lines = include_str!("planted.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (kind, text) = line.split_once('\t').unwrap();
            let text = filled(&written_out(text), &mut seed);
            let (before, rest) = text.split_once('«').unwrap();
            let (secret, after) = rest.split_once('»').unwrap();
            Planted {
                kind,
                text: format!("{before}{secret}{after}"),
                secret: secret.to_owned(),
                redacted: format!("{before}[redacted:{kind}:1]{after}"),
            }
        })
        .collect()
}

/// Replaces what stands for line ends and for characters that nobody sees.
fn written_out(line: &str) -> String {
    let line = line.replace('⏎', "\n").replace("\\u001b", "\u{1b}");
    line.replace("\\u200b", "\u{200b}").replace("\\u00ad", "\u{ad}")
}

/// Expands `{a36}` to that many generated characters of an alphabet.
fn filled(text: &str, seed: &mut u64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let digits = after.chars().skip(1).take_while(char::is_ascii_digit).count();
        let alphabet = match after.chars().next() {
            Some('a') => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            Some('h') => "0123456789abcdef",
            Some('u') => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            Some('d') => "0123456789",
            Some('w') => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
            Some('b') => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            _ => "",
        };
        if alphabet.is_empty() || digits == 0 || !after[1 + digits..].starts_with('}') {
            out.push('{');
            rest = after;
            continue;
        }
        let length: usize = after[1..=digits].parse().unwrap();
        for at in 0..length {
            *seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let nth = (*seed >> 33) as usize;
            // If long enough, include a digit and a letter of each case, like most real keys.
            // Never start or end with a sign.
            let letters = match (at, alphabet.len()) {
                (0, 62..) => "bcdfghjkmnpqrs",
                (1, 62..) => "BCDFGHJKMNPQRS",
                (2, 62..) => "23456789",
                (_, 64..) if at + 1 == length => "ABCDEFGH",
                _ => alphabet,
            };
            out.push(char::from(letters.as_bytes()[nth % letters.len()]));
        }
        rest = &after[digits + 2..];
    }
    out.push_str(rest);
    out
}

fn redacted(text: &str) -> String {
    let rules = Rules::standard();
    Redactor::new(&rules).text(text).into_owned()
}

#[test]
fn all_rules_compile() {
    for provider in PROVIDERS.iter().chain(CONTEXTS) {
        assert!(provider.compile().is_some(), "{}: {}", provider.kind, provider.pattern);
    }
    assert!(Rules::standard().shared.words.is_some());
}

#[test]
fn planted_secrets_are_found_and_nothing_else_changes() {
    let planted = planted();
    assert!(planted.len() >= 60);
    let wrong: Vec<String> = planted
        .iter()
        .filter_map(|case| {
            let found = redacted(&case.text);
            (found != case.redacted).then(|| format!("{}: {}\n  → {found}", case.kind, case.text))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), planted.len(), wrong.join("\n"));
}

#[test]
fn what_is_no_secret_stays() {
    let lines = include_str!("clean.txt").lines().filter(|line| !line.starts_with('#'));
    let wrong: Vec<String> = lines
        .filter_map(|line| {
            let text = written_out(line);
            let found = redacted(&text);
            (found != text).then(|| format!("{text}\n  → {found}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_same_secret_is_the_same_everywhere() {
    let rules = Rules::standard();
    let mut redactor = Redactor::new(&rules);
    assert_eq!(redactor.text("password: hunter2hunter2"), "password: [redacted:password:1]");
    assert_eq!(
        redactor.text("PGPASSWORD=other4other psql"),
        "PGPASSWORD=[redacted:password:2] psql"
    );
    // Nothing in this context marks it as a secret.
    assert_eq!(redactor.text("I typed hunter2hunter2."), "I typed [redacted:password:1].");
    assert_eq!(
        redactor.text("postgres://u:hunter2hunter2@h/d"),
        "postgres://u:[redacted:password:1]@h/d"
    );
    let report = redactor.report();
    assert_eq!(report.secrets.len(), 2);
    assert_eq!(report.secrets[0].count, 3);
    assert_eq!(report.secrets[0].hint, "(14 characters)");
    assert_eq!(report.count(), 4);
}

#[test]
fn a_word_that_is_a_password_is_replaced_only_where_it_is_one() {
    let rules = Rules::standard();
    let mut redactor = Redactor::new(&rules);
    let text = redactor.text("POSTGRES_PASSWORD=postgres docker run postgres");
    assert_eq!(text, "POSTGRES_PASSWORD=[redacted:password:1] docker run postgres");
}

#[test]
fn hints_show_what_is_public() {
    let rules = Rules::standard();
    for case in planted() {
        let mut redactor = Redactor::new(&rules);
        redactor.text(&case.text);
        let hint = redactor.report().secrets[0].hint.clone();
        let shown = hint.split('…').next().filter(|_| hint.contains('…')).unwrap_or_default();
        assert!(case.secret.starts_with(shown) && shown.len() <= 16, "{hint}");
        assert!(shown.len() * 2 < case.secret.len(), "{hint}");
    }
    let mut redactor = Redactor::new(&rules);
    redactor.text(&planted().iter().find(|case| case.kind == "github-token").unwrap().text);
    assert_eq!(redactor.report().secrets[0].hint, "ghs_… (40 characters)");
}

#[test]
fn own_rules() {
    let own = |name: &str, pattern: &str| CustomRule {
        name: name.to_owned(),
        pattern: pattern.to_owned(),
    };
    let rules = Rules::standard()
        .with_custom(&[own("customer", r"\bC-\d{6}\b"), own("codename", r"(?i)project (\w+)")])
        .unwrap();
    let mut redactor = Redactor::new(&rules);
    let text = redactor.text("C-123456 in Project Falke, C-654321 and C-123456");
    assert_eq!(
        text,
        "[redacted:customer:1] in Project [redacted:codename:1], [redacted:customer:2] and [redacted:customer:1]"
    );
    assert_eq!(Redactor::new(&rules).text(&text), text);
    for (name, pattern) in [("Customer", "a"), ("", "a"), ("a]b", "a"), ("a", "("), ("a", "b*")] {
        let error = Rules::standard().with_custom(&[own(name, pattern)]).unwrap_err();
        assert_eq!(error.name, name);
        assert!(!error.why.is_empty());
    }
}

#[test]
fn homes_only_when_enabled() {
    let text = r"/home/alice/shop and /Users/bob, C:\Users\carol\x, C:\\Users\\carol\\x, example.com/home/about, ~/.claude/projects/-home-alice-shop/a.jsonl";
    assert_eq!(redacted(text), text);
    let rules = Rules::standard().homes(true);
    let found = Redactor::new(&rules).text(text).into_owned();
    assert_eq!(
        found,
        r"[redacted:home:1]/shop and [redacted:home:2], [redacted:home:3]\x, [redacted:home:3]\\x, example.com/home/about, ~/.claude/projects/[redacted:home:1]-shop/a.jsonl"
    );
    assert_eq!(Redactor::new(&rules).text(&found), found);
}

#[test]
fn hostile_text_takes_no_longer_than_its_length() {
    let many = |piece: &str| piece.repeat((2 << 20) / piece.len());
    let mut texts = vec!["a".repeat(10 << 20), "\"".repeat(10 << 20), "\0".repeat(10 << 20)];
    #[rustfmt::skip]
    let pieces = [
        "\\", "password=", "password=\"", "token: ", "-eyJ", "sk-", "://a:", "://", "curl -u ",
        "curl ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAA\n",
        "cookie: a=b;", "AKIA", "auth", "_key", "authorization: ", "{\"a\":[", "ü=", ":AA",
        "1:AA", "\\u00", "q~", " key", "PASSWORD=aB3aB3aB3 ", "\\ud800", "[redacted:", "mysql ",
        "/home/a", "eyJaaaaaaaaaaaaaaaa.", "\u{1b}[", "\u{1b}]8;;", "\u{1b}[31mtoken=",
        "\u{200b}", "\\\n", "\\u001b[", "-----END PRIVATE KEY-----",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----\n", "LS0tLS1CRUdJTi",
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t\n", "b3BlbnNzaC1rZXktdjEA",
        "Private-Lines: 1\nAAAA\n", "$6$", "$6$a$", "password: |\n", "password   ", "token%3D",
        "&quot;password&quot;:", "| sudo -S ", "gh secret set ", "密码", "1/1",
        "kind: Secret\n", "  kind: Secret\n", "- kind: Secret\n  data:\n    a: b\n",
        "{\"kind\":\"Secret\",", "\"kind\":\"Secret\",", "value: ", "value: a\n", "{\"value\":\"a\",",
        "\"value\":\"a\",", "create secret generic --from-literal=a=bcde ", "passwords: [",
        "\"passwords\": {", "passwords:\n- ", "mnemonic ", "mnemonic: abcd ", "--password-stdin ",
        "echo abcdefg | ", "\"sensitive_attributes\"", "{\"random_password\" \"result\":\"a\"",
        "-----BEGIN PRIVATE KEY-----\n# AAAA\n", "# AAAA\n-----END PRIVATE KEY-----\n", "wifi:P:", "token =\n",
        "variable \"token\" {", "password for ", "a:bcdefg@h:5432", "type=\"password\" ", "token='''", "q{",
        "<input value=\"abcd\" ", "password => q{", "token string = ", "Пароль ", "Some(\"", "name=token,value=",
        "expect \"assword:\" ", "token || ", "ghp_`", "ghp_abcdefgh*", "sessionid=", "secrets set A=bcde ", " -a b:", ";password=",
        "a:1:-----BEGIN PRIVATE KEY-----\n", "a:1:-----BEGIN PRIVATE KEY-----\na:2:bCd2\n", "---- BEGIN PRIVATE KEY ----\n",
        "-----BEGIN%20PRIVATE KEY-----%0A", "password=[-", "password={+", "password = [[", "%3A%2F%2Fa%3A", "> auth ",
        "pulumi config set --secret a ", "etcdctl put password ", "openssl enc -k ", "<name>password</name>",
    ];
    texts.extend(pieces.into_iter().map(many));
    let rules = Rules::standard();
    for text in &texts {
        let start = Instant::now();
        let mut redactor = Redactor::new(&rules);
        redactor.text(text);
        redactor.replaced_json(text, "x");
        let taken = start.elapsed();
        let head: String = text.chars().take(20).collect();
        assert!(taken < Duration::from_secs(10), "{head:?} took {taken:?}");
    }
}

/// Text with secrets and with fragments of keywords. With `marks` unset it contains neither our
/// replacement marks nor one key with different line ends.
fn messy(marks: bool) -> impl Strategy<Value = String> {
    let mut whole: Vec<String> = planted().into_iter().map(|case| case.text).collect();
    let pieces = [
        "password",
        "=",
        ":",
        " ",
        "\"",
        "'",
        "\\",
        "\\n",
        "\n",
        "token",
        "ghp_",
        "sk-ant-",
        "eyJ",
        "AKIA",
        "://",
        "@",
        "a",
        "hunter2hunter2",
        "[redacted:password:1]",
        "[redacted:",
        "]",
        "é",
        "🦀",
        "\0",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "Bearer ",
        "--",
        "{",
        "}",
        "API_KEY",
        "x7Kq9ZmW2vB4nT6y",
        "x7Kq9ZmW2vB4nT6yx7Kq9ZmW2vB4nT6y",
        ".",
        ",",
        ";",
        "_",
        "-",
        "cookie: ",
        "sid=",
        "curl -u a:",
        "value",
        "name",
        "is ",
        "\u{1b}[32m",
        "&",
        "?",
        "<",
        ">",
    ];
    let mut pieces: Vec<String> = pieces.into_iter().map(str::to_owned).collect();
    if !marks {
        // A key has one text, but it may stand there coloured or on several lines.
        let kept = |text: &String| {
            !text.contains("redacted") && !text.contains("PRIVATE KEY") && !text.contains('\u{1b}')
        };
        whole.retain(kept);
        pieces.retain(kept);
    }
    let piece = prop_oneof![
        1 => prop::sample::select(whole),
        8 => prop::sample::select(pieces),
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Undoes the redaction.
fn restored(redactor: &Redactor<'_>, text: &str) -> String {
    let mut text = text.to_owned();
    for (mark, secret) in redactor.secrets.secrets() {
        text = text.replace(mark, secret);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_changes_nothing(text in messy(true)) {
        let rules = Rules::standard();
        let mut redactor = Redactor::new(&rules);
        let once = redactor.text(&text).into_owned();
        // Redact again in the same export, and in a new one.
        prop_assert_eq!(redactor.text(&once), once.as_str());
        prop_assert_eq!(Redactor::new(&rules).text(&once), once.as_str());
    }

    #[test]
    fn only_secrets_change(text in messy(false)) {
        let rules = Rules::standard();
        let mut redactor = Redactor::new(&rules);
        let found = redactor.text(&text).into_owned();
        // A token that continues on the next line goes with the end of its first line.
        let one_line = |text: &str| text.replace("\\\n", "");
        prop_assert_eq!(one_line(&restored(&redactor, &found)), one_line(&text));
    }

    #[test]
    fn no_secret_is_left(text in messy(true)) {
        let rules = Rules::standard();
        let mut redactor = Redactor::new(&rules);
        let found = redactor.text(&text).into_owned();
        for (mark, secret) in redactor.secrets.secrets() {
            // The mark holds only a kind and a number, but a short secret may equal such a word.
            let (kind, number) = mark.trim_start_matches("[redacted:").rsplit_once(':').unwrap();
            prop_assert!(kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", mark);
            prop_assert!(number.trim_end_matches(']').parse::<u32>().is_ok(), "{}", mark);
            // A secret of 30 characters or more must not occur anywhere.
            prop_assert!(secret.len() < 30 || !found.contains(secret), "{} is left in {}", secret, found);
        }
    }

    #[test]
    fn json_stays_json(text in messy(true), number in "-?[1-9][0-9]{0,30}(\\.[0-9]{1,20})?") {
        let json = format!(
            r#"{{"b":{number}, "a" : [{}, null], "text":{}}}"#,
            Json::string(&text).text(),
            Json::string(&text).text(),
        );
        let rules = Rules::standard();
        let mut redactor = Redactor::new(&rules);
        let found = redactor.json(&Json::checked(&json));
        let value: serde_json::Value = serde_json::from_str(found.text()).unwrap();
        // A secret has the same number, quoted or not.
        let plain = redactor.text(&text).into_owned();
        prop_assert_eq!(value["a"][0].as_str().unwrap(), plain.as_str());
        let head = format!(r#"{{"b":{number}, "a" : ["#);
        prop_assert!(found.text().starts_with(&head));
        prop_assert_eq!(redactor.json(&found), found);
    }
}
