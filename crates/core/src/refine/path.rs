//! The place of an argument: a top-level name, or a JSON Pointer.

use std::fmt;

use crate::InvalidValue;

/// The place of an argument: the name of a top-level argument, or, if it begins with `/`, a JSON
/// Pointer (RFC 6901) into the arguments.
///
/// ```
/// use callward_core::refine::ArgumentPath;
///
/// assert_eq!(ArgumentPath::new("action")?, ArgumentPath::new("/action")?);
/// assert_eq!(ArgumentPath::new("/target/0/~1etc")?.tokens(), ["target", "0", "/etc"]);
/// assert!(ArgumentPath::new("/a~2").is_err());
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArgumentPath {
    written: Box<str>,
    tokens: Box<[String]>,
}

impl ArgumentPath {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it is empty, or a pointer with a `~` that is neither `~0` nor `~1`.
    pub fn new(key: &str) -> Result<Self, InvalidValue> {
        let tokens = match key.strip_prefix('/') {
            None if key.is_empty() => {
                return Err(InvalidValue::new(
                    "expected the name of an argument, or a JSON Pointer such as \"/target/kind\", \
                     found an empty key",
                ));
            }
            None => vec![key.to_owned()].into(),
            Some(pointer) => pointer
                .split('/')
                .map(unescape)
                .collect::<Option<Box<[_]>>>()
                .ok_or_else(|| {
                    InvalidValue::new(format!(
                        "{key:?} is not a JSON Pointer: expected `0` (for `~`) or `1` (for `/`) \
                         after a `~`"
                    ))
                })?,
        };
        Ok(Self {
            written: key.into(),
            tokens,
        })
    }

    /// Returns the names on the way from the arguments to the place; there is at least one.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

/// Two spellings of one place are equal.
impl PartialEq for ArgumentPath {
    fn eq(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }
}

impl Eq for ArgumentPath {}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Reads `~0` and `~1`; anything else after a `~` is invalid.
fn unescape(token: &str) -> Option<String> {
    let mut escapes = token.split('~').skip(1);
    let is_valid = escapes.all(|rest| rest.starts_with(['0', '1']));
    is_valid.then(|| token.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_or_pointers_as_rfc_6901_says() {
        for row in "/foo=foo /foo/0=foo,0 /= /a~1b=a/b /m~0n=m~n /~01=~1 /a//b=a,,b \
                    action=action a/b=a/b a~1b=a~1b ~=~ a.b=a.b"
            .split(' ')
        {
            let (key, want) = row.split_once('=').unwrap();
            assert_eq!(
                ArgumentPath::new(key).unwrap().tokens().join(","),
                want,
                "{key}"
            );
        }
        for key in ["", "/~", "/a~", "/a~2b", "/a/~x"] {
            assert!(ArgumentPath::new(key).is_err(), "{key}");
        }
    }
}
