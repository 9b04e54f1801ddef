//! How fast a session uses tokens and money, in words.

use serde::{Deserialize, Serialize};

use super::format;

/// What a session used in the last minutes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BurnRate {
    /// All tokens, those from a cache included.
    pub tokens_per_minute: u64,
    /// Estimated from list prices; None if a model has no price.
    pub usd_per_hour: Option<f64>,
}

impl BurnRate {
    /// `12.3k tokens/min · ~$3.40/h`.
    pub fn text(&self) -> String {
        let tokens = format!("{} tokens/min", format::compact(self.tokens_per_minute));
        match self.usd_per_hour {
            Some(usd) => format!("{tokens} · {}/h", format::cost(usd, true)),
            None => tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_a_price_has_no_dollars() {
        let rate = BurnRate { tokens_per_minute: 12_300, usd_per_hour: Some(3.4) };
        assert_eq!(rate.text(), "12.3k tokens/min · ~$3.40/h");
        assert_eq!(BurnRate { usd_per_hour: None, ..rate }.text(), "12.3k tokens/min");
    }
}
