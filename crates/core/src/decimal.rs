//! Numbers compared by value, in any notation and without rounding to a double.

use smallvec::SmallVec;

/// A JSON number (RFC 8259, section 6) by its value: its digits times ten to its exponent, without
/// a zero at either end. `7`, `7.0` and `70e-1` are equal, and no digit is lost, however many there
/// are.
///
/// Up to 32 digits are kept without an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Decimal {
    /// It is below zero.
    pub(crate) negative: bool,
    /// Its digits in ASCII, the first and the last not zero; none of zero itself.
    pub(crate) digits: SmallVec<[u8; 32]>,
    /// The power of ten its digits are multiplied with.
    pub(crate) exponent: i64,
}

impl Decimal {
    /// Reads the text of a JSON number; `None` if its exponent is too large. The result for a
    /// text that is not a JSON number is unspecified.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0_i64),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: SmallVec<[u8; 32]> = whole
            .bytes()
            .chain(fraction.bytes())
            .skip_while(|digit| *digit == b'0')
            .collect();
        let mut exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent = exponent.checked_add(1)?;
        }
        if digits.is_empty() {
            // zero has no sign and no size
            return Some(Self::default());
        }
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }
}
