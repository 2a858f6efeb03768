//! The weight of a server: its share of calls, and whether it may take destructive ones.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::InvalidValue;

/// A server's weight, 0 to 100: its share of its replica set's calls, and from
/// [`PRIMARY`](Self::PRIMARY) on permission to take destructive ones.
///
/// The default weight is 50, so such a server is a primary: a set of servers without weights shares
/// calls evenly and can do everything. Weight 0 is a standby: it gets a call only where no other
/// server can.
///
/// ```
/// use callward_core::Weight;
///
/// assert_eq!(Weight::default(), Weight::PRIMARY);
/// assert!(Weight::new(20)? < Weight::PRIMARY);
/// assert_eq!("80".parse::<Weight>()?.get(), 80);
///
/// let fault = Weight::new(101).unwrap_err();
/// assert_eq!(fault.to_string(), "101 is not a weight: expected a whole number from 0 to 100");
/// # Ok::<_, callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Weight(u8);

impl Weight {
    /// The default: the least weight of a primary, by the profiles that exist, of a server that
    /// takes destructive calls.
    pub const PRIMARY: Self = Self(50);

    /// The greatest.
    const MAX: Self = Self(100);

    /// Checks and takes a weight.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it is above 100.
    pub fn new(weight: u32) -> Result<Self, InvalidValue> {
        match u8::try_from(weight) {
            Ok(small) if small <= Self::MAX.0 => Ok(Self(small)),
            _ => Err(invalid(&weight)),
        }
    }

    /// Returns the weight as a number, 0 to 100.
    pub const fn get(self) -> u32 {
        self.0 as u32
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::PRIMARY
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Weight {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let weight = text.parse().map_err(|_| invalid(&text))?;
        Self::new(weight)
    }
}

impl TryFrom<u32> for Weight {
    type Error = InvalidValue;

    fn try_from(weight: u32) -> Result<Self, Self::Error> {
        Self::new(weight)
    }
}

impl From<Weight> for u32 {
    fn from(weight: Weight) -> Self {
        weight.get()
    }
}

fn invalid(weight: &dyn fmt::Display) -> InvalidValue {
    InvalidValue::new(format!(
        "{weight} is not a weight: expected a whole number from 0 to {}",
        Weight::MAX
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_end_at_a_hundred_however_they_are_given() {
        assert_eq!(Weight::new(0), Ok(Weight(0)));
        assert_eq!(Weight::new(100), Ok(Weight::MAX));
        for beyond in [101, 256, 306, u32::MAX] {
            let fault = Weight::new(beyond).unwrap_err().to_string();
            let expected = format!("{beyond} is not a weight");
            assert!(fault.starts_with(&expected), "{fault}");
            assert!(serde_json::from_str::<Weight>(&beyond.to_string()).is_err());
        }
        let weight: Weight = serde_json::from_str("80").unwrap();
        assert_eq!(serde_json::to_string(&weight).unwrap(), "80");
        for text in ["101", "-1", "2.5", "", "half"] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
    }
}
