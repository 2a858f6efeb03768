//! A message that is read says what the text says, and is written and read again unchanged.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use callward_mcp::wire::Message;

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::copy_from_slice(bytes);
    match Message::parse(&bytes) {
        Ok(message) => {
            let written = Bytes::from(message.to_bytes());
            // optional members are written empty, and `\b` in six characters
            assert!(written.len() <= 3 * bytes.len() + 64);
            let again = Message::parse(&written).expect("what was written can be read");
            assert_eq!(again, message);
            // serde_json's trees have bounds in depth and numbers that messages do not have
            if let Ok(read) = serde_json::from_slice::<Value>(&bytes) {
                let written = serde_json::from_slice::<Value>(&written).expect("it is JSON, too");
                let paths: &[&str] = match message {
                    Message::Response { .. } => &["/result", "/error/code", "/error/data"],
                    // others have neither, whatever else they state
                    _ => &["/method", "/params"],
                };
                for path in paths {
                    assert_eq!(stated(&written, path), stated(&read, path), "{path}");
                }
            }
        }
        Err(error) => {
            let refused = error.to_rpc_error();
            assert!(!refused.message.is_empty());
            assert!(refused.message.len() <= 8 * bytes.len() + 256);
        }
    }
});

fn stated<'a>(message: &'a Value, path: &str) -> Option<&'a Value> {
    message.pointer(path).filter(|value| !value.is_null())
}
