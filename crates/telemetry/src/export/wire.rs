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
fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn key(out: &mut Vec<u8>, tag: u32, kind: u32) {
    varint(out, u64::from(tag << 3 | kind));
}

/// The key and the length of what is written next.
#[inline]
pub(super) fn head(out: &mut Vec<u8>, tag: u32, length: usize) {
    let key = u64::from(tag << 3 | LENGTH);
    match (u8::try_from(key), u8::try_from(length)) {
        // nearly always
        (Ok(key @ ..0x80), Ok(length @ ..0x80)) => out.extend_from_slice(&[key, length]),
        _ => {
            varint(out, key);
            varint(out, length as u64);
        }
    }
}

/// How many bytes something of this length takes with a [`head`] whose tag is less than 16.
pub(super) const fn with_head(length: usize) -> usize {
    1 + varint_len(length as u64) + length
}

/// A whole number that is not negative.
pub(super) fn number(out: &mut Vec<u8>, tag: u32, number: u64) {
    if number != 0 {
        key(out, tag, VARINT);
        varint(out, number);
    }
}

pub(super) fn fixed64(out: &mut Vec<u8>, tag: u32, number: u64) {
    if number != 0 {
        key(out, tag, FIXED_64);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

pub(super) fn fixed32(out: &mut Vec<u8>, tag: u32, number: u32) {
    if number != 0 {
        key(out, tag, FIXED_32);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

pub(super) fn bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        head(out, tag, bytes.len());
        out.extend_from_slice(bytes);
    }
}

pub(super) fn text(out: &mut Vec<u8>, tag: u32, text: &str) {
    bytes(out, tag, text.as_bytes());
}

pub(super) fn message(out: &mut Vec<u8>, tag: u32, message: &impl Message) {
    head(out, tag, message.encoded_len());
    // a vector has room for everything
    let _ = message.encode(out);
}

/// How many bytes [`varint`] writes.
const fn varint_len(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// A message that `write` writes: it is there even if that is nothing. Its length is expected to take as
/// many bytes as `expected` does; where it does not, what was written is moved.
pub(super) fn nested(
    out: &mut Vec<u8>,
    tag: u32,
    expected: usize,
    write: impl FnOnce(&mut Vec<u8>),
) {
    key(out, tag, LENGTH);
    let place = out.len();
    let start = place + varint_len(expected as u64);
    out.resize(start, 0);
    write(out);
    let length = (out.len() - start) as u64;
    let taken = varint_len(length);
    if place + taken != start {
        out.splice(place..start, std::iter::repeat_n(0, taken));
    }
    for (number, byte) in out.iter_mut().skip(place).take(taken).enumerate() {
        let goes_on = if number + 1 < taken { 0x80 } else { 0 };
        *byte = (length >> (7 * number)) as u8 & 0x7f | goes_on;
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
            let mut out = Vec::new();
            varint(&mut out, number);
            assert_eq!(out, bytes);
            assert_eq!(varint_len(number), bytes.len());
        }
    }

    #[test]
    fn what_is_nested_has_its_length_before_it_however_long_it_is_and_was_expected_to_be() {
        const LENGTHS: [usize; 7] = [0, 1, 127, 128, 16_383, 16_384, 3_000_000];
        for (length, expected) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (mut out, mut told) = (vec![9], vec![9]);
            nested(&mut out, 2, expected, |out| {
                out.resize(out.len() + length, 7);
            });
            head(&mut told, 2, length);
            told.resize(told.len() + length, 7);
            assert_eq!(told.len(), 1 + with_head(length));
            assert!(out == told, "{length}, expected {expected}");
        }
    }
}
