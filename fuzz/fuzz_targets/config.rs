//! Any text is a config or has faults that are reported; however a config is written, it is one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match callward_gateway::check_config(text) {
        Ok(()) => {
            let table: toml::Table = toml::from_str(text).expect("it was read");
            let printed = toml::to_string(&table).expect("what was read can be printed");
            if let Err(faults) = callward_gateway::check_config(&printed) {
                panic!("{faults}\n{printed}");
            }
        }
        Err(faults) => {
            assert!(faults.contains("fuzz.toml"), "{faults}");
            // the operator reads them
            assert!(
                faults.len() <= 100 * (text.len() + 100),
                "{} bytes",
                faults.len()
            );
        }
    }
});
