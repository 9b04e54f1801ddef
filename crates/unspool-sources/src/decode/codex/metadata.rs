//! Token usage and failures, which all Codex sources write in the same form.

use unspool_model::part::Failure;
use unspool_model::session::Usage;

use super::super::Fields;

/// Tokens of one response. Codex counts cached tokens as input; `Usage` keeps them apart.
pub(super) fn usage(value: &Fields<'_>) -> Usage {
    let count = |name: &str| value.number(name).unwrap_or(0);
    let (read, write) = (count("cached_input_tokens"), count("cache_write_input_tokens"));
    Usage {
        input: count("input_tokens").saturating_sub(read).saturating_sub(write),
        output: count("output_tokens"),
        cache_read: read,
        cache_write: write,
        reasoning: count("reasoning_output_tokens"),
        ..Usage::default()
    }
}

/// An error. `codex_error_info` is a string, or an object with one key and details under it.
pub(super) fn failure(error: &Fields<'_>) -> Failure {
    let value = |names: [&'static str; 2]| names.into_iter().find(|name| error.has(name));
    let field = value(["codex_error_info", "codexErrorInfo"]).unwrap_or("codex_error_info");
    let kind = error.fields(field);
    let named = kind.names().next();
    let code = error.string(field).or_else(|| named.clone().map(Into::into));
    let code = code.map(|code| snake_case(&code));
    let detail = kind.fields(named.as_deref().unwrap_or_default());
    let status = detail.number("http_status_code").or_else(|| detail.number("httpStatusCode"));
    Failure { code, status, text: error.string("message").unwrap_or_default() }
}

/// The server writes `usageLimitExceeded` where the rollout has `usage_limit_exceeded`.
fn snake_case(word: &str) -> String {
    let mut value = String::with_capacity(word.len() + 4);
    for letter in word.chars() {
        if letter.is_ascii_uppercase() && !value.is_empty() {
            value.push('_');
        }
        value.push(letter.to_ascii_lowercase());
    }
    value
}
