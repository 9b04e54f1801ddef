//! Rules for keys and tokens with a recognisable format: a vendor prefix and a length. One line
//! each: the keywords preselect, the pattern decides.

use super::rules::{Check, Lookbehind, Precedence};

/// One kind of key.
pub(super) struct Provider {
    pub(super) kind: &'static str,
    /// Keywords that trigger the rule, case-insensitive.
    pub(super) words: &'static [&'static str],
    /// Matched from the keyword, or from the start of the lookbehind. Group 1 is the secret, else
    /// the whole match.
    pub(super) pattern: &'static str,
    pub(super) check: Check,
    /// Length of the public prefix in bytes.
    pub(super) public_prefix: usize,
    pub(super) lookbehind: Lookbehind,
    pub(super) anywhere: bool,
    /// The pattern finds secrets in the rest of the command, not only at the keyword.
    pub(super) every: bool,
    /// Bytes of text passed to the pattern.
    pub(super) window: usize,
    pub(super) precedence: Precedence,
}

/// Longer than any key. A match that reaches this limit is extended to its end.
const MAX_KEY_BYTES: usize = 16 << 10;
/// For secrets on the same line as their keyword.
const CONTEXT_BYTES: usize = 400;

pub(super) const fn by_pattern(
    kind: &'static str,
    words: &'static [&'static str],
    pattern: &'static str,
    public_prefix: usize,
) -> Provider {
    Provider {
        kind,
        words,
        pattern,
        check: Check::None,
        public_prefix,
        lookbehind: Lookbehind::Nothing,
        anywhere: false,
        every: false,
        window: MAX_KEY_BYTES,
        precedence: Precedence::ByPattern,
    }
}

/// A secret recognised by its context instead of its format.
pub(super) const fn by_context(
    kind: &'static str,
    words: &'static [&'static str],
    pattern: &'static str,
) -> Provider {
    let mut provider = by_pattern(kind, words, pattern, 0).anywhere();
    provider.window = CONTEXT_BYTES;
    provider.precedence = Precedence::ByContext;
    provider.check = Check::Chosen;
    provider
}

impl Provider {
    pub(super) const fn check(mut self, check: Check) -> Provider {
        self.check = check;
        self
    }

    /// Every match in the rest of the command is a secret.
    pub(super) const fn every(mut self) -> Provider {
        self.every = true;
        self
    }

    /// Text before the keyword belongs to the secret.
    pub(super) const fn lookbehind(mut self, lookbehind: Lookbehind) -> Provider {
        self.lookbehind = lookbehind;
        self
    }

    /// The keyword may be the end of a longer word.
    pub(super) const fn anywhere(mut self) -> Provider {
        self.anywhere = true;
        self
    }
}

