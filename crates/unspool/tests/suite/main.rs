//! One binary for all tests that need more than one crate, so that they link once.

mod case;
mod direction;
mod independent;
mod independent_reader;
mod order;
mod tellings;
