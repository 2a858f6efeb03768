//! The key by which a server recognizes two requests as one intended call.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::InvalidValue;

/// The key of one intended call: a server that receives it twice can run it once.
///
/// There is one key for each intended call, the same for all its attempts. It is never derived from
/// the arguments: a client that sends an equal call twice may intend both.
///
/// A generated key is a number until its text is read, so that calls to servers without support for
/// keys pay only for a counter. The text has the form of a random UUID. It is a hash of the number
/// under a secret that each process draws from the system, so no two processes share keys, and a
/// key does not reveal another.
///
/// Two keys are equal if their texts are.
///
/// ```
/// use callward_core::IdempotencyKey;
///
/// let (one, other) = (IdempotencyKey::unique(), IdempotencyKey::unique());
/// assert_ne!(one, other);
/// assert_eq!(one.to_string().len(), 36);
///
/// let given: IdempotencyKey = "order-4711-payment".parse()?;
/// assert_eq!(given.to_string(), "order-4711-payment");
/// # Ok::<_, callward_core::InvalidValue>(())
/// ```
#[derive(Clone)]
pub struct IdempotencyKey(Repr);

#[derive(Clone)]
enum Repr {
    /// Two pointers deep, so that a key is small if it is absent or generated.
    Given(Arc<Box<str>>),
    Made(MadeKey),
}

/// The number of a key of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeKey(NonZeroU64);

impl MadeKey {
    /// Makes a number that no other call of this process has.
    pub(crate) fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MAX))
    }
}

impl From<MadeKey> for IdempotencyKey {
    fn from(key: MadeKey) -> Self {
        Self(Repr::Made(key))
    }
}

impl IdempotencyKey {
    /// The longest text a key may have, in bytes. Servers that take keys take at least this.
    pub(crate) const MAX_LEN: usize = 64;

    /// Generates a key that no other call has, in any process.
    pub fn unique() -> Self {
        MadeKey::unique().into()
    }

    /// Takes a caller's own key.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] unless it is 1 to 64 visible ASCII characters: it must fit into
    /// a header as it is.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidValue> {
        let text = text.as_ref();
        let fault = if text.is_empty() {
            "is empty".to_owned()
        } else if let Some(place) = text.bytes().position(|byte| !byte.is_ascii_graphic()) {
            format!("has something other than visible ASCII at byte {place}")
        } else if text.len() > Self::MAX_LEN {
            format!("is {} bytes long", text.len())
        } else {
            return Ok(Self(Repr::Given(Arc::new(text.into()))));
        };
        let most = Self::MAX_LEN;
        Err(InvalidValue::new(format!(
            "the idempotency key {fault}; give 1 to {most} visible ASCII characters"
        )))
    }

    fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Given(text) => (&***text).into(),
            Repr::Made(number) => spell(hash(number.0.get())).into(),
        }
    }
}

/// Hashes the number of a key under the secret of this process.
fn hash(number: u64) -> u128 {
    static SECRET: LazyLock<SipHasher24> = LazyLock::new(|| {
        // std seeds each state from the system's random source
        let word = || RandomState::new().hash_one(0_u8);
        SipHasher24::new_with_keys(word(), word())
    });
    let mut hasher = *SECRET;
    hasher.write_u64(number);
    hasher.finish128().into()
}

/// Writes 128 bits in the form of a random UUID, which uses six of them for its version and
/// variant.
fn spell(bits: u128) -> String {
    let version = bits & !(0xF << 76) | 0x4 << 76;
    let mut text = format!("{:032x}", version & !(0x3 << 62) | 0x2 << 62);
    for place in [20, 16, 12, 8] {
        text.insert(place, '-');
    }
    text
}

impl std::str::FromStr for IdempotencyKey {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::new(text)
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({self})")
    }
}

impl PartialEq for IdempotencyKey {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for IdempotencyKey {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn no_two_keys_are_alike_whichever_thread_makes_them() {
        let all = Mutex::new(HashSet::new());
        let make = || {
            for _ in 0..2000 {
                let text = IdempotencyKey::unique().to_string();
                assert!(all.lock().unwrap().insert(text));
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(make))));
        assert_eq!(all.into_inner().unwrap().len(), 8000);
        // as random UUIDs
        for (bits, text) in [
            (0, "00000000-0000-4000-8000-000000000000"),
            (u128::MAX, "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (
                0x0123_4567_89ab_cdef_fedc_ba98_7654_3210,
                "01234567-89ab-4def-bedc-ba9876543210",
            ),
        ] {
            assert_eq!(spell(bits), text);
        }
    }

    #[test]
    fn a_key_that_does_not_fit_into_a_header_is_refused_with_the_reason() {
        let long = "k".repeat(65);
        for (text, reason) in [
            ("", "is empty"),
            ("a b", "at byte 1"),
            ("a\r\nX-Evil: 1", "at byte 1"),
            ("schlüssel", "at byte 4"),
            (&long, "65 bytes"),
        ] {
            let fault = IdempotencyKey::new(text).unwrap_err().to_string();
            assert!(fault.contains(reason) && fault.contains("64"), "{fault}");
        }
        assert!(IdempotencyKey::new("k".repeat(64)).is_ok());
        let made = IdempotencyKey::unique();
        assert_eq!(IdempotencyKey::new(made.to_string()), Ok(made));
    }
}
