//! The timeout that the environment states.

use std::fmt;
use std::time::Duration;

/// The variable of the environment that states, in milliseconds, the attempt timeout of tools that
/// do not say how long they take.
pub const TOOL_TIMEOUT_VAR: &str = "MCP_TOOL_TIMEOUT";

/// Reads the value of [`TOOL_TIMEOUT_VAR`]: whole milliseconds from 1 to a day. White space around
/// them is ignored; an empty value is read as none, since that is how a variable is taken back.
///
/// # Errors
///
/// [`InvalidToolTimeout`] says what was found, and what is expected.
///
/// ```
/// use std::time::Duration;
/// use callward_limit::parse_tool_timeout;
///
/// assert_eq!(parse_tool_timeout("90000")?, Some(Duration::from_secs(90)));
/// assert_eq!(parse_tool_timeout("")?, None);
/// let error = parse_tool_timeout("90s").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "MCP_TOOL_TIMEOUT is \"90s\": give whole milliseconds from 1 to 86400000, such as 60000"
/// );
/// # Ok::<(), callward_limit::InvalidToolTimeout>(())
/// ```
pub fn parse_tool_timeout(value: &str) -> Result<Option<Duration>, InvalidToolTimeout> {
    let text = value.trim();
    if text.is_empty() {
        return Ok(None);
    }
    // `+5` is a number to the standard library, and no number anybody means to write here
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(millis) if digits && (1..=LONGEST_MS).contains(&millis) => {
            Ok(Some(Duration::from_millis(millis)))
        }
        _ => Err(InvalidToolTimeout {
            found: text.chars().take(LONGEST_TOLD).collect(),
        }),
    }
}

/// A day.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1000;
/// No more of what was found is told, in characters.
const LONGEST_TOLD: usize = 40;

/// The environment states a timeout that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidToolTimeout {
    found: String,
}

impl fmt::Display for InvalidToolTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{TOOL_TIMEOUT_VAR} is {:?}: give whole milliseconds from 1 to {LONGEST_MS}, such as \
             60000",
            self.found
        )
    }
}

impl std::error::Error for InvalidToolTimeout {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_milliseconds_up_to_a_day() {
        let good = [("1", 1), (" 5000\n", 5000), ("86400000", 86_400_000)];
        for (text, millis) in good {
            let expected = Some(Duration::from_millis(millis));
            assert_eq!(parse_tool_timeout(text), Ok(expected), "{text:?}");
        }
        assert_eq!(parse_tool_timeout("  "), Ok(None));
        for bad in [
            "0",
            "-5",
            "+5",
            "1.5",
            "1e3",
            "60s",
            "86400001",
            "99999999999999999999",
        ] {
            let error = parse_tool_timeout(bad).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn a_long_value_is_not_repeated_whole() {
        let error = parse_tool_timeout(&"9".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 150, "{error}");
    }
}
