//! Arbitrary bytes as lines of Claude Code's stream-json.
#![no_main]

const FIRST_LINE: &str = r#"{"type":"system","subtype":"init","session_id":"s","uuid":"u"}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| unspool_fuzz::decode_capture(FIRST_LINE, data));
