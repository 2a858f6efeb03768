//! Removes from the texts of servers what a terminal would execute or show as something else.

use callward::core::{is_invisible, written_out};

/// The most bytes of a text that one line shows.
const MOST: usize = 1000;

/// Writes a text for one line: every control character is written out, as `\u{1b}`, and a long text
/// is cut.
pub(crate) fn line(text: &str) -> String {
    let (shown, rest) = text.split_at(text.floor_char_boundary(MOST));
    let mark = if rest.is_empty() { "" } else { "…" };
    written_out(shown, is_invisible) + mark
}

/// Writes a line of the log. Its colours stay: others cannot write any there.
pub(crate) fn logged(text: &str) -> String {
    written_out(text, |c| is_invisible(c) && !is_kept(c) && c != '\u{1b}')
}

/// Writes a text of several lines: line ends and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    written_out(text, |c| {
        is_invisible(c) && !is_kept(c) && !matches!(c, '\n' | '\t')
    })
}

/// In longer texts joiners stay: scripts and emoji are written with them.
fn is_kept(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
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
        assert_eq!(line("re\u{200d}ad\u{2028}"), "re\\u{200d}ad\\u{2028}");
        assert_eq!(lines("re\u{200d}ad\u{feff}"), "re\u{200d}ad\\u{feff}");
        assert_eq!(
            logged("\u{1b}[2ma\u{1b}[0m b\nc\r"),
            "\u{1b}[2ma\u{1b}[0m b\\nc\\r"
        );
        assert_eq!(line(&"ü".repeat(9000)), format!("{}…", "ü".repeat(500)));
        assert_eq!(lines("a\n\tb\r\u{7}"), "a\n\tb\\r\\u{7}");
    }
}
