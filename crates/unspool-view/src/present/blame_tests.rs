//! Tests of finding the edit that wrote a line.
