//! Arbitrary bytes as payloads of Claude Code's hooks.
#![no_main]

const FIRST_LINE: &str = r#"{"hook_event_name":"SessionStart","session_id":"s"}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| unspool_fuzz::decode_capture(FIRST_LINE, data));
