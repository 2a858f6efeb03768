//! Numbers by their value, not by their spelling and not by what a double makes of them.

use super::compare::Answer;

/// A JSON number: `digits` times ten to the `exponent`, without a zero at either end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    exact: Decimal,
    rounded: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Number {
    /// Reads a JSON number; `None` if its exponent is beyond all counting.
    pub(super) fn read(text: &str) -> Option<Self> {
        Some(Self {
            exact: Decimal::read(text)?,
            rounded: text.parse().ok()?,
        })
    }

    /// Says whether the text of a JSON number is this one. Two that are told apart only by parsers
    /// that do not round to a double are in doubt.
    pub(super) fn is(&self, text: &str) -> Answer {
        match Self::read(text) {
            None => Answer::Unsure,
            Some(other) if other.exact == self.exact => Answer::Yes,
            Some(other) if other.rounded == self.rounded => Answer::Unsure,
            Some(_) => Answer::No,
        }
    }
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0_i64),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole
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
            return Some(Self {
                negative: false,
                digits,
                exponent: 0,
            });
        }
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(left: &str, right: &str) -> Answer {
        Number::read(left).unwrap().is(right)
    }

    #[test]
    fn a_value_has_many_spellings() {
        for spellings in [
            &["1", "1.0", "1e0", "10e-1", "0.1E1", "1.000", "1e+0"][..],
            &["0", "-0", "0.0", "0e9", "-0.0e-9"],
            &["-1200", "-12e2", "-1.2E+3", "-0.0012e6"],
            &["12345678901234567890123", "1.2345678901234567890123e22"],
        ] {
            for left in spellings {
                for right in spellings {
                    assert_eq!(compare(left, right), Answer::Yes, "{left} {right}");
                }
            }
        }
    }

    #[test]
    fn different_values_differ() {
        for (left, right) in [("1", "-1"), ("1", "10"), ("1", "1.5"), ("0", "1e-9")] {
            assert_eq!(compare(left, right), Answer::No, "{left} {right}");
        }
    }

    #[test]
    fn values_that_meet_in_a_double_are_in_doubt() {
        assert_eq!(
            compare("9007199254740992", "9007199254740993"),
            Answer::Unsure
        );
        assert_eq!(compare("1", "1.00000000000000000000001"), Answer::Unsure);
        assert_eq!(compare("1", "1e99999999999999999999"), Answer::Unsure);
        // it vanishes, but for those who count exactly
        assert_eq!(compare("0", "-1e-999"), Answer::Unsure);
    }
}
