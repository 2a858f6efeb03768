//! A set of hints on one line, for people and for spans.

use std::fmt;

use crate::Annotations;

/// Writes the hints in brackets, joined by bars, in a fixed order: title, read-only, DESTRUCTIVE,
/// idempotent, requires confirmation, complexity, duration, tags.
///
/// Only what is true is shown. Cost, rate, audit, security level and open world are left out: the
/// line is for a quick look, and [`Resolved`](crate::Resolved) has everything.
impl fmt::Display for Annotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Line { f, empty: true };
        if let Some(title) = self.title.as_deref().filter(|title| !title.is_empty()) {
            line.part(format_args!("{title}"))?;
        }
        for (hint, word) in [
            (self.read_only_hint, "read-only"),
            (self.destructive_hint, "DESTRUCTIVE"),
            (self.idempotent_hint, "idempotent"),
            (self.requires_confirmation, "requires confirmation"),
        ] {
            if hint == Some(true) {
                line.part(format_args!("{word}"))?;
            }
        }
        if let Some(complexity) = self.complexity {
            line.part(format_args!("{complexity} complexity"))?;
        }
        if let Some(millis) = self.estimated_duration {
            line.part(format_args!("~{}ms", Number(millis)))?;
        }
        if let Some(tags) = self.tags.as_deref().filter(|tags| !tags.is_empty()) {
            line.part(format_args!("tags: {}", tags.join(", ")))?;
        }
        line.end()
    }
}

/// The parts written so far.
struct Line<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    empty: bool,
}

impl Line<'_, '_> {
    fn part(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        self.f.write_str(if self.empty { "[" } else { " | " })?;
        self.empty = false;
        self.f.write_fmt(text)
    }

    fn end(self) -> fmt::Result {
        self.f
            .write_str(if self.empty { "[no annotations]" } else { "]" })
    }
}

/// A number as JavaScript prints it, so that the line is the same as the one NeuroLink's users
/// know: shortest digits that read back equal, an exponent from 1e21 up and below 1e-6.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value.is_nan() {
            return f.write_str("NaN");
        }
        if value.is_infinite() {
            return f.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
        }
        if value == 0.0 {
            return f.write_str("0");
        }
        if (1e-6..1e21).contains(&value.abs()) {
            return write!(f, "{value}");
        }
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                write!(f, "{digits}e+{exponent}")
            }
            _ => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complexity;

    #[test]
    fn the_parts_come_in_their_order() {
        let hints = Annotations::default()
            .with_tags(["b", "a"])
            .with_estimated_duration(250.0)
            .with_complexity(Complexity::Simple)
            .with_requires_confirmation(true)
            .with_destructive(true)
            .with_title("Wipe");
        assert_eq!(
            hints.to_string(),
            "[Wipe | DESTRUCTIVE | requires confirmation | simple complexity | ~250ms | tags: b, a]"
        );
    }

    #[test]
    fn what_is_false_or_empty_is_not_shown() {
        let hints = Annotations::default()
            .with_title("")
            .with_read_only(false)
            .with_open_world(true)
            .with_tags(Vec::<String>::new());
        assert_eq!(hints.to_string(), "[no annotations]");
    }

    #[test]
    fn numbers_print_as_javascript_prints_them() {
        for (value, text) in [
            (1.0, "1"),
            (-0.0, "0"),
            (-1.5, "-1.5"),
            (250.5, "250.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.25e300, "-1.25e+300"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
    }
}
