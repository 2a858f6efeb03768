//! Repeats a failed call when that is certainly safe.
