//! What a model is told in a server's place.

use std::time::Duration;

use callward_core::ToolOutput;

/// Writes the answer: what failed, how often, and what to do instead.
pub(crate) fn answer(tool: &str, failures: u32, told: &str, wait: Duration) -> ToolOutput {
    let said = match told {
        "" => "it said nothing about why".to_owned(),
        told => format!("last with: {told}"),
    };
    ToolOutput::error_text(format!(
        "Not sent: this same call of `{tool}`, with the same arguments, failed {failures} times in a \
         row, {said}\nSending it again now will not help. Change course: use other arguments or another \
         tool, or tell the user what fails and ask how to go on. Nothing but this exact call is held \
         back; it may be tried once more in {}.",
        in_words(wait)
    ))
}

/// Shortens what was said to a length that a model's context bears over and over, on one line.
pub(crate) fn shorten(text: &str) -> Box<str> {
    let mut short = String::new();
    for word in text.split_whitespace() {
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
        // what follows is cut anyway
        if short.len() > LONGEST_TOLD * 4 {
            break;
        }
    }
    if let Some((end, _)) = short.char_indices().nth(LONGEST_TOLD) {
        short.truncate(end);
        short.push('…');
    }
    short.into()
}

fn in_words(wait: Duration) -> String {
    let secs = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match secs {
        0..=90 => format!("{secs} s"),
        _ => format!("{} min", secs.div_ceil(60)),
    }
}

/// In characters.
const LONGEST_TOLD: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_failed_how_often_and_what_to_do() {
        let output = answer("get_order", 5, "no such order: 7", Duration::from_secs(299));
        assert!(output.is_error());
        let text = output.to_text();
        for told in ["`get_order`", "5 times", "no such order: 7", "ask", "5 min"] {
            assert!(text.contains(told), "{told}: {text}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_set_on_one_line() {
        assert_eq!(&*shorten(" a\n  b\tc "), "a b c");
        let long = "ä".repeat(5000);
        let short = shorten(&long);
        assert_eq!(short.chars().count(), LONGEST_TOLD + 1);
        assert!(short.ends_with('…'));
        assert_eq!(&*shorten(""), "");
    }

    #[test]
    fn a_wait_is_told_in_full_seconds_or_minutes_and_never_too_short() {
        for (millis, words) in [
            (1, "1 s"),
            (90_000, "90 s"),
            (90_001, "2 min"),
            (300_000, "5 min"),
        ] {
            assert_eq!(in_words(Duration::from_millis(millis)), words);
        }
    }
}
