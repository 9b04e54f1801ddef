//! Arbitrary bytes as lines of Claude Code's log.
#![no_main]

const FIRST_LINE: &str =
    r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| unspool_fuzz::decode_capture(FIRST_LINE, data));
