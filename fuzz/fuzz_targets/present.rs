//! Arbitrary text through the presenter.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| unspool_fuzz::present(data));
