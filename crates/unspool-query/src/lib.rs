//! What surfaces ask of the archive: lists, windows of a session, sub-agents, search hits, raw
//! records and live updates. This crate reads through a `View` and cannot name the recorder;
//! `request` is how a surface asks for a change.

pub mod activity;
pub mod adaptations;
pub mod artifacts;
pub mod attention;
pub mod blame;
pub mod budget;
pub mod burn_rate;
pub mod changes;
pub mod compare;
pub mod context;
pub mod findings;
pub mod git;
pub mod live;
pub mod params;
pub mod processes;
pub mod prompts;
pub mod raw;
pub mod reader;
pub mod request;
pub mod search;
pub mod seen_commands;
pub mod ship;
pub mod subagents;
pub mod times;
pub mod window;
