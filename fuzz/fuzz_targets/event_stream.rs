//! An event stream has the same messages wherever it is cut, and holds no more than its limit.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use callward_mcp::fuzzing::events;

/// The longest event, where one is too long.
const LIMIT: usize = 256;

/// Ends the stream; the bytes after its last one are the lengths of the pieces.
const CUTS: u8 = 0xff;

fuzz_target!(|input: &[u8]| {
    let at = input.iter().rposition(|byte| *byte == CUTS);
    let (stream, cuts) = input.split_at(at.unwrap_or(input.len()));
    let stream = Bytes::copy_from_slice(stream);
    let chosen = cut(&stream, cuts.iter().skip(1).map(|cut| usize::from(*cut)));
    let bytewise = cut(&stream, std::iter::repeat_n(1, stream.len()));

    let enough = stream.len();
    let whole = events(vec![stream.clone()], enough);
    assert_eq!(whole, events(chosen.clone(), enough));
    assert_eq!(whole, events(bytewise.clone(), enough));
    let sum: usize = whole.0.iter().map(Bytes::len).sum();
    assert!(sum <= stream.len());

    for pieces in [chosen, bytewise] {
        let (messages, ..) = events(pieces, LIMIT);
        assert!(messages.iter().all(|message| message.len() <= LIMIT));
        assert!(whole.0.starts_with(&messages));
    }
});

fn cut(stream: &Bytes, lengths: impl Iterator<Item = usize>) -> Vec<Bytes> {
    let mut rest = stream.clone();
    let mut pieces: Vec<_> = lengths
        .map(|length| rest.split_to(length.min(rest.len())))
        .collect();
    pieces.push(rest);
    pieces
}
