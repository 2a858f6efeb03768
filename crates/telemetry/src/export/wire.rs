//! The [wire format] of protocol buffers, as much of it as spans need. A field that has its default is
//! left out, as all writers of version 3 do.
//!
//! [wire format]: https://protobuf.dev/programming-guides/encoding/

use prost::Message;

/// The kinds of values on the wire: what comes after a field's key.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED_32: u32 = 5;

/// Seven bits a byte, the lowest first; all bytes but the last have their highest bit set.
fn varint(mut number: u64) -> impl Iterator<Item = u8> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let low = (number & 0x7f) as u8;
        number >>= 7;
        is_over = number == 0;
        Some(if is_over { low } else { low | 0x80 })
    })
}

fn key(out: &mut Vec<u8>, tag: u32, kind: u32) {
    out.extend(varint(u64::from(tag << 3 | kind)));
}

/// A whole number that is not negative.
pub(super) fn number(out: &mut Vec<u8>, tag: u32, number: u64) {
    if number != 0 {
        key(out, tag, VARINT);
        out.extend(varint(number));
    }
}

pub(super) fn fixed64(out: &mut Vec<u8>, tag: u32, number: u64) {
    if number != 0 {
        key(out, tag, FIXED_64);
        out.extend(number.to_le_bytes());
    }
}

pub(super) fn fixed32(out: &mut Vec<u8>, tag: u32, number: u32) {
    if number != 0 {
        key(out, tag, FIXED_32);
        out.extend(number.to_le_bytes());
    }
}

pub(super) fn bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        key(out, tag, LENGTH);
        out.extend(varint(bytes.len() as u64));
        out.extend_from_slice(bytes);
    }
}

pub(super) fn text(out: &mut Vec<u8>, tag: u32, text: &str) {
    bytes(out, tag, text.as_bytes());
}

pub(super) fn message(out: &mut Vec<u8>, tag: u32, message: &impl Message) {
    key(out, tag, LENGTH);
    out.extend(varint(message.encoded_len() as u64));
    // a vector has room for everything
    let _ = message.encode(out);
}

/// A message, or a text, that `write` writes: it is there even if that is nothing.
pub(super) fn nested(out: &mut Vec<u8>, tag: u32, write: impl FnOnce(&mut Vec<u8>)) {
    key(out, tag, LENGTH);
    let place = out.len();
    out.push(0);
    write(out);
    let length = out.len() - place - 1;
    match (out.get_mut(place), u8::try_from(length)) {
        (Some(byte), Ok(length)) if length < 0x80 => *byte = length,
        // most are short; of others the bytes are moved to make room
        _ => {
            out.splice(place..=place, varint(length as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_bytes_that_the_specification_gives() {
        for (number, bytes) in [
            (0, &[0][..]),
            (1, &[1]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (150, &[0x96, 1]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            assert_eq!(varint(number).collect::<Vec<_>>(), bytes);
        }
    }

    #[test]
    fn what_is_nested_has_its_length_before_it_however_long_it_is() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 3_000_000] {
            let mut out = vec![9];
            nested(&mut out, 2, |out| out.resize(out.len() + length, 7));
            let expected = [9, 0x12].into_iter().chain(varint(length as u64));
            assert!(expected.chain(vec![7; length]).eq(out), "{length}");
        }
    }
}
