//! A message that is read is written and read again unchanged.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tollgate_mcp::wire::Message;

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::copy_from_slice(bytes);
    match Message::parse(&bytes) {
        Ok(message) => {
            let written = Bytes::from(message.to_bytes());
            let again = Message::parse(&written).expect("what was written can be read");
            assert_eq!(again.to_bytes(), written);
        }
        Err(error) => {
            let refused = error.to_rpc_error();
            assert!(!refused.message.is_empty());
        }
    }
});
