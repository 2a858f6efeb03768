//! Untrusted text that is shown: in one line, or with what is invisible written out.

use std::fmt::Write;

/// Puts text into one line of at most `most` characters. Each run of white space and control
/// characters becomes one space, invisible characters that change how others are shown are dropped,
/// and an ellipsis marks a cut.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let mut gap = false;
    for c in text.chars().filter(|c| !is_hidden(*c)) {
        if c.is_whitespace() || c.is_control() {
            gap = count > 0;
            continue;
        }
        let adds = if gap { 2 } else { 1 };
        if count + adds > most {
            while count >= most && out.pop().is_some() {
                count -= 1;
            }
            out.truncate(out.trim_end().len());
            out.push('…');
            return out;
        }
        if gap {
            out.push(' ');
        }
        out.push(c);
        count += adds;
        gap = false;
    }
    out
}

/// Writes text with each character that is `hidden` written out, as `\u{202e}`.
#[must_use]
pub fn written_out(text: &str, hidden: impl Fn(char) -> bool) -> String {
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

/// Returns `true` for controls, of terminals and lines too, and for invisible characters: they make
/// a text look like another one.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control() || is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Directions, joiners and tags: they could disguise a text as another.
const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e01ef}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0e}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_becomes_one_line_without_surprises() {
        for (text, want) in [
            ("", ""),
            (" a \n\t b ", "a b"),
            ("a\u{1b}[31mb", "a [31mb"),
            ("safe\u{202e}exe", "safeexe"),
            ("a\u{2028}b\u{0}", "a b"),
            ("1234567890", "1234567890"),
            ("12345678901", "123456789…"),
            ("12345678 90", "12345678…"),
            ("ééééééééééé", "ééééééééé…"),
        ] {
            assert_eq!(one_line(text, 10), want, "{text:?}");
        }
        assert_eq!(one_line("ab", 0), "…");
    }

    proptest! {
        #[test]
        fn a_line_is_never_too_long_and_never_breaks(text in "(?s).{0,60}", most in 1_usize..30) {
            let line = one_line(&text, most);
            prop_assert!(line.chars().count() <= most);
            prop_assert!(!line.chars().any(|c| c.is_control() || is_hidden(c)));
            prop_assert_eq!(line.trim(), &line);
        }
    }
}
