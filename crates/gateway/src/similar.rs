//! Which of the known names may have been meant by one that is not known.

/// How many names a message lists at most.
const MOST: usize = 3;

/// So many names are listed where none is near.
const FEW: usize = 8;

/// Longer names are no slip of the pen, and are compared with nothing.
const LONGEST: usize = 64;

/// Says which names may have been meant, or else which there are.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, what: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(hint) = near(name, known.iter().copied()) {
        return hint;
    }
    match known.len() {
        0 => format!("there are no {what}"),
        1..=FEW => format!("the {what} are {}", quoted(&known).join(", ")),
        many => format!("{many} {what} are known"),
    }
}

/// Says which names may have been meant, if any is near enough.
pub(crate) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= 1 + name.chars().count() / 4)
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.into_iter().take(MOST).map(|(_, name)| name).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", quoted(&near).join(" or ")))
}

fn quoted(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}

/// How many letters have to be added, dropped or exchanged, whatever their case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    if a.len().max(b.len()) > LONGEST {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (b, above) in b.iter().zip(row.iter().skip(1)) {
            left = (corner + usize::from(a != *b)).min(above + 1).min(left + 1);
            corner = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (a, b, want) in [
            ("", "", 0),
            ("orders", "Orders", 0),
            ("ordrs", "orders", 1),
            ("odrers", "orders", 2),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), want, "{a} {b}");
            assert_eq!(distance(b, a), want, "{b} {a}");
        }
    }

    #[test]
    fn who_mistypes_is_told_what_there_is() {
        let known = ["orders", "billing"];
        assert_eq!(hint("biling", known, "sets"), "did you mean `billing`?");
        assert_eq!(hint("x", known, "sets"), "the sets are `orders`, `billing`");
        assert_eq!(hint("x", [], "sets"), "there are no sets");
        let many: Vec<String> = (0..9).map(|n| format!("long{n}")).collect();
        let many = many.iter().map(String::as_str);
        assert_eq!(hint("x", many, "sets"), "9 sets are known");
    }
}
