//! One test binary for all tests that span several crates, so that they link once.

// Tests fail by panicking, and match only the kinds they test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod activity;
mod agents;
mod api;
mod archive;
mod attach;
mod auth;
mod by_source;
mod case;
mod cli;
mod compat;
mod crate_dependencies;
mod d2;
mod exits;
mod export;
mod feeds;
mod frames_encoder;
mod golden;
mod harness;
mod history;
mod hooks;
mod independent;
mod independent_reader;
#[path = "../../../unspool-core/tests/fold/json_client.rs"]
mod json_client;
mod landmarks;
mod laws;
mod live_growth;
mod machine;
mod order;
mod order_ai_sdk;
mod order_codex;
mod order_copilot;
mod order_gemini;
mod order_opencode;
mod order_rows;
mod order_thoughtflow;
mod packed_goldens;
mod projection_goldens;
mod projections;
mod projections_trace;
mod pty;
mod raw;
mod redaction;
mod remote_reader;
mod requests;
mod roundtrip;
mod schema;
mod screens;
mod snapshots;
mod stats;
mod still_running;
mod sub_agents;
mod surfaces;
mod terminal;
mod test_server;
mod thoughtflow;
mod tidy;
mod watcher;
mod web;
mod windows;
