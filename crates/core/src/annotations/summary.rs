//! A set of hints on one line, for terminals and spans.

use std::borrow::Cow;
use std::fmt;

use crate::Annotations;

/// Writes the hints in brackets, joined by bars, in a fixed order: title, read-only, DESTRUCTIVE,
/// idempotent, requires confirmation, complexity, duration, tags.
///
/// Only what is true is shown. Cost, rate, audit, security level and open world are left out: the
/// line is for a quick look, and [`Resolved`](crate::Resolved) has everything.
impl fmt::Display for Annotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<Cow<'_, str>> = Vec::new();
        parts.extend(self.title.as_deref().map(Cow::from));
        for (hint, word) in [
            (self.read_only_hint, "read-only"),
            (self.destructive_hint, "DESTRUCTIVE"),
            (self.idempotent_hint, "idempotent"),
            (self.requires_confirmation, "requires confirmation"),
        ] {
            parts.extend((hint == Some(true)).then(|| word.into()));
        }
        let complexity = self.complexity.map(|word| format!("{word} complexity"));
        parts.extend(complexity.map(Cow::from));
        let duration = self
            .estimated_duration
            .map(|millis| format!("~{}ms", number(millis)));
        parts.extend(duration.map(Cow::from));
        let tags = self.tags.as_deref().filter(|tags| !tags.is_empty());
        parts.extend(tags.map(|tags| format!("tags: {}", tags.join(", ")).into()));
        parts.retain(|part| !part.is_empty());
        match parts.is_empty() {
            true => f.write_str("[no annotations]"),
            false => write!(f, "[{}]", parts.join(" | ")),
        }
    }
}

/// Writes a number as JavaScript does, so that the line is the one that NeuroLink's users know:
/// shortest digits that read back equal, an exponent from 1e21 up and below 1e-6.
fn number(value: f64) -> String {
    match value.abs() {
        size if size.is_infinite() => value.to_string().replace("inf", "Infinity"),
        size if size >= 1e21 => format!("{value:e}").replace('e', "e+"),
        size if size != 0.0 && size < 1e-6 => format!("{value:e}"),
        // no sign before zero
        _ => (value + 0.0).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_true_comes_in_a_fixed_order() {
        for (hints, text) in [
            (
                "tags=b,a estimatedDuration=250 complexity=simple requiresConfirmation=true \
                 destructive=true title=Wipe",
                "[Wipe | DESTRUCTIVE | requires confirmation | simple complexity | ~250ms | \
                 tags: b, a]",
            ),
            ("title= readOnly=false openWorld=true", "[no annotations]"),
        ] {
            assert_eq!(Annotations::stated(hints).to_string(), text);
        }
        let untagged = Annotations::default().with_tags([""; 0]);
        assert_eq!(untagged.to_string(), "[no annotations]");
    }

    #[test]
    fn numbers_print_as_javascript_prints_them() {
        let values = [
            -0.0,
            -1.5,
            1e20,
            -1.25e300,
            0.000_001,
            1e-7,
            f64::NEG_INFINITY,
        ];
        assert_eq!(
            values.map(number).join(" "),
            "0 -1.5 100000000000000000000 -1.25e+300 0.000001 1e-7 -Infinity"
        );
    }
}
