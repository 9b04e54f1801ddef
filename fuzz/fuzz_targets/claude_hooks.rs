//! Arbitrary bytes as payloads of Claude Code's hooks.
#![no_main]

const FIRST: &str = r#"{"hook_event_name":"SessionStart","session_id":"s"}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| unspool_fuzz::gather(FIRST, data));
