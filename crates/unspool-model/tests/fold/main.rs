//! The fold, tested by requirement: scripts of events go through the assembler, its changes through
//! the transcript builder, and the transcript is compared as a short table of strings. Each test
//! cites the requirements it covers; `laws` checks the laws as properties.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod bookkeeping;
#[cfg(test)]
mod deferred_ends;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod feeds;
#[cfg(test)]
mod generators;
#[cfg(test)]
mod idempotence;
#[cfg(test)]
mod json_client;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod membership;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod order;
#[cfg(test)]
mod prose;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod script;
mod sources;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tools;
