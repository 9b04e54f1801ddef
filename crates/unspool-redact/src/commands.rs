//! Rules for secrets in commands: as an argument, piped into one, or printed by a build for one.

use super::providers::{Provider, by_context};
use super::rules::{Check, Lookbehind};

/// A value with or without quotes, which may be escaped. A variable or an option is no value.
macro_rules! value {
    () => {
        r#"(?:\\*"([^"\\\n]{4,})\\*"|\\*'([^'\\\n]{4,})\\*'|([^\s"'\\$|<>()&;-][^\s"'\\|;]{3,}))"#
    };
}

/// What prints a secret into a pipe.
macro_rules! piped {
    () => {
        concat!(
            r#"(?:echo|printf)\s+(?:-[neE]+\s+)*(?:\\*["']?%s(?:\\+n)?\\*["']?\s+)?"#,
            r#"(?:\\*"([^"\\\n]{6,})\\*"|\\*'([^'\\\n]{6,})\\*'|([^\s"'\\$|<>()-][^\s"'\\|;]{5,}))\s*\|\s*"#
        )
    };
}

/// If two rules match, the first one wins.
#[rustfmt::skip]
pub(super) const COMMANDS: &[Provider] = &[
    // Every value that a command stores as a secret, whatever its name is.
    by_context("secret", &["create secret generic", "create secret tls", "create secret docker-registry"],
        r#"--from-literal(?:=|\s+)(?:\\*"[^"=\n\\]{1,100}=([^"\\\n]+)|\\*'[^'=\n\\]{1,100}=([^'\\\n]+)|[^\s="'\\]{1,100}=(?:\\*"([^"\\\n]+)|\\*'([^'\\\n]+)|([^\s"'\\]+)))"#).every(),
    by_context("secret", &["secrets set ", "secrets:set ", "vault kv put ", "vault kv patch "],
        concat!(r#"\s\\*["']?[A-Za-z_][A-Za-z0-9_.-]{0,63}="#, value!())).every(),
    by_context("secret", &["--secret-string"], concat!(r#"--secret-string(?:=|\s+)"#, value!())),
    by_context("secret", &["put-parameter"],
        concat!(r#"put-parameter\s[^\n]*?(?:SecureString[^\n]*?--value(?:=|\s+)"#, value!(), r#"|--value(?:=|\s+)"#, value!(), r#"[^\n]*?SecureString)"#)),
    by_context("secret", &["docker secret create", "podman secret create", "secret put ", "env add ", "secrets set ", "secret set ", "secrets create "],
        concat!(piped!(), r#"[^|\n]*?(?:(?:docker|podman) secret create|secrets? (?:put|set|create)|env add)\s"#)).lookbehind(Lookbehind::Line(200)),
    by_context("password", &["--password-stdin", "--pass-stdin", "passwd --stdin"],
        concat!(piped!(), r#"[^|\n]*?(?:--pass(?:word)?-stdin|passwd --stdin)"#)).lookbehind(Lookbehind::Line(200)),
    by_context("token", &["--with-token", "--token-stdin"],
        concat!(piped!(), r#"[^|\n]*?--(?:with-token|token-stdin)"#)).lookbehind(Lookbehind::Line(200)),
    by_context("password", &["--password-stdin", "--with-token"],
        concat!(r#"--(?:password-stdin|with-token)[^|\n]{0,100}?<<<\s*"#, value!())),

    by_context("secret", &["pulumi config set "],
        concat!(r#"pulumi config set\s(?:[^\n]*?\s)?(?:--secret\s+(?:--?\S+\s+)*[^\s-]\S*\s+"#, value!(), r#"|[^\s-]\S*\s+"#, value!(), r#"\s[^\n]*?--secret)"#)),
    by_context("secret", &["keyvault secret set "],
        concat!(r#"keyvault secret set\s[^\n]*?\s--value(?:=|\s+)"#, value!())),
    by_context("secret", &["consul kv put ", "etcdctl "],
        concat!(r#"(?:consul kv|etcdctl(?:\s[^\n]*?)?)\sput\s+(?:--?\S+\s+)*[^\s-]\S*?"#,
            r#"(?i:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)\\*["']?\s+"#, value!())),
    by_context("password", &["openssl "], concat!(r#"openssl\s(?:enc|aes|des|camellia)[^\n]*?\s-k\s+"#, value!())),
    // The prompt of redis-cli.
    by_context("password", &["> auth "],
        r#"(?:[0-9a-z.\]-]:[0-9]{2,5}(?:\[[0-9]+\])?|redis)>\s(?i:auth)\s+(?:[^\s"'\\]+[ \t]+)?["']?([^\s"'\\]{4,})["']?[ \t\r]*(?:\n|\\n|$)"#).lookbehind(Lookbehind::Line(64)),
    by_context("password", &["auth default "], concat!(r#"AUTH default\s+"#, value!())),

    // `user:password`.
    by_context("password", &["--auth ", "--auth=", " -a "],
        r#"(?:^|[\s`$"';&|(])(?:https?|xhs?)\s(?:[^\n|;]*?\s)?(?:-a|--auth)(?:\s+|=)\\*["']?[^\s:"'/\\]+:([^\s"'\\]+)"#).lookbehind(Lookbehind::Line(200)),
    by_context("password", &["-auth "], r#"-auth\s+\\*["']?[^\s:"'/\\]{1,64}:([^\s"'\\]{6,})"#),
    by_context("password", &["@tcp(", "@unix("], r#"(?:^|["'`\s=])[^\s:"'`/@=]{1,64}:([^\s"'`@/\\]+)@(?:tcp|unix)\("#).lookbehind(Lookbehind::Line(120)),

    // Options with one letter.
    by_context("password", &["az login", "az acr login", "twine upload", "psexec", "nuget", "helm registry login", "oc login", "cf login", "oras login", "buildah login", "skopeo login", "cypher-shell"],
        concat!(r#"(?i:az (?:acr )?login|twine upload|psexec(?:64)?(?:\.exe)?|nuget(?:\.exe)?|helm registry login|oc login|cf login|oras login|buildah login|skopeo login|cypher-shell)\s[^\n]*?\s-p\s+"#, value!())),
    by_context("passphrase", &["ssh-keygen "], concat!(r#"\s-[NP]\s*"#, value!())).every(),
    by_context("password", &["net use "],
        r#"(?i:net use)\s+\S+\s+(?:\S+\s+)?/(?i:user):\S+\s+(?:\\*"([^"\\\n]+)\\*"|([^\s"'/*\\<]{4,}))"#),
    by_context("password", &["http-basic."], concat!(r#"http-basic\.\S+\s+\S+\s+"#, value!())),
    by_context("password", &["rcon_password ", "sv_password "], concat!(r#"(?:rcon|sv)_password\s+"#, value!())),

    by_context("token", &["vault login "], r#"vault login\s+(?:-[^\s=]+(?:=\S+)?\s+)*(?:token=)?["']?([A-Za-z0-9._-]{20,})(?:[\s"'\\]|$)"#).check(Check::Mixed),
    by_context("token", &["doctl auth init", "codecov ", "codecov.sh ", "snyk auth ", "cargo login ", "wandb login ", "ngrok authtoken ", "ngrok config add-authtoken ", "cloudflared service install "],
        r#"(?:(?:doctl auth init|codecov(?:\.sh)?)\s(?:[^\n]*?\s)?-t\s*|(?:snyk auth|(?:cargo|wandb) login|ngrok (?:authtoken|config add-authtoken)|cloudflared service install)\s+(?:--?[a-z-]+(?:[= ]\S+)?\s+)*)["']?([A-Za-z0-9._=-]{16,})(?:[\s"'\\]|$)"#).check(Check::Mixed),
    by_context("token", &[":_authtoken ", ":_auth ", ":_password "], concat!(r#":_(?i:authtoken|auth|password)\s+"#, value!())),
    by_context("secret", &[",parametervalue=", ",value="],
        concat!(r#"(?i:parameterkey|name|key)=\\*["']?[A-Za-z0-9_./-]{0,60}"#,
            r#"(?i:password|passwd|secret|token|api_?key|access_?key|private_?key|credentials?)\\*["']?,(?i:parametervalue|value)="#,
            r#"(?:\\*"([^"\\\n]{4,})\\*"|\\*'([^'\\\n]{4,})\\*'|([^\s"'\\$|<>(){},;]{4,}))"#)).lookbehind(Lookbehind::Line(120)),

    by_context("secret", &["rclone config create ", "rclone config update "],
        concat!(r#"\s\\*["']?(?:pass|pass2|password2|key|sas_url|bearer_token|[a-z_]*(?:secret|password|token|access_key|api_key|account_key))[ =]\s*"#, value!())).every(),

    // What a build says about its secrets.
    by_context("secret", &["::add-mask::", "##[add-mask]"], r#"(?:::add-mask::|\#\#\[add-mask\])([^\s"'\\]{4,})"#),
    by_context("secret", &["issecret=true"], r#"(?i:issecret=true)[^\]\n]{0,60}\]([^\s"'\\]{4,})"#),
    by_context("secret", &["::set-output name="],
        r#"::set-output name=[A-Za-z0-9_-]*(?i:token|secret|password|passwd|apikey|api_key|api-key)::([^\s"'\\]{6,})"#),
    by_context("vault-key", &["unseal key", "recovery key"], r#"(?i:unseal|recovery) (?i:key) [0-9]{1,2}:\s*([A-Za-z0-9+/]{43,}={0,2}|[0-9a-f]{64,})"#).check(Check::Mixed),
];
