//! Any text is a config or has faults that are told.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(faults) = tollgate_gateway::check_config(text) {
        assert!(faults.contains("fuzz.toml"), "{faults}");
        // the operator reads them
        assert!(
            faults.len() <= 100 * (text.len() + 100),
            "{} bytes",
            faults.len()
        );
    }
});
