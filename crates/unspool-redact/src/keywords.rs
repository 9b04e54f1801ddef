//! The keywords that trigger a check, besides those of the regex rules. Text without keywords needs no
//! check at all.

use super::document::DocumentKind;
use super::value_shape::MARK;

/// Keywords that trigger a check, in addition to those of the providers. A new special case needs
/// its keyword here.
pub(super) const SPECIAL_KEYWORDS: &[(&str, KeywordKind)] = &[
    ("-----begin ", KeywordKind::PrivateKey(KeyForm::Block)),
    // In a URL, and the header of an SSH2 key.
    ("-----begin%20", KeywordKind::PrivateKey(KeyForm::Block)),
    ("-----begin+", KeywordKind::PrivateKey(KeyForm::Block)),
    ("---- begin ", KeywordKind::PrivateKey(KeyForm::Block)),
    ("-----end ", KeywordKind::PrivateKey(KeyForm::Tail)),
    // Base64 of `-----BEGIN` and of `openssh-key-v1`.
    ("LS0tLS1CRUdJTi", KeywordKind::PrivateKey(KeyForm::Encoded)),
    ("b3BlbnNzaC1rZXktdj", KeywordKind::PrivateKey(KeyForm::Encoded)),
    ("private-lines:", KeywordKind::PrivateKey(KeyForm::Putty)),
    ("cookie", KeywordKind::Cookie),
    ("secret", KeywordKind::Name),
    ("token", KeywordKind::Name),
    ("passw", KeywordKind::Name),
    ("passphrase", KeywordKind::Name),
    ("passcode", KeywordKind::Name),
    ("pass=", KeywordKind::Name),
    ("pass:", KeywordKind::Name),
    ("pass\"", KeywordKind::Name),
    ("_pass", KeywordKind::Name),
    ("pwd", KeywordKind::Name),
    ("pw:", KeywordKind::Name),
    ("pw=", KeywordKind::Name),
    ("apikey", KeywordKind::Name),
    ("accesskey", KeywordKind::Name),
    ("privatekey", KeywordKind::Name),
    ("accountkey", KeywordKind::Name),
    ("signingkey", KeywordKind::Name),
    ("encryptionkey", KeywordKind::Name),
    ("masterkey", KeywordKind::Name),
    ("_key", KeywordKind::Name),
    ("-key", KeywordKind::Name),
    (" key", KeywordKind::Name),
    ("credential", KeywordKind::Name),
    ("auth", KeywordKind::Name),
    ("mnemonic", KeywordKind::Name),
    ("psk", KeywordKind::Name),
    ("rootpw", KeywordKind::Name),
    ("pass =", KeywordKind::Name),
    ("storepass", KeywordKind::Name),
    ("keypass", KeywordKind::Name),
    ("sharedkey", KeywordKind::Name),
    ("_salt", KeywordKind::Name),
    ("contrasena", KeywordKind::Name),
    ("mdp", KeywordKind::Name),
    ("kennwort", KeywordKind::Name),
    ("senha", KeywordKind::Name),
    ("haslo", KeywordKind::Name),
    ("wachtwoord", KeywordKind::Name),
    ("salasana", KeywordKind::Name),
    ("parola", KeywordKind::Name),
    // `GITHUB_PAT`, not a path or a pattern.
    ("_pat=", KeywordKind::Name),
    ("_pat:", KeywordKind::Name),
    ("_pat\"", KeywordKind::Name),
    ("_pat'", KeywordKind::Name),
    ("_pat ", KeywordKind::Name),
    ("_seed", KeywordKind::Name),
    ("wif:", KeywordKind::Name),
    ("wif=", KeywordKind::Name),
    ("wif\"", KeywordKind::Name),
    (MARK, KeywordKind::Mark),
    // In JSON, these escapes may hide any of the keywords above.
    ("\\/", KeywordKind::Escape),
    ("\\u00", KeywordKind::Escape),
    // What says that a value is secret, at any depth of escapes.
    ("securestring", KeywordKind::Escape),
    ("sensitive", KeywordKind::Escape),
    // A continued line, in JSON.
    ("\\\\\\n", KeywordKind::Escape),
];

/// Words for a password that are no ASCII names. The search ignores the case of ASCII letters only.
#[rustfmt::skip]
pub(super) const PASSWORD_WORDS: &[&str] = &[
    "contraseña", "CONTRASEÑA", "mot de passe", "hasło", "HASŁO", "пароль", "Пароль", "ПАРОЛЬ",
    "密码", "密碼", "口令", "パスワード", "비밀번호", "lösenord", "LÖSENORD", "heslo",
    "şifre", "Şifre", "ŞİFRE", "парола", "Парола", "κωδικός πρόσβασης", "Κωδικός πρόσβασης",
    "Κωδικός Πρόσβασης", "كلمة المرور", "كلمة السر", "رمز عبور", "סיסמה", "סיסמא", "पासवर्ड",
    "mật khẩu", "Mật khẩu", "Mật Khẩu", "MẬT KHẨU", "รหัสผ่าน", "jelszó", "JELSZÓ", "parolă",
    "kata sandi", "adgangskode", "passord", "contrasenya",
];

/// What stands before the words of a wallet.
pub(super) const PHRASE_KEYWORDS: &[&str] = &[
    "mnemonic",
    "seed phrase",
    "seed_phrase",
    "seedphrase",
    "seed words",
    "recovery phrase",
    "recovery_phrase",
    "recoveryphrase",
    "recovery words",
    "backup phrase",
    "secret phrase",
];

/// Names of session cookies, or their ends.
pub(super) const SESSION_COOKIES: &[&str] = &[
    "connect.sid=",
    "sessionid=",
    "phpsessid=",
    "jsessionid=",
    "_session=",
    "session-token=",
    "asp.net_sessionid=",
    "_session_id=",
    "sessid=",
];

pub(super) const HOME_KEYWORDS: &[&str] = &["/home/", "/users/", "\\users\\", "-home-", "-users-"];

/// The check that a keyword triggers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeywordKind {
    /// A regex rule, by index.
    RedactionRule(u16),
    PrivateKey(KeyForm),
    Cookie,
    /// The name of a session cookie, with or without a header.
    SessionCookie,
    /// A document whose structure tells what is secret in it.
    Document(DocumentKind),
    /// What stands before the words of a wallet.
    Phrase,
    /// Part of a name whose value may be a secret.
    Name,
    /// A word for a password in another language.
    Word,
    Home,
    /// An existing replacement.
    Mark,
    /// A JSON escape, or a word that matters only once the escapes around it are undone.
    Escape,
    /// Something that a reader does not see.
    Hidden,
}

/// What identifies a private key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyForm {
    /// The header of a block.
    Block,
    /// The footer of a block whose header is missing.
    Tail,
    /// The start of a key in base64.
    Encoded,
    Putty,
}
