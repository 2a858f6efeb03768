//! Whether two numbers are equal for every reader.

use super::compare::Answer;
use crate::Decimal;

/// A JSON number: its value, and what a double makes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    exact: Decimal,
    rounded: f64,
}

impl Number {
    /// Reads a JSON number; `None` if its exponent is beyond all counting.
    pub(super) fn read(text: &str) -> Option<Self> {
        Some(Self {
            exact: Decimal::read(text)?,
            rounded: text.parse().ok()?,
        })
    }

    /// Compares the text of a JSON number with this one. Two numbers that only differ for parsers
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
