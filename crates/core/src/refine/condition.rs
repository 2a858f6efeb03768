//! One condition over one argument.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::InvalidRule;
use super::compare::{Answer, Constant};
use super::read::{Found, string};

/// How large a pattern may grow when it is compiled, in bytes.
const LARGEST_PATTERN: usize = 256 * 1024;

/// The longest text a pattern is tried on, in bytes. Matching takes time in proportion to it, and a
/// client may send as much as it likes.
const LONGEST_TEXT: usize = 16 * 1024;

/// One condition over one argument. See [`Doubt`](super::Doubt) for arguments in doubt.
///
/// Equality is exact, and of JSON: `1` is not `"1"`. Numbers are compared by value: `1`, `1.0` and
/// `1e0` are equal, with any number of digits. Objects are equal if their members are, in any
/// order. The order of members and white space never change a verdict.
///
/// ```
/// use callward_core::refine::Condition;
///
/// assert_eq!(Condition::equals("list").to_string(), r#"= "list""#);
/// assert_eq!(Condition::matches("get_.*")?.to_string(), r#"wholly matches "get_.*""#);
/// assert!(Condition::matches("(").is_err());
/// # Ok::<(), callward_core::refine::InvalidRule>(())
/// ```
#[derive(Debug, Clone)]
pub struct Condition(Test);

#[derive(Debug, Clone)]
enum Test {
    OneOf(Vec<(Value, Constant)>),
    Matches { pattern: Box<str>, regex: Regex },
    Present(bool),
}

impl Condition {
    /// Holds if the argument is this very JSON value.
    pub fn equals(value: impl Into<Value>) -> Self {
        Self(Test::OneOf(vec![constant(value.into())]))
    }

    /// Holds if the argument is one of these JSON values.
    ///
    /// # Errors
    ///
    /// [`InvalidRule::NoChoice`] if there are none.
    pub fn one_of<V: Into<Value>>(
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, InvalidRule> {
        let values: Vec<_> = values
            .into_iter()
            .map(|value| constant(value.into()))
            .collect();
        if values.is_empty() {
            return Err(InvalidRule::NoChoice);
        }
        Ok(Self(Test::OneOf(values)))
    }

    /// Holds if the argument is a string and the pattern fits the whole of it.
    ///
    /// The syntax is that of the crate `regex`: no look-around and no back-references, so that
    /// matching takes time in proportion to the string. Compiled once, here. Of a string of more
    /// than 16 KiB it cannot be said.
    ///
    /// # Errors
    ///
    /// [`InvalidRule::Pattern`] if it is not a pattern, or takes more than 256 KiB when compiled.
    pub fn matches(pattern: &str) -> Result<Self, InvalidRule> {
        let invalid = |error: &regex::Error| InvalidRule::Pattern {
            pattern: pattern.to_owned(),
            reason: why(error),
        };
        // On its own first: `a)|(?:b` is not a pattern, though it would be one between brackets.
        compile(pattern).map_err(|error| invalid(&error))?;
        let regex = compile(&format!(r"\A(?:{pattern})\z")).map_err(|error| invalid(&error))?;
        Ok(Self(Test::Matches {
            pattern: pattern.into(),
            regex,
        }))
    }

    /// Holds if the argument is given. Of a `null` that cannot be said.
    pub const fn present() -> Self {
        Self(Test::Present(true))
    }

    /// Holds if the argument is not given. Of a `null` that cannot be said.
    pub const fn absent() -> Self {
        Self(Test::Present(false))
    }

    pub(super) fn holds(&self, found: Found<'_>) -> Answer {
        match (&self.0, found) {
            (_, Found::Doubtful) => Answer::Unsure,
            (Test::Present(wanted), Found::Absent) => Answer::certain(!wanted),
            (Test::Present(_), Found::Value(value)) if value.get() == "null" => Answer::Unsure,
            (Test::Present(wanted), Found::Value(_)) => Answer::certain(*wanted),
            (Test::Matches { .. }, Found::Absent) => Answer::No,
            (Test::OneOf(values), found) => values
                .iter()
                .map(|(_, constant)| match found {
                    Found::Value(value) => constant.is(value),
                    _ => constant.is_absent(),
                })
                .fold(Answer::No, Answer::or),
            (Test::Matches { regex, .. }, Found::Value(value)) => {
                if !value.get().starts_with('"') {
                    return Answer::No;
                }
                string(value.get())
                    .filter(|text| text.len() <= LONGEST_TEXT)
                    .map_or(Answer::Unsure, |text| {
                        Answer::certain(regex.is_match(&text))
                    })
            }
        }
    }
}

/// Two patterns are equal if they are written alike.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Test::OneOf(one), Test::OneOf(other)) => one
                .iter()
                .map(|(value, _)| value)
                .eq(other.iter().map(|(value, _)| value)),
            (Test::Matches { pattern: one, .. }, Test::Matches { pattern: other, .. }) => {
                one == other
            }
            (Test::Present(one), Test::Present(other)) => one == other,
            _ => false,
        }
    }
}

