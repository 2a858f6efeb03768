//! What came back from a call, as 20 bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The SHA-1 of a result. It tells results apart, and protects nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResultDigest([u8; 20]);

/// A text that is no SHA-1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidDigest(String);

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no SHA-1: expected 40 hexadecimal digits",
            self.0
        )
    }
}

impl std::error::Error for InvalidDigest {}

impl ResultDigest {
    /// Takes the 20 bytes of a digest.
    #[must_use]
    pub const fn new(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }
}

impl FromStr for ResultDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let mut bytes = [0; 20];
        let mut digits = text.chars().map(|c| c.to_digit(16));
        for byte in &mut bytes {
            let pair = (digits.next().flatten(), digits.next().flatten());
            let (Some(high), Some(low)) = pair else {
                return Err(InvalidDigest(text.to_owned()));
            };
            *byte = u8::try_from(high << 4 | low).unwrap_or_default();
        }
        match digits.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(InvalidDigest(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ResultDigest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl From<ResultDigest> for String {
    fn from(digest: ResultDigest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for ResultDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_digits_come_back_as_they_went_in_and_others_are_refused() {
        let text = "8576f678f5289c25f896b8be862f7688e72c8878";
        let digest: ResultDigest = text.parse().unwrap();
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.to_uppercase().parse(), Ok(digest));
        for wrong in [
            "",
            "8576",
            &text.replace('8', "g"),
            &format!("{text}0"),
            &"é".repeat(20),
        ] {
            assert!(wrong.parse::<ResultDigest>().is_err(), "{wrong}");
        }
    }
}
