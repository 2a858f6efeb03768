//! Bytes as a server lists them, taken the whole way from JSON to a plan.
#![no_main]

#[path = "../../crates/testkit/tests/fuzz/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::tool_json(bytes);
});
