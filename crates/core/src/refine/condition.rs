//! One condition over one argument.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use serde_json::value::RawValue;

use super::compare::{Answer, is, is_absent};
use super::read::{Found, elements, string};
use crate::InvalidValue;

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
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Test);

#[derive(Debug, Clone, PartialEq)]
enum Test {
    OneOf(Vec<Value>),
    Matches(Pattern),
    Present(bool),
}

#[derive(Debug, Clone)]
struct Pattern {
    written: Box<str>,
    regex: Regex,
}

/// Two patterns are equal if they are written alike.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Condition {
    /// Holds if the argument is this very JSON value.
    pub fn equals(value: impl Into<Value>) -> Self {
        Self(Test::OneOf(vec![value.into()]))
    }

    /// Holds if the argument is one of these JSON values.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if there are none.
    pub fn one_of<V: Into<Value>>(
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, InvalidValue> {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        if values.is_empty() {
            let message = "expected at least one value, found none: it would never hold";
            return Err(InvalidValue::new(message));
        }
        Ok(Self(Test::OneOf(values)))
    }

    /// Holds if the argument is a string and the pattern fits the whole of it. An array is in doubt
    /// if the pattern fits one of its strings.
    ///
    /// The syntax is that of the crate `regex`: no look-around and no back-references, so that
    /// matching takes time in proportion to the string. Compiled once, here. A string of more than
    /// 16 KiB is in doubt.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it is not a pattern, or takes more than 256 KiB when compiled.
    pub fn matches(pattern: &str) -> Result<Self, InvalidValue> {
        // On its own first: `a)|(?:b` is not a pattern, though it would be one between brackets.
        let regex = compile(pattern).and_then(|_| compile(&format!(r"\A(?:{pattern})\z")));
        let regex = regex.map_err(|error| {
            let reason = why(&error);
            InvalidValue::new(format!(
                "{pattern:?} is not a pattern that can be used: {reason}"
            ))
        })?;
        let written = pattern.into();
        Ok(Self(Test::Matches(Pattern { written, regex })))
    }

    /// Holds if the argument is given. A `null` is in doubt.
    pub const fn present() -> Self {
        Self(Test::Present(true))
    }

    /// Holds if the argument is not given. A `null` is in doubt.
    pub const fn absent() -> Self {
        Self(Test::Present(false))
    }

    pub(super) fn holds(&self, found: Found<'_>) -> Answer {
        match (&self.0, found) {
            (_, Found::Doubtful) => Answer::Unsure,
            (Test::Present(wanted), Found::Absent) => Answer::certain(!wanted),
            (Test::Present(_), Found::Value(value)) if value.get() == "null" => Answer::Unsure,
            (Test::Present(wanted), Found::Value(_)) => Answer::certain(*wanted),
            (Test::Matches(_), Found::Absent) => Answer::No,
            (Test::OneOf(values), found) => values
                .iter()
                .map(|wanted| match found {
                    Found::Value(value) => is(wanted, value),
                    _ => is_absent(wanted),
                })
                .fold(Answer::No, Ord::max),
            (Test::Matches(Pattern { regex, .. }), Found::Value(value)) => {
                matches(regex, value.get())
            }
        }
    }
}

fn matches(regex: &Regex, value: &str) -> Answer {
    if value.starts_with('[') {
        return elements(value).map_or(Answer::Unsure, |all| matches_within(regex, &all));
    }
    if !value.starts_with('"') {
        return Answer::No;
    }
    let Some(text) = string(value).filter(|text| text.len() <= LONGEST_TEXT) else {
        return Answer::Unsure;
    };
    let answer = Answer::certain(regex.is_match(&text));
    // some servers unpack an array from a string
    match elements(&text).map(|all| matches_within(regex, &all)) {
        Some(unpacked) if unpacked != answer => Answer::Unsure,
        _ => answer,
    }
}

/// Matches the strings of an array: some servers take several values where they take one.
fn matches_within(regex: &Regex, elements: &[&RawValue]) -> Answer {
    let may_match = |element: &&RawValue| match element.get().as_bytes().first() {
        Some(b'"') => string(element.get()).is_none_or(|text| {
            text.len() > LONGEST_TEXT || text.trim_start().starts_with('[') || regex.is_match(&text)
        }),
        Some(b'[') => true,
        _ => false,
    };
    match elements.iter().any(may_match) {
        true => Answer::Unsure,
        false => Answer::No,
    }
}

/// Continues after the argument's name: `= "list"`, `is 1 or 2`, `wholly matches "get_.*"`, `is
/// present`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Test::OneOf(values) => {
                let values: Vec<_> = values.iter().map(Value::to_string).collect();
                match values.split_last() {
                    Some((last, [])) => write!(f, "= {last}"),
                    Some((last, others)) => write!(f, "is {} or {last}", others.join(", ")),
                    None => Ok(()),
                }
            }
            Test::Matches(pattern) => write!(f, "wholly matches \"{}\"", pattern.written),
            Test::Present(true) => f.write_str("is present"),
            Test::Present(false) => f.write_str("is absent"),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        // a line end in an argument must not end the match
        .dot_matches_new_line(true)
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
    use super::*;

    fn holds(condition: &Condition, text: &str) -> Answer {
        let value: &RawValue = serde_json::from_str(text).unwrap();
        condition.holds(Found::Value(value))
    }

    #[test]
    fn each_condition_holds_as_its_row_says() {
        const HALF: &str = r#""\udc00""#;
        let long = |length| format!("\"{}\"", "c".repeat(length));
        let pattern = |pattern| Condition::matches(pattern).unwrap();
        let choice = Condition::one_of([Value::from(1), Value::from("x")]).unwrap();
        let words = pattern("a|ab|c.*");
        for (condition, yes, no, unsure) in [
            (
                &words,
                r#""a" "ab" "cat" "c\nd" "c\n""#,
                r#""xa" "abx" "a\n" 1 null ["xa",1] "[\"xa\"]" "[a" {"a":"a"}"#,
                r#""\udc00" ["xa","a"] [["a"]] ["[]"] ["\udc00"] "[\"a\"]""#,
            ),
            (&words, &*long(LONGEST_TEXT), "2", &*long(LONGEST_TEXT + 1)),
            (&pattern("(?m)^a$"), r#""a""#, r#""a\nb""#, HALF),
            (&choice, r#"1 "x""#, "2 null", HALF),
            // a null is neither present nor absent
            (&Condition::present(), "0", "", "null"),
            (&Condition::absent(), "", "0", "null"),
        ] {
            let answers = [Answer::Yes, Answer::No, Answer::Unsure];
            for (texts, want) in [yes, no, unsure].into_iter().zip(answers) {
                for text in texts.split_whitespace() {
                    assert_eq!(holds(condition, text), want, "{condition}: {text}");
                }
            }
        }
        assert_eq!(Condition::present().holds(Found::Absent), Answer::No);
        assert_eq!(Condition::absent().holds(Found::Absent), Answer::Yes);
        assert_eq!(choice.to_string(), "is 1 or \"x\"");
        assert!(Condition::one_of(Vec::<Value>::new()).is_err());
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
            let said = Condition::matches(pattern).unwrap_err().to_string();
            assert!(said.contains(reason), "{pattern}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
