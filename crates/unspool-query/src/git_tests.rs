//! Tests of what git writes.
