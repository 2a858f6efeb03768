//! W3C baggage: what a caller attached to its trace for services downstream.

use std::sync::Arc;

use crate::InvalidValue;

/// Baggage that may be passed on: only a [`BaggageFilter`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baggage(Arc<str>);

impl Baggage {
    /// Returns the value of the header `baggage`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which members of a caller's baggage are passed on to servers.
///
/// Baggage crosses a trust boundary between clients and servers, and does not state its recipient
/// meant. So only the listed members are passed on. By default none is listed.
///
/// [W3C Baggage](https://www.w3.org/TR/baggage/) is read as it says; a member that breaks the
/// format is left out, and so is all of a text of more than 8,192 bytes. At most 64 members are
/// passed on, and at most 4,096 bytes.
///
/// ```
/// use callward_core::BaggageFilter;
///
/// let filter = BaggageFilter::new(["tenant"])?;
/// let passed = filter.pass("user=ada, tenant=acme;tier=gold, debug=1");
/// assert_eq!(passed.unwrap().as_str(), "tenant=acme;tier=gold");
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaggageFilter {
    keys: Arc<[Box<str>]>,
}

impl BaggageFilter {
    /// Takes the keys that pass, exactly as they are written.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] names the first one that no member can have.
    pub fn new<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Result<Self, InvalidValue> {
        let check = |key: K| match key.as_ref() {
            fit if is_key(fit) => Ok(fit.into()),
            unfit => Err(InvalidValue::new(format!(
                "{unfit:?} is not a key of baggage: use ASCII letters, digits and !#$%&'*+-.^_`|~"
            ))),
        };
        let keys: Result<_, _> = keys.into_iter().map(check).collect();
        keys.map(|keys| Self { keys })
    }

    /// Returns the part of a baggage that is passed on, properties included; `None` if it is empty.
    pub fn pass(&self, baggage: &str) -> Option<Baggage> {
        if self.keys.is_empty() || baggage.len() > MAX_READ {
            return None;
        }
        let mut passed = String::new();
        let listed = baggage.split(',').map(|member| member.trim_matches(BLANK));
        for member in listed
            .filter(|member| self.lets_pass(member))
            .take(MAX_MEMBERS)
        {
            let comma = if passed.is_empty() { "" } else { "," };
            if passed.len() + comma.len() + member.len() <= MAX_PASSED {
                passed.push_str(comma);
                passed.push_str(member);
            }
        }
        (!passed.is_empty()).then(|| Baggage(passed.into()))
    }

    fn lets_pass(&self, member: &str) -> bool {
        let mut parts = member.split(';');
        let Some((key, value)) = parts.next().and_then(|member| member.split_once('=')) else {
            return false;
        };
        let key = key.trim_end_matches(BLANK);
        let is_property = |property: &str| match property.split_once('=') {
            Some((key, value)) => is_key(key.trim_matches(BLANK)) && is_value(value),
            None => is_key(property.trim_matches(BLANK)),
        };
        self.keys.iter().any(|own| **own == *key) && is_value(value) && parts.all(is_property)
    }
}

const BLANK: [char; 2] = [' ', '\t'];
/// The longest baggage that is read at all: what the specification says that must be carried.
const MAX_READ: usize = 8192;
/// How much is passed on.
const MAX_PASSED: usize = 4096;
const MAX_MEMBERS: usize = 64;

/// A `token` of HTTP (RFC 9110 section 5.6.2).
fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !key.is_empty() && key.bytes().all(fits)
}

fn is_value(value: &str) -> bool {
    let fits = |byte: u8| matches!(byte, 0x21..=0x7e) && !b"\",;\\".contains(&byte);
    value.trim_matches(BLANK).bytes().all(fits)
}
