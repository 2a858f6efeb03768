//! Bytes as a server lists them, taken the whole way from JSON to a plan.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    callward_testkit::fuzz::tool_json(bytes);
});
