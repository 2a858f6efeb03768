//! Removes from the texts of servers what a terminal would execute or show as something else.

use std::fmt::Write;

/// The most bytes of a text that one line shows.
const MOST: usize = 1000;

/// Writes a text for one line: every control character is written out, as `\u{1b}`, and a long text
/// is cut.
pub(crate) fn line(text: &str) -> String {
    let (shown, rest) = text.split_at(text.floor_char_boundary(MOST));
    let mark = if rest.is_empty() { "" } else { "…" };
    written_out(shown, is_obeyed) + mark
}

/// Writes a line of the log. Its colours stay: others cannot write any there.
pub(crate) fn logged(text: &str) -> String {
    written_out(text, |c| is_obeyed(c) && c != '\u{1b}')
}

/// Writes a text of several lines: line ends and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    written_out(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

fn written_out(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            // writing to a string does not fail
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Controls of terminals, of lines, and of the direction of writing: those make a text look like
/// another one.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(
            line("a\u{1b}[2Jb\r\nü\u{9b}1m"),
            "a\\u{1b}[2Jb\\r\\nü\\u{9b}1m"
        );
        assert_eq!(line("gnp\u{202e}exe."), "gnp\\u{202e}exe.");
        assert_eq!(
            logged("\u{1b}[2ma\u{1b}[0m b\nc\r"),
            "\u{1b}[2ma\u{1b}[0m b\\nc\\r"
        );
        assert_eq!(line(&"ü".repeat(9000)), format!("{}…", "ü".repeat(500)));
        assert_eq!(lines("a\n\tb\r\u{7}"), "a\n\tb\\r\\u{7}");
    }
}
