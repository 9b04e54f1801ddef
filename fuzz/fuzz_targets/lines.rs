//! Arbitrary bytes, in arbitrary chunks, through the line reader.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| unspool_fuzz::lines(data));
