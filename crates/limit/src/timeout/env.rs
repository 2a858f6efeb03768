//! The attempt timeout from the environment.

use std::time::Duration;

use callward_core::InvalidValue;

/// The environment variable with the attempt timeout, in milliseconds, of tools without an
/// estimated duration.
pub const TOOL_TIMEOUT_VAR: &str = "MCP_TOOL_TIMEOUT";

/// Reads the value of [`TOOL_TIMEOUT_VAR`]: whole milliseconds from 1 to a day. White space around
/// them is ignored; an empty value counts as absent.
///
/// # Errors
///
/// [`InvalidValue`] if the value is anything else.
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
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
pub fn parse_tool_timeout(value: &str) -> Result<Option<Duration>, InvalidValue> {
    let text = value.trim();
    if text.is_empty() {
        return Ok(None);
    }
    // the standard library also parses `+5`
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(millis) if digits && (1..=MAX_MILLIS).contains(&millis) => {
            Ok(Some(Duration::from_millis(millis)))
        }
        _ => {
            let found: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            Err(InvalidValue::new(format!(
                "{TOOL_TIMEOUT_VAR} is {found:?}: give whole milliseconds from 1 to {MAX_MILLIS}, \
                 such as 60000"
            )))
        }
    }
}

/// A day.
const MAX_MILLIS: u64 = 24 * 60 * 60 * 1000;
const MAX_SHOWN_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_milliseconds_up_to_a_day_are_valid() {
        let good = [("1", 1), (" 5000\n", 5000), ("86400000", 86_400_000)];
        for (text, millis) in good {
            let expected = Some(Duration::from_millis(millis));
            assert_eq!(parse_tool_timeout(text), Ok(expected), "{text:?}");
        }
        assert_eq!(parse_tool_timeout("  "), Ok(None));
        for bad in "0 -5 +5 1.5 1e3 60s 86400001 99999999999999999999".split(' ') {
            let error = parse_tool_timeout(bad).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
        // a long value is truncated
        let error = parse_tool_timeout(&"9".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 150, "{error}");
    }
}
