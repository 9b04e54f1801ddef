//! Reading: from what an agent left on disk or sends live to pieces of input for its decoder.

pub mod lines;