/// Reads on from the argument's name: `= "list"`, `is 1 or 2`, `wholly matches "get_.*"`,
/// `is present`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Test::OneOf(values) => match &values[..] {
                [(value, _)] => write!(f, "= {value}"),
                values => {
                    f.write_str("is ")?;
                    for (index, (value, _)) in values.iter().enumerate() {
                        let separator = match index {
                            0 => "",
                            _ if index + 1 == values.len() => " or ",
                            _ => ", ",
                        };
                        write!(f, "{separator}{value}")?;
                    }
                    Ok(())
                }
            },
            Test::Matches { pattern, .. } => write!(f, "wholly matches \"{pattern}\""),
            Test::Present(true) => f.write_str("is present"),
            Test::Present(false) => f.write_str("is absent"),
        }
    }
}

fn constant(value: Value) -> (Value, Constant) {
    let constant = Constant::new(&value);
    (value, constant)
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(LARGEST_PATTERN)
        .build()
}

/// The parser draws the place under the pattern; a single line says what is wrong with it.
fn why(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("it takes more than {limit} bytes when compiled; say it in fewer repetitions")
        }
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn holds(condition: &Condition, text: &str) -> Answer {
        let value: &RawValue = serde_json::from_str(text).unwrap();
        condition.holds(Found::Value(value))
    }

    #[test]
    fn a_pattern_fits_the_whole_string() {
        let pattern = Condition::matches("a|ab|c.*").unwrap();
        for (text, want) in [
            (r#""a""#, Answer::Yes),
            (r#""ab""#, Answer::Yes),
            (r#""xa""#, Answer::No),
            (r#""abx""#, Answer::No),
            (r#""cat""#, Answer::Yes),
            (r#""c\nd""#, Answer::No),
            (r#""a\n""#, Answer::No),
            ("1", Answer::No),
            (r#"["a"]"#, Answer::No),
            (r#""\udc00""#, Answer::Unsure),
        ] {
            assert_eq!(holds(&pattern, text), want, "{text}");
        }
        let long = |length| format!("\"{}\"", "c".repeat(length));
        assert_eq!(holds(&pattern, &long(LONGEST_TEXT)), Answer::Yes);
        assert_eq!(holds(&pattern, &long(LONGEST_TEXT + 1)), Answer::Unsure);
        let lines = Condition::matches("(?m)^a$").unwrap();
        assert_eq!(holds(&lines, r#""a\nb""#), Answer::No);
    }

    #[test]
    fn a_pattern_cannot_break_out_of_its_anchors() {
        for (pattern, reason) in [
            ("a)|(?:b", "unopened"),
            ("(", "unclosed"),
            ("(?x)a # b", "unclosed"),
            ("(?=a)", "look-around"),
            (r"\w{5000}", "bytes"),
        ] {
            let Err(InvalidRule::Pattern { reason: said, .. }) = Condition::matches(pattern) else {
                panic!("{pattern}");
            };
            assert!(said.contains(reason), "{pattern}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_null_is_neither_present_nor_absent() {
        for (condition, given, missing) in [
            (Condition::present(), Answer::Yes, Answer::No),
            (Condition::absent(), Answer::No, Answer::Yes),
        ] {
            assert_eq!(holds(&condition, "0"), given);
            assert_eq!(condition.holds(Found::Absent), missing);
            assert_eq!(holds(&condition, "null"), Answer::Unsure);
        }
    }

    #[test]
    fn one_choice_is_enough() {
        let condition = Condition::one_of([Value::from(1), Value::from("x")]).unwrap();
        for (text, want) in [
            ("1", Answer::Yes),
            (r#""x""#, Answer::Yes),
            ("2", Answer::No),
            ("null", Answer::No),
        ] {
            assert_eq!(holds(&condition, text), want, "{text}");
        }
        assert_eq!(condition.to_string(), "is 1 or \"x\"");
        assert_eq!(
            Condition::one_of(Vec::<Value>::new()),
            Err(InvalidRule::NoChoice)
        );
    }
}