/// If two rules match, the first one wins.
#[rustfmt::skip]
pub(super) const PROVIDERS: &[Provider] = &[
    // Models.
    by_pattern("anthropic-key", &["sk-ant-"], r"sk-ant-[A-Za-z0-9_-]{20,}", 7),
    by_pattern("openrouter-key", &["sk-or-"], r"sk-or-(?:v1-)?[A-Za-z0-9]{32,}", 6),
    by_pattern("openai-key", &["sk-"], r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}", 3),
    by_pattern("openai-key", &["sk-"], r"sk-[A-Za-z0-9_-]{32,}", 3).check(Check::Random),
    by_pattern("api-key", &["sk-"], r"sk-[a-f0-9]{32}\b", 3).check(Check::Mixed),
    by_pattern("huggingface-token", &["hf_", "api_org_"], r"(?:hf|api_org)_[A-Za-z0-9]{30,}", 3),
    by_pattern("replicate-token", &["r8_"], r"r8_[A-Za-z0-9]{30,}", 3),
    by_pattern("groq-key", &["gsk_"], r"gsk_[A-Za-z0-9]{40,}", 4),
    by_pattern("xai-key", &["xai-"], r"xai-[A-Za-z0-9]{40,}", 4),
    by_pattern("perplexity-key", &["pplx-"], r"pplx-[A-Za-z0-9]{40,}", 5),
    by_pattern("cerebras-key", &["csk-"], r"csk-[a-z0-9]{40,}", 4),
    by_pattern("langsmith-key", &["lsv2_"], r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{8,}", 5),
    by_pattern("pinecone-key", &["pcsk_"], r"pcsk_[A-Za-z0-9_]{40,}", 5),
    by_pattern("tavily-key", &["tvly-"], r"tvly-[A-Za-z0-9_-]{20,}", 5).check(Check::Mixed),
    by_pattern("langfuse-key", &["sk-lf-"], r"sk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", 6),
    by_pattern("nvidia-key", &["nvapi-"], r"nvapi-[A-Za-z0-9_-]{60,}", 6),
    by_pattern("fireworks-key", &["fw_"], r"fw_[A-Za-z0-9]{20,40}\b", 3).check(Check::Random),
    by_pattern("firecrawl-key", &["fc-"], r"fc-[0-9a-f]{32}\b", 3).check(Check::Mixed),
    by_pattern("together-key", &["tgp_v1_"], r"tgp_v1_[A-Za-z0-9_-]{30,}", 7),

    // Code and packages.
    by_pattern("github-token", &["ghp_", "gho_", "ghs_", "ghu_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{36,}", 4),
    by_pattern("github-token", &["github_pat_"], r"github_pat_[A-Za-z0-9_]{36,}", 11),
    by_pattern("gitlab-token", &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "gloas-"],
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[A-Za-z0-9_-]{20,}", 6),
    by_pattern("bitbucket-token", &["ATBB"], r"ATBB[A-Za-z0-9]{28,}", 4).check(Check::Random),
    by_pattern("atlassian-token", &["ATATT3", "ATCTT3"], r"AT[AC]TT3[A-Za-z0-9_=-]{50,}", 6),
    by_pattern("npm-token", &["npm_"], r"npm_[A-Za-z0-9]{36,}", 4),
    by_pattern("pypi-token", &["pypi-"], r"pypi-[A-Za-z0-9_-]{50,}", 5),
    by_pattern("crates-io-token", &["cio"], r"cio[A-Za-z0-9]{32}\b", 3).check(Check::Mixed),
    by_pattern("rubygems-key", &["rubygems_"], r"rubygems_[a-f0-9]{48}", 9),
    by_pattern("nuget-key", &["oy2"], r"oy2[a-z0-9]{43}\b", 3).check(Check::Mixed),
    by_pattern("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[A-Za-z0-9_-]{20,}", 9),
    by_pattern("sonar-token", &["sqp_", "squ_", "sqa_"], r"sq[pua]_[a-f0-9]{40}", 4),
    by_pattern("linear-key", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", 8),
    by_pattern("notion-key", &["ntn_"], r"ntn_[A-Za-z0-9]{40,}", 4),
    by_pattern("notion-key", &["secret_"], r"secret_[A-Za-z0-9]{43}\b", 7).check(Check::Mixed),
    by_pattern("figma-token", &["figd_"], r"figd_[A-Za-z0-9_-]{36,}", 5),
    by_pattern("postman-key", &["PMAK-"], r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", 5),
    by_pattern("airtable-token", &["pat"], r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", 3),

    by_pattern("buildkite-token", &["bkua_"], r"bkua_[a-z0-9]{40}\b", 5),
    by_pattern("circleci-token", &["CCIPAT_", "CCIPRJ_"], r"CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}\b", 7),
    by_pattern("contentful-token", &["CFPAT-"], r"CFPAT-[A-Za-z0-9_-]{43}", 6),
    by_pattern("clojars-token", &["CLOJARS_"], r"CLOJARS_[a-z0-9]{60}\b", 8),
    by_pattern("jfrog-token", &["AKCp"], r"AKCp[A-Za-z0-9]{69}\b", 4).check(Check::Mixed),
    by_pattern("jfrog-token", &["cmVmdGtu"], r"cmVmdGtu[A-Za-z0-9]{56}\b", 8).check(Check::Mixed),
    by_pattern("sourcegraph-token", &["sgp_"], r"sgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}\b", 4),
    by_pattern("harness-token", &["pat."], r"pat\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}\b", 4),
    by_pattern("octopus-key", &["API-"], r"API-[A-Z0-9]{26}\b", 4).check(Check::Mixed),
    by_pattern("infracost-key", &["ico-"], r"ico-[A-Za-z0-9]{32}\b", 4).check(Check::Random),
    by_pattern("prefect-key", &["pnu_", "pnb_"], r"pn[ub]_[A-Za-z0-9]{36}\b", 4).check(Check::Mixed),
    by_pattern("readme-key", &["rdme_"], r"rdme_[a-z0-9]{70}\b", 5),
    by_pattern("asana-token", &["1/1", "1/2", "1/3", "1/4", "1/5", "1/6", "1/7", "1/8", "1/9", "2/1"],
        r"[12]/[0-9]{12,19}(?:/[0-9]{12,19})?:[0-9a-f]{32}\b", 0),

    // Clouds.
    by_pattern("aws-secret-key", &["AKIA", "ASIA"],
        r#"A[KS]IA[A-Z0-9]{16}[\s,;|:"']{1,8}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#, 0).check(Check::Random),
    by_pattern("aws-key-id", &["AKIA", "ASIA", "ABIA", "ACCA"], r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}\b", 4),
    by_pattern("aws-bedrock-key", &["ABSK"], r"ABSK[A-Za-z0-9+/]{100,}={0,2}", 4),
    by_pattern("google-key", &["AIza"], r"AIza[A-Za-z0-9_-]{35}", 4),
    by_pattern("google-token", &["ya29."], r"ya29\.[A-Za-z0-9_-]{20,}", 5),
    by_pattern("google-client-secret", &["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_-]{20,}", 7),
    by_pattern("google-refresh-token", &["1//0"], r"1//0[A-Za-z0-9_-]{30,}", 4).check(Check::Random),
    by_pattern("azure-client-secret", &["q~"], r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", 0).lookbehind(Lookbehind::Letters(4)),
    by_pattern("azure-signature", &["sig="], r"sig=([A-Za-z0-9%+/=_-]{40,})", 0),
    by_pattern("django-key", &["django-insecure-"], r#"django-insecure-[^\s"'`\\<]{20,}"#, 16),
    // A signed address of CloudFront.
    by_pattern("signature", &["&signature="], r"&Signature=([A-Za-z0-9~_-]{40,})", 0).anywhere(),
    by_pattern("signature", &["-signature="], r"-[Ss]ignature=([A-Za-z0-9%+/=_-]{40,})", 0).anywhere(),
    by_pattern("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"do[opr]_v1_[a-f0-9]{64}", 7),
    by_pattern("heroku-key", &["HRKU-"], r"HRKU-[A-Za-z0-9_-]{30,}", 5),
    by_pattern("flyio-token", &["fo1_", "fm1_", "fm1a_", "fm1r_", "fm2_"], r"f(?:o1|m1[ar]?|m2)_[A-Za-z0-9+/=_-]{40,}", 3),
    by_pattern("netlify-token", &["nfp_"], r"nfp_[A-Za-z0-9_]{36,}", 4),
    by_pattern("vercel-token", &["vercel_blob_rw_"], r"vercel_blob_rw_[A-Za-z0-9_]{30,}", 15),
    by_pattern("render-key", &["rnd_"], r"rnd_[A-Za-z0-9]{28,}", 4).check(Check::Mixed),
    by_pattern("cloudflare-token", &["cfut_", "cfat_", "cfk_"], r"cf(?:ut|at|k)_[A-Za-z0-9_-]{40,}", 4),
    by_pattern("cloudflare-origin-key", &["v1.0-"], r"v1\.0-[a-f0-9]{24}-[a-f0-9]{140,}", 5),
    by_pattern("terraform-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", 0).lookbehind(Lookbehind::Letters(14)),
    by_pattern("vault-token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,}", 4),
    by_pattern("doppler-token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}", 6),
    by_pattern("pulumi-token", &["pul-"], r"pul-[a-f0-9]{40}", 4),
    by_pattern("cluster-token", &["K10"], r"K10[0-9a-f]{64}::(?:[a-z-]{1,32}:)?[A-Za-z0-9._-]{16,}", 3).check(Check::Mixed),
    by_pattern("tailscale-key", &["tskey-"], r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}", 6),
    by_pattern("age-key", &["AGE-SECRET-KEY-1"], r"(?i:AGE-SECRET-KEY-1[A-Z0-9]{50,})", 16),
    by_pattern("onepassword-token", &["ops_eyJ"], r"ops_eyJ[A-Za-z0-9+/=_-]{50,}", 4),

    by_pattern("openshift-token", &["sha256~"], r"sha256~[A-Za-z0-9_-]{43}", 7),
    by_pattern("alibaba-key-id", &["LTAI"], r"LTAI[A-Za-z0-9]{12,26}\b", 4).check(Check::Random),
    by_pattern("yandex-key", &["AQVN"], r"AQVN[A-Za-z0-9_-]{35,38}", 4).check(Check::Random),
    by_pattern("dynatrace-token", &["dt0"], r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b", 3),
    by_pattern("azure-function-key", &[".azurewebsites.net/"], r"\.azurewebsites\.net/[^\s?]{0,200}\?(?:[^\s&]{1,100}&)*code=([A-Za-z0-9_%/+-]{40,}={0,2})", 0).anywhere(),

    // Data.
    by_pattern("neon-key", &["napi_"], r"napi_[a-z0-9]{40,64}\b", 5).check(Check::Mixed),
    by_pattern("mapbox-token", &["sk.eyJ"], r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}", 6),
    by_pattern("maxmind-key", &["_mmk"], r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b", 0).lookbehind(Lookbehind::Letters(36)),
    by_pattern("adafruit-key", &["aio_"], r"aio_[A-Za-z0-9]{28}\b", 4).check(Check::Mixed),
    by_pattern("dropbox-token", &["sl."], r"sl\.(?:u\.)?[A-Za-z0-9_-]{130,}", 3),
    by_pattern("supabase-key", &["sbp_"], r"sbp_[a-f0-9]{40}", 4),
    by_pattern("supabase-key", &["sb_secret_"], r"sb_secret_[A-Za-z0-9_-]{20,}", 10),
    by_pattern("databricks-token", &["dapi"], r"dapi[a-f0-9]{32}(?:-[0-9])?\b", 4),
    by_pattern("planetscale-token", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}", 7),
    by_pattern("grafana-token", &["glsa_"], r"glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}", 5),
    by_pattern("grafana-token", &["glc_eyJ"], r"glc_eyJ[A-Za-z0-9+/=]{32,}", 4),
    // `{"k":"…","n":"name","id":1}` in base64, the keys of older versions.
    by_pattern("grafana-token", &["eyJrIjoi"], r"eyJrIjoi[A-Za-z0-9+/]{40,}={0,2}", 0),
    by_pattern("newrelic-key", &["NRAK-", "NRJS-", "NRII-"], r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,}", 5),
    by_pattern("sentry-token", &["sntrys_", "sntryu_"], r"sntry[su]_[A-Za-z0-9+/=_-]{40,}", 7),
    by_pattern("posthog-key", &["phx_"], r"phx_[A-Za-z0-9]{40,}", 4),

    // Messages and money.
    by_pattern("slack-token", &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        r"xox[abcdeoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}", 5).check(Check::Mixed),
    by_pattern("slack-token", &["xapp-"], r"xapp-[0-9]-[A-Z0-9]+-[0-9]+-[A-Za-z0-9]{10,}", 5),
    by_pattern("slack-webhook", &["hooks.slack.com/"], r"(?i:hooks\.slack\.com)/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})", 0).check(Check::Mixed),
    by_pattern("discord-webhook", &["/api/webhooks/"], r"/api/webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{40,})", 0).anywhere(),
    by_pattern("teams-webhook", &[".webhook.office.com/"], r"\.webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,})", 0).anywhere(),
    by_pattern("telegram-token", &[":AA"], r"[0-9]{8,11}:AA[A-Za-z0-9_-]{32,35}", 0).lookbehind(Lookbehind::Digits(11)).anywhere(),
    by_pattern("sendgrid-key", &["SG."], r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}", 3),
    by_pattern("mailgun-key", &["key-"], r"key-[0-9a-f]{32}\b", 4).check(Check::Mixed),
    by_pattern("mailchimp-key", &["-us"], r"[0-9a-f]{32}-us[0-9]{1,2}\b", 0).lookbehind(Lookbehind::Letters(32)),
    by_pattern("resend-key", &["re_"], r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", 3).check(Check::Random),
    by_pattern("stripe-key", &["sk_live_", "rk_live_", "sk_test_", "rk_test_"], r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", 8),
    by_pattern("webhook-secret", &["whsec_"], r"whsec_[A-Za-z0-9+/=]{24,}", 6),
    by_pattern("square-token", &["sq0"], r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}", 7),
    by_pattern("square-token", &["EAAA"], r"EAAA[A-Za-z0-9_-]{60}\b", 4).check(Check::Random),
    by_pattern("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", 6),
    by_pattern("brevo-key", &["xkeysib-", "xsmtpsib-"], r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}\b", 8),
    by_pattern("typeform-token", &["tfp_"], r"tfp_[A-Za-z0-9_.=-]{40,}", 4).check(Check::Random),
    by_pattern("facebook-token", &["EAA"], r"EAA[A-Z][A-Za-z0-9]{80,}\b", 4).check(Check::Random),
    by_pattern("plaid-token", &["access-sandbox-", "access-development-", "access-production-"],
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", 7),
    by_pattern("flutterwave-key", &["FLWSECK"], r"FLWSECK(?:_TEST)?-[a-f0-9]{12,32}-X\b", 7),
    by_pattern("shippo-token", &["shippo_"], r"shippo_(?:live|test)_[a-f0-9]{40}\b", 7),
    by_pattern("easypost-key", &["EZAK", "EZTK"], r"EZ[AT]K[A-Za-z0-9]{54}", 4),

    // Generic formats.
    by_pattern("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", 0),
    by_pattern("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*){1}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", 0),

    // Password hashes, which can be searched for the password. `$$` is how Compose files write `$`.
    // `mysql_native_password`.
    by_pattern("password-hash", &["'*", "\"*", "| *", "\t*"], r#"['"|\t] ?(\*[0-9A-F]{40})\b"#, 0).anywhere(),
    by_pattern("password-hash", &["$5$", "$6$"],
        r"\$[56]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}", 0).anywhere(),
    by_pattern("password-hash", &["$1$", "$apr1$"],
        r"\$(?:1|apr1)\${1,2}[./A-Za-z0-9]{1,8}\${1,2}[./A-Za-z0-9]{22}", 0).anywhere(),
    by_pattern("password-hash", &["$2a$", "$2b$", "$2y$"], r"\$2[aby]\${1,2}[0-9]{2}\${1,2}[./A-Za-z0-9]{53}", 0).anywhere(),
    by_pattern("password-hash", &["$y$", "$gy$", "$7$"], r"\$(?:g?y|7)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}", 0).anywhere(),
    by_pattern("password-hash", &["$argon2"], r"\$argon2(?:id|i|d)\$v=[0-9]+\$[mtp=,0-9]{5,40}\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{20,}", 0).anywhere(),
    by_pattern("password-hash", &["{SSHA", "{SHA}", "{PBKDF2"], r"\{(?:S?SHA(?:256|512)?|PBKDF2[A-Z0-9-]*)\}[./A-Za-z0-9+$]{27,}={0,2}", 0).anywhere(),
];
