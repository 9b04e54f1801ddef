use jiff::{SignedDuration, Timestamp};

use super::{MAX_SILENCE, is_silent};

#[test]
fn half_an_hour_of_silence_is_the_end() {
    let now = Timestamp::from_second(1_000_000).unwrap();
    assert!(is_silent(None, now), "what has no time cannot be heard");
    assert!(!is_silent(Some(now), now));
    assert!(!is_silent(Some(now - MAX_SILENCE), now));
    assert!(is_silent(Some(now - MAX_SILENCE - SignedDuration::from_secs(1)), now));
    // A clock ahead of ours does not count as silence.
    assert!(!is_silent(Some(now + MAX_SILENCE), now));
}
