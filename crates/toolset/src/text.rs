//! The texts of toolsets: agents write them, and other agents read them.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use callward_core::is_invisible;
use serde::{Deserialize, Serialize};

/// Why a text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidText {
    /// It is not a name.
    #[error(
        "{0:?} is not a valid name: expected 1 to {max} lower-case letters, digits and hyphens",
        max = Name::MAX
    )]
    Name(String),
    /// It is empty or too long.
    #[error("the text has {0} characters: expected 1 to {max}", max = Line::MAX)]
    Length(usize),
    /// It has a character that is not shown, or ends the line.
    #[error("the text has the character {0:?}: expected one line without invisible characters")]
    Character(char),
}

macro_rules! text {
    ($(#[$doc:meta])* $type:ident, at most $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $type(String);

        impl $type {
            /// The most characters of one.
            pub const MAX: usize = $max;

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, InvalidText> {
                Self::check(&text).map(|()| Self(text))
            }
        }

        impl FromStr for $type {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, InvalidText> {
                text.to_owned().try_into()
            }
        }
    };
}

text! {
    /// The name of a toolset or of a note: lower-case letters, digits and hyphens.
    Name, at most 64
}

text! {
    /// One line of text that is shown as it is: a line break in a note would begin what looks like
    /// another note, or like the server's own words.
    Line, at most 500
}

impl Name {
    fn check(text: &str) -> Result<(), InvalidText> {
        let fits = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        match (1..=Self::MAX).contains(&text.len()) && text.bytes().all(fits) {
            true => Ok(()),
            false => Err(InvalidText::Name(text.chars().take(Self::MAX).collect())),
        }
    }
}

impl Line {
    fn check(text: &str) -> Result<(), InvalidText> {
        let length = text.chars().count();
        if !(1..=Self::MAX).contains(&length) {
            return Err(InvalidText::Length(length));
        }
        let found = text.chars().find(|c| is_invisible(*c));
        found.map_or(Ok(()), |found| Err(InvalidText::Character(found)))
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lines_are_bounded_and_plain() {
        for (name, valid) in [
            ("usage-with-project", true),
            ("0", true),
            ("", false),
            ("Usage", false),
            ("a_b", false),
            ("é", false),
            (&"a".repeat(Name::MAX), true),
            (&"a".repeat(Name::MAX + 1), false),
        ] {
            assert_eq!(name.parse::<Name>().is_ok(), valid, "{name}");
        }
        for (line, valid) in [
            ("→ “quoted” `code` **bold**", true),
            ("", false),
            ("two\nlines", false),
            ("\u{1b}[31m", false),
            ("a\u{2028}b", false),
            ("\u{202e}b", false),
            (&"é".repeat(Line::MAX), true),
            (&"a".repeat(Line::MAX + 1), false),
        ] {
            assert_eq!(line.parse::<Line>().is_ok(), valid, "{line:?}");
        }
    }
}
