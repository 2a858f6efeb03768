//! An event stream has the same messages wherever it is cut, and holds no more than its limit.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tollgate_mcp::fuzzing::events;

/// The longest event.
const LIMIT: usize = 4096;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (stream, cuts) = input;
    let stream = Bytes::from(stream);
    let whole = vec![stream.clone()];
    let mut pieces = Vec::new();
    let mut rest = stream.clone();
    for cut in cuts {
        pieces.push(rest.split_to(usize::from(cut).min(rest.len())));
    }
    pieces.push(rest);
    let unlimited = stream.len() + 1;
    let of_whole = events(whole, unlimited);
    assert_eq!(of_whole, events(pieces.clone(), unlimited));
    let (messages, _) = events(pieces, LIMIT);
    assert!(messages.iter().all(|message| message.len() <= LIMIT));
});
