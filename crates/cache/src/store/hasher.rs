//! Keys are hashes already.

use std::hash::Hasher;

/// Takes the key as its own hash: it is one, and a keyed one.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of a uniform hash is a uniform hash"
    )]
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}
