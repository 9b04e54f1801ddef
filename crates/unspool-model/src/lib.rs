//! The session model of Unspool: what an AI agent did, in the order in which it happened.
//!
//! This crate is pure: no clock, no randomness, no I/O, no async. Decoders turn a source's
//! records into events, the assembler folds events into changes, and changes build a transcript.
//! `unspool-view` turns a transcript into blocks for painters.

pub mod adaptation;
pub mod agent;
pub mod assemble;
pub mod change;
pub mod context;
pub mod document;
pub mod event;
pub mod history;
pub mod id;
pub mod json;
pub mod landmark;
pub mod legacy;
pub mod live;
pub mod note;
pub mod part;
pub mod price;
pub mod prompt;
pub mod provenance;
pub mod rank;
pub mod session;
pub mod skeleton;
pub mod source;
pub mod summary;
pub mod tool_time;
pub mod tools;
pub mod transcript;
pub mod verdict;
