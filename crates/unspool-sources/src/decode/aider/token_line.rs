//! The line that ends a model call: `Tokens: 2.4k sent, 3k cache hit, 98 received. Cost: $0.0086
//! message, $0.02 session.` Its numbers are rounded.

use unspool_model::session::Usage;

/// The tokens of the line.
pub(super) fn usage(line: &str) -> Option<Usage> {
    let counts = line.strip_prefix("Tokens: ")?.split(" Cost:").next()?;
    let count = |name: &str| {
        let mut parts = counts.trim_end_matches('.').split(", ");
        parts.find_map(|part| number(part.strip_suffix(name)?)).unwrap_or(0)
    };
    let (sent, hit, write) = (count(" sent"), count(" cache hit"), count(" cache write"));
    Some(Usage {
        // What was sent includes what the cache had.
        input: sent.saturating_sub(hit).saturating_sub(write),
        output: count(" received"),
        cache_read: hit,
        cache_write: write,
        ..Usage::default()
    })
}

/// What a reply cost. The cost of the session beside it is rounded more.
pub(super) fn message_cost(line: &str) -> Option<f64> {
    let (_, costs) = line.split_once("Cost: ")?;
    costs
        .split(", ")
        .find_map(|cost| cost.split_once(" message")?.0.strip_prefix('$')?.parse().ok())
}

/// `98`, `2.4k`, `1M`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (text.get(..text.len() - 1)?, 1e3),
        'm' | 'M' => (text.get(..text.len() - 1)?, 1e6),
        _ => (text, 1.0),
    };
    let value: f64 = digits.replace(',', "").parse().ok()?;
    Some((value * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_tokens_is_read() {
        let line = "Tokens: 2.4k sent, 98 received. Cost: $0.0086 message, $0.02 session.";
        let expected = Usage { input: 2400, output: 98, ..Usage::default() };
        assert_eq!(usage(line), Some(expected));
        assert_eq!(message_cost(line), Some(0.0086));
        let cached = "Tokens: 12k sent, 1.1k cache write, 3k cache hit, 1,098 received.";
        let usage = usage(cached).unwrap_or_default();
        assert_eq!((usage.input, usage.cache_write, usage.cache_read), (7900, 1100, 3000));
        assert_eq!((usage.output, message_cost(cached)), (1098, None));
        assert_eq!(message_cost("Cost: $0.01 message, $1.50 session."), Some(0.01));
    }
}
