//! How fast a live session uses tokens: its model calls of the last ten minutes.

use jiff::{SignedDuration, Timestamp};
use unspool_model::price::Prices;
use unspool_model::session::SessionState;
use unspool_store::store::{StoreError, StoredSession, View};
use unspool_view::present::burn_rate::BurnRate;

const PERIOD: SignedDuration = SignedDuration::from_mins(10);
/// A rate over less than this would be a guess.
const MIN_MINUTES: f64 = 1.0;

/// The rate of a live session without its sub-agents; None for others, and before a minute has
/// passed.
pub async fn burn_rate<V: View>(
    view: &V,
    stored: &StoredSession,
    prices: &Prices,
    now: Timestamp,
) -> Result<Option<BurnRate>, StoreError> {
    let summary = &stored.summary;
    if summary.session.state != SessionState::Live {
        return Ok(None);
    }
    let since = now.checked_sub(PERIOD).unwrap_or(now);
    let began = summary.started.map_or(since, |started| started.max(since));
    let minutes = now.duration_since(began).as_secs_f64() / 60.0;
    if minutes < MIN_MINUTES {
        return Ok(None);
    }
    let used = view.recent_usage(stored.row, began.as_millisecond()).await?;
    let tokens: u64 = used.iter().map(|(_, usage)| usage.total()).sum();
    if tokens == 0 {
        return Ok(None);
    }
    let dollars = used.iter().map(|(model, usage)| Some(prices.of(model.as_deref()?)?.of(usage)));
    let dollars: Option<f64> = dollars.sum();
    Ok(Some(BurnRate {
        tokens_per_minute: (tokens as f64 / minutes).round() as u64,
        usd_per_hour: dollars.map(|dollars| dollars / minutes * 60.0),
    }))
}
