//! Suggestions for misspelt names, in messages.

use callward::core::similar;

/// The largest number of names that are listed where none is similar.
const MAX_LISTED: usize = 8;

/// Returns which names may have been meant, or else the known names.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, what: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(hint) = near(name, known.iter().copied()) {
        return hint;
    }
    match known.len() {
        0 => format!("there are no {what}"),
        1..=MAX_LISTED => format!("the {what} are `{}`", known.join("`, `")),
        many => format!("{many} {what} are known"),
    }
}

/// Returns which names may have been meant, if any is similar.
pub(crate) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = similar(name, known, |known| *known);
    (!near.is_empty()).then(|| format!("did you mean `{}`?", near.join("` or `")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_gets_a_suggestion_or_the_known_names() {
        let known = ["orders", "billing"];
        assert_eq!(hint("biling", known, "sets"), "did you mean `billing`?");
        assert_eq!(hint("x", known, "sets"), "the sets are `orders`, `billing`");
        assert_eq!(hint("x", [], "sets"), "there are no sets");
        let many: Vec<String> = (0..9).map(|n| format!("long{n}")).collect();
        let many = many.iter().map(String::as_str);
        assert_eq!(hint("x", many, "sets"), "9 sets are known");
    }
}
