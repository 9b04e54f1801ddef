//! One test binary for all tests that span several crates, so that they link once.

// Tests fail by panicking, and match only the kinds they test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod activity;
mod agents;
mod api;
mod asking;
mod attaching;
mod auth;
mod case;
mod cli;
mod compat;
mod d2;
mod direction;
mod exporting;
mod families;
mod frames_encoder;
mod golden;
mod growing;
mod home;
mod hooking;
mod independent;
mod independent_reader;
mod laws;
mod machine;
mod order;
mod order_ai_sdk;
mod order_codex;
mod order_copilot;
mod order_gemini;
mod order_opencode;
mod order_rows;
mod order_thoughtflow;
mod projected;
mod projections;
mod projections_trace;
mod pty;
mod raw;
mod reading;
mod redacting;
mod returning;
mod schema;
mod screens;
mod served;
mod snapshots;
mod stats;
mod stored;
mod surfaces;
mod tellings;
mod terminal;
mod thoughtflow;
mod watching;
mod web;
mod windows;
