//! Suggestions for misspelt names.

/// How many names are suggested at most.
const MAX_SUGGESTIONS: usize = 3;

/// Longer names, in bytes, are not compared: a comparison takes the product of both lengths.
const MAX_NAME_LEN: usize = 64;

/// Returns the items that `name` may be a misspelling of, nearest first, at most three. `text`
/// returns the name of an item.
///
/// A name of four letters may have two wrong ones, and one more for each further four; case is
/// ignored.
///
/// ```
/// let known = ["orders", "billing"];
/// assert_eq!(callward_core::similar("Biling", known, |known| *known), ["billing"]);
/// ```
pub fn similar<T>(
    name: &str,
    known: impl IntoIterator<Item = T>,
    text: impl Fn(&T) -> &str,
) -> Vec<T> {
    let name = name.to_lowercase();
    if name.len() > MAX_NAME_LEN {
        return Vec::new();
    }
    let max_distance = 1 + name.chars().count() / 4;
    let mut near: Vec<(usize, T)> = known
        .into_iter()
        .filter_map(|known| {
            let text = text(&known);
            if text.len() > MAX_NAME_LEN {
                return None;
            }
            let distance = strsim::levenshtein(&name, &text.to_lowercase());
            (distance <= max_distance).then_some((distance, known))
        })
        .collect();
    near.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| text(x).cmp(text(y))));
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_within_the_distance_are_suggested_nearest_first() {
        let known = ["orders", "order", "border", "billing", "sender"];
        for (name, expected) in [
            ("ordrs", &["orders", "order"][..]),
            ("ORDERS", &["orders", "order", "border"]),
            ("oder", &["order", "border", "orders"]),
            ("biling", &["billing"]),
            ("x", &[]),
            ("", &[]),
        ] {
            assert_eq!(similar(name, known, |known| *known), expected, "{name}");
        }
        let long = "a".repeat(MAX_NAME_LEN + 1);
        assert!(similar(&long, [long.as_str()], |known| *known).is_empty());
    }
}
