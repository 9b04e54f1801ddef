//! Rules for secrets that their context identifies: URLs, headers, arguments of commands, statements,
//! configuration files.

use super::providers::{Provider, by_context, by_pattern};
use super::rules::{Check, Lookbehind};

/// If two rules match, the first one wins.
#[rustfmt::skip]
pub(super) const CONTEXTS: &[Provider] = &[
    by_context("twilio-key", &["twilio"], r#"(?i:twilio)[^\n]{0,60}?\b((?:SK|AC)[0-9a-f]{32}|[0-9a-f]{32})\b"#).check(Check::Mixed),
    by_context("discord-token", &["discord"], r#"(?i:discord)[^\n]{0,60}?\b([MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})"#).check(Check::Random),
    by_context("sentry-dsn", &["://"], r"://([0-9a-f]{32})(?::[0-9a-f]{32})?@[A-Za-z0-9.-]+/[0-9]+"),
    by_context("password", &["://"], r#"://[^\s:/?\#@"'`<>\\]*:([^\s/"'`<>\\]+)@[A-Za-z0-9\[]"#),
    // The password of a database may contain the signs that end it elsewhere.
    by_context("password", &["postgres", "mysql", "mariadb", "mongodb", "redis", "amqp", "mssql", "sqlserver", "clickhouse", "cockroach"],
        r#"[a-z+]{1,12}://[^\s:/?\#@"'`<>\\]*:([^\s"'`<>\\]+)@[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]*(?:[/?\s"'`<>\\,;)]|$)"#),
    // An address that is the value of a query.
    by_context("password", &["%3a%2f%2f"],
        r#"(?i:%3a%2f%2f)[^\s:/?\#@"'`<>\\&%]*(?i:%3a)((?:[^\s:/?\#@"'`<>\\&%]|%(?:[013-9A-Fa-f][0-9A-Fa-f]|2[0-9A-Ea-e]))+?)%40[A-Za-z0-9]"#),
    by_context("token", &["://"], r"://([A-Za-z0-9_-]{20,})@[A-Za-z0-9]").check(Check::Random),
    by_context("basic-auth", &["basic "], r"(?i:basic)\s+([A-Za-z0-9+/_-]{8,}={0,2})").check(Check::BasicAuthPair),
    by_context("bearer-token", &["bearer "], r#"(?i:bearer)\s+["']?([A-Za-z0-9._~+/=-]{16,})"#).check(Check::Mixed),
    by_context("token", &["authorization"], r#"(?i:authorization)["'\\\]]*\s*[:=,]\s*["'\\]*(?i:token|bot|apikey|api-key|key|digest|basic)\s+([A-Za-z0-9._~+/=-]{16,})"#).check(Check::Mixed),
    by_context("password", &["curl", "wget", "etcdctl"],
        r#"(?i:curl|wget|etcdctl)(?:\.exe)?\s(?:(?:[^\n\\]|\\.|\\\n)*?(?:-[a-zA-Z]*u|--user|--proxy-user)(?:\s+|=)["']?|(?:(?:[^\n\\]|\\.|\\\n)*?\s)?-[fgijkLlnNOpqsSvIJ]*u["']?)[^\s:"'/=-][^\s:"'/=]*:([^\s"'\\]+)"#),
    by_context("password", &["mysql"], r#"mysql(?:dump|admin|import|sh)?\s[^\n]*?\s-p["']?([^\s"'=\\-][^\s"'\\]{3,})"#),
    by_context("password", &["sshpass"], r#"sshpass\s+-p\s*["']?([^\s"'\\]+)"#),
    by_context("password", &["redis-cli"], r#"redis-cli\s[^\n]*?-a\s+["']?([^\s"'\\]{4,})"#),
    by_context("password", &["docker login", "podman login"], r#"(?:docker|podman) login\s[^\n]*?\s-p[ =]?["']?([^\s"'\\-][^\s"'\\]{3,})"#),
    by_context("password", &["openssl"], r#"openssl\s[^\n]*?\bpass:([^\s"'\\]{4,})"#),
    by_context("password", &["machine "], r#"machine\s+\S+\s+(?:login\s+\S+\s+)?(?:account\s+\S+\s+)?password\s+([^\s"'\\]+)"#),
    by_context("password", &[":5432:", ":5433:", ":5434:", ":5439:", ":6432:", ":15432:", ":54320:", ":55432:", ":26257:", ":*:"],
        r#"[A-Za-z0-9_.*-]+:(?:[0-9]{4,5}|\*):[^\s:]+:[^\s:]+:([^\s:"'\\]{4,})"#).lookbehind(Lookbehind::Letters(64)),

    // `user:password@host:port` without a scheme.
    by_context("password", &[":5432", ":3306", ":6379", ":27017", ":5672", ":1433", ":1521", ":9042", ":3128"],
        r#"(?:^|[\s"'`=(,\[])[A-Za-z0-9._-]{1,64}:([^\s:/@"'`<>(){}$\\]{6,64})@[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{4,5}(?:[^0-9]|$)"#).lookbehind(Lookbehind::Line(160)),

    // Commands that take a password as an argument. In JSON inside JSON, quotes are escaped.
    by_context("password", &["mosquitto_"], r#"mosquitto_(?:pub|sub|rr)\s[^\n]*?\s(?:-P|--pw)\s+(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\]+))"#),
    by_context("password", &["mongosh ", "mongo ", "mongodump ", "mongorestore ", "cqlsh "],
        r#"(?:mongo(?:sh|dump|restore)?|cqlsh)\s[^\n]*?\s-p\s+(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\-][^\s"'\\]{3,}))"#),
    by_context("password", &["sqlcmd ", "bcp "], r#"(?:sqlcmd|bcp)(?:\.exe)?\s[^\n]*?\s-P\s*(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\-][^\s"'\\]{3,}))"#),
    by_context("password", &["sqlplus ", "rman target ", "expdp ", "impdp "],
        r#"(?:sqlplus|rman target|expdp|impdp)\s(?:-\S+\s+)*["']?[A-Za-z0-9_$]+/([^\s"'/@\\]{4,})@?"#),
    by_context("password", &["jdbc:oracle:"], r#"jdbc:oracle:[a-z0-9]+:[A-Za-z0-9_$]+/([^\s"'/@\\]{4,})@"#),
    by_context("password", &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami"],
        r#"ldap(?:search|modify|add|delete|passwd|whoami)\s[^\n]*?\s-w\s*(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\-][^\s"'\\]{3,}))"#),
    by_context("password", &["smbclient", "rpcclient", "smbmap", "net rpc"],
        r#"(?:smbclient|rpcclient|smbmap|net rpc)\s[^\n]*?(?:-U|--user=?)\s*["']?[^\s"'%]{1,64}%([^\s"'\\]{4,})"#),
    by_context("password", &["xfreerdp", "wfreerdp"], r#"[xw]freerdp3?\s[^\n]*?/p:(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\]+))"#),
    by_context("password", &["lftp "], r#"lftp\s[^\n]*?(?:-u|--user)\s+["']?[^\s"',]{1,64},([^\s"'\\]{4,})"#),
    by_context("password", &["net user "], r#"net user\s+[^\s/*]{1,64}\s+(?:\\*"([^"\\\n]+)\\*"|([^\s"'/*\\<]{4,}))"#),
    by_context("password", &["rabbitmqctl "], r#"rabbitmqctl\s(?:[^\n]*?\s)?(?:add_user|change_password|authenticate_user)\s+\S{1,64}\s+(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\]+))"#),
    by_context("password", &["htpasswd "], r#"htpasswd[ \t]+-[a-zA-Z]*b[a-zA-Z]*[ \t]+(?:\S+[ \t]+)?\S{1,64}[ \t]+(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\>|]{4,}))"#),
    by_context("password", &["zip -", "unzip "], r#"(?:un)?zip\s(?:[^\n]*?\s)?-P\s*(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\-][^\s"'\\]{3,}))"#),
    by_context("password", &["7z ", "7za ", "rar "], r#"(?:7za?|rar)\s+[axet]\s(?:[^\n]*?\s)?-h?p(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\-][^\s"'\\]{3,}))"#),
    by_context("password", &["chpasswd"], r#"echo\s+(?:-[en]+\s+)?\\*["']?[a-z_][a-z0-9_-]{0,31}:([^\s"'\\]{4,})\\*["']?\s*\|\s*(?:sudo\s+)?chpasswd"#).lookbehind(Lookbehind::Line(120)),
    by_context("password", &["sudo -S", "sudo -kS"], r#"(?:echo|printf)\s+(?:-[en]+\s+)?(?:\\*["']([^"'\\\n]{4,})\\*["']|([^\s"'\\$|]{4,}))\s*\|\s*sudo -k?S"#).lookbehind(Lookbehind::Line(120)),
    by_context("secret", &["gh secret set", "gh variable set"],
        r#"gh (?:secret|variable) set\s[^\n]*?(?:--body|-b)(?:\s*=\s*|\s*)(?:\\*"([^"\\\n]+)\\*"|\\*'([^'\\\n]+)\\*'|([^\s"'\\]+))"#),
    by_context("secret", &["mc alias set", "mc config host add"], r#"mc (?:alias set|config host add)\s+\S+\s+\S+\s+\S+\s+([^\s"'\\]{8,})"#),
    by_context("password", &["nmcli "], r#"nmcli\s[^\n]*?\s(?:password|wifi-sec\.psk|802-11-wireless-security\.psk)\s+(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\]{4,}))"#),
    by_context("password", &["convertto-securestring"], r#"(?i:convertto-securestring)\s+(?:-[Ss]tring\s+)?(?:\\*"([^"\\\n]+)\\*"|\\*'([^'\\\n]+)\\*'|([^\s"'\\$(-][^\s"'\\]{3,}))"#),

    // Source code and statements.
    by_context("password", &["auth=(", "auth = (", "BasicAuth(", "DigestAuth(", "NtlmAuth("],
        r#"(?i:auth)(?:\s?=\s?)?\(\s*b?\\*["'][^"'\\\n]{0,64}\\*["']\s*,\s*b?(?:\\*"([^"\\\n]{4,})\\*"|\\*'([^'\\\n]{4,})\\*')"#),
    by_context("password", &["identified by ", "identified with "],
        r#"(?i:identified (?:by|with \S+ by))\s+(?i:password\s+)?(?:\\*'([^'\\\n]+)\\*'|\\*"([^"\\\n]*[0-9][^"\\\n]*)\\*")"#),
    by_context("password", &["password '", "password \""], r#"(?i:password)\s(?:\\*'([^'\\\n]{4,})\\*'|\\*"([^"\\\n]{4,})\\*")\s*(?:[;\n\\"]|$|(?i:valid|login|in\b|superuser|createdb|nosuper|with))"#),
    by_context("password", &["identified by \"", "identified by \\\""], r#"(?i:user|role|to)\s+\S{1,64}\s+(?i:identified by)\s+\\*"([^"\\\n]{4,})\\*""#).lookbehind(Lookbehind::Line(120)),
    by_context("password", &["with password"], r#"(?i:with password)\s*=?\s*N?\\*'([^'\\\n]{4,})\\*'"#),
    by_context("password", &["= password('"], r#"=\s(?i:password)\(\\*'([^'\\\n]{4,})\\*'"#),
    by_context("password", &["password='"], r#"@[A-Za-z_]*(?i:password)=N?\\*'([^'\\\n]{4,})\\*'"#).lookbehind(Lookbehind::Line(32)),
    by_context("password", &["mysqli_connect(", "mysqli(", "mysql_connect(", "sql.connect(", "sqldb.connect(", "getconnection(", "pdo("],
        r#"(?i:connect|mysqli|getconnection|pdo)\(\s*\\*["'][^"'\n]{0,200}["']\s*,\s*\\*["'][^"'\n]{1,64}["']\s*,\s*\\*(?:"([^"\\\n]{4,})|'([^'\\\n]{4,}))\\*["']"#).lookbehind(Lookbehind::Line(16)),
    by_context("password", &["password(\"", "password(\\\""], r#"(?i:password)\(\\*"([^"\\\n ]*[0-9][^"\\\n ]*)\\*"\)"#),
    by_context("discord-token", &[".run(\"", ".run('", ".login(\"", ".login('", ".login(\\", ".run(\\"], r#"\.(?:run|login)\(\\*["']([MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})\\*["']"#).check(Check::Random),
    by_context("token", &[".run(\"", ".run('", ".login(\"", ".login('", ".login(\\", ".run(\\"], r#"\.(?:run|login)\(\\*["']([A-Za-z0-9_.-]{30,})\\*["']"#).check(Check::Random),
    // Tests of pages.
    by_context("password", &[".type('", ".type(\"", ".fill('", ".fill(\"", ".send_keys(", ".sendkeys("],
        r#"(?i:passw(?:or)?d)[^\s,]{0,8}?(?:\)\.(?i:type|fill|send_?keys)\(|,\s*)\\*["']([^"'\\\n]{6,})\\*["']"#).lookbehind(Lookbehind::Line(100)),
    by_context("password", &["wifi.begin("], r#"(?i:wifi\.begin)\(\s*\\*"[^"\\\n]{1,32}\\*"\s*,\s*\\*"([^"\\\n]{8,63})\\*""#),
    by_context("password", &["NetworkCredential(", "PasswordCredentials(", "PasswordAuthentication(", "new Credentials("],
        r#"[A-Za-z ]{0,20}(?:Credentials?|PasswordAuthentication)\(\s*\\*"[^"\\\n]{1,64}\\*"\s*,\s*\\*"([^"\\\n]{4,})\\*""#),
    by_context("algolia-key", &["algoliasearch(", "searchClient("], r#"(?i:algoliasearch|searchclient)\(\s*\\*["'][A-Z0-9]{6,16}\\*["']\s*,\s*\\*["']([0-9a-f]{32})\\*["']"#).check(Check::Mixed),
    // The alphabet and the length of the keys that Django makes.
    by_context("secret", &["secret_key = ", "secret_key="], r#"(?:SECRET_KEY)\s?=\s?(?:"([a-z0-9!@\#$%^&*(_=+)-]{50})"|'([a-z0-9!@\#$%^&*(_=+)-]{50})')"#).check(Check::None),
    // Dialogues that a script holds: `expect "assword:"` and `send "…"`.
    by_context("password", &["assword:\"", "assword: \"", "assword:*\"", "assword:\\\"", "assword: \\\"", "assword:*\\\"", "assword:'", "assword: '"],
        r#"expect[^\n]{0,40}?assword:[ *]{0,2}["']\)?[ \t;}{]*(?:\n\s*)?(?:[a-z_]{1,20}\.)?send(?:line)?[\s(]+(?:--\s+)?["']([^"'\\\n$]{4,})"#).lookbehind(Lookbehind::Line(60)),

    // Pages.
    by_context("password", &["type=\"password\"", "type='password'", "type=\\\"password\\\""],
        r#"type=\\*["']password\\*["'][^<>\n]{0,200}?\svalue=\\*["']([^"'\\\s<>]{4,})\\*["']"#),
    by_context("password", &["type=\"password\"", "type='password'", "type=\\\"password\\\""],
        r#"<input\s[^<>\n]{0,160}?\bvalue=\\*["']([^"'\\\s<>]{4,})\\*["'][^<>\n]{0,160}?\stype=\\*["']password"#).lookbehind(Lookbehind::Line(200)),

    by_context("aws-secret-key", &["secret access key ["], r#"(?i:secret access key) \[[^\]\n]{0,40}\]:\s*([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#).check(Check::Random),

    // What servers print when they are set up.
    by_context("password", &["password for ", "password is generated for ", "password generated for "],
        r#"(?i:password)(?: is| was)?(?: generated)? for [^\n"'<>]{1,100}?:(?:[ \t]+|\s*\n {2,})([^\s"'<>\\]{8,})[ \t]*(?:[\r\n\\"]|$)"#).check(Check::Mixed),
    by_context("password", &["following password to proceed"], r#"following password to proceed[^\n:]{0,40}:\s{1,8}([0-9a-f]{32})\b"#).check(Check::Mixed),
    // What a phone reads from a code: `WIFI:T:WPA;S:home;P:…;;`.
    by_context("password", &["wifi:"], r#"(?i:wifi):(?:[A-Z]{1,3}:(?:\\.|[^;\\\n"])*;)*?P:((?:\\.|[^;\\\n"])+);"#),

    by_context("fernet-key", &["fernet(", "key =", "key=", "key:", "key\":", "key':"],
        r#"(?i:key|[a-z_.-]*fernet[a-z_.-]*)\\*["']?[\s:=(]{1,4}b?\\*["']?([A-Za-z0-9_-]{43}=)(?:[^A-Za-z0-9=_-]|$)"#)
        .lookbehind(Lookbehind::Letters(48)).check(Check::Random),
    by_context("okta-token", &["SSWS "], r"SSWS\s+(00[A-Za-z0-9_-]{38,42})").check(Check::Mixed),

    // Configuration of servers and network devices.
    by_context("password", &["psk=\"", "psk=\\\""], r#"(?i:psk)=\\*"([^"\\\n]{8,63})\\*""#),
    // Maven encrypts passwords with a key that lies beside them.
    by_context("password", &["password>{", "passphrase>{", "<master>{"], r#"<?(?i:password|passphrase|master)>(\{[A-Za-z0-9+/]{16,}={0,2}\})</"#).check(Check::Random),
    by_context("password", &["<auth-user-pass>"], r#"<auth-user-pass>\s*\n[^\n<]+\n([^\n<]+)"#),
    by_context("password", &["requirepass ", "masterauth "], r#"(?:requirepass|masterauth)\s+(?:\\*["']([^"'\\\n]+)\\*["']|([^\s"'\\#]{4,}))"#),
    by_context("password", &[": psk "], r#":\s(?i:psk)\s+(?:\\*"([^"\\\n]+)\\*"|\\*'([^'\\\n]+)\\*'|(0[xs][A-Za-z0-9+/=]{8,}))"#),
    by_context("password", &["enable password ", "enable secret "], r#"enable (?:password|secret)\s+(?:level\s+[0-9]+\s+)?(?:[0-9]\s+)?([^\s"'\\]*[0-9][^\s"'\\]*)\s*(?:[\n\\"]|$)"#),
    by_context("password", &["username "], r#"username\s+\S{1,64}\s+(?:privilege\s+[0-9]+\s+)?(?:password|secret)\s+(?:[0-9]\s+)?([^\s"'\\]*[0-9][^\s"'\\]*)\s*(?:[\n\\"]|$)"#),
    by_context("password", &["snmp-server community ", "rocommunity ", "rwcommunity "],
        r#"(?:snmp-server community|r[ow]community6?)\s+([^\s"'\\]{4,})"#),
    // `relay:port user:password` of Postfix.
    by_context("password", &["]:25 ", "]:465 ", "]:587 ", "]:25\t", "]:465\t", "]:587\t"],
        r#"\]:[0-9]{2,3}[ \t]+[^\s:"']{1,128}:([^\s"'\\]{4,})"#),
    by_pattern("aws-secret-key", &["AKIA", "ASIA"],
        r#"A[KS]IA[A-Z0-9]{16}\s+[0-9]{4}-[0-9]{2}-[0-9T:.Z+-]{8,24}\s+([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#, 0).check(Check::Random),
];
