//! The instructions of the servers, as one text for the clients of the gateway.

/// The most of one server of several, in bytes.
const MOST_EACH: usize = 4 << 10;

/// The most of all servers together, in bytes.
const MOST: usize = 16 << 10;

/// The mark of a cut text.
const MARK: &str = "\n[cut]";

/// Joins the texts of servers, each under its name. The text of a server that stands alone is
/// passed on as it is; those of several stand under their names as headings. What is too long is
/// cut.
pub(crate) fn combined<'a>(
    servers: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> Option<String> {
    let mut servers: Vec<_> = servers.into_iter().collect();
    if let [(_, only)] = &mut servers[..] {
        return only.take().map(|text| cut(&text, MOST));
    }
    // replicas of one server say the same
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, text) in &servers {
        let text = text.as_deref().unwrap_or_default().trim();
        match parts.iter_mut().find(|(same, _)| *same == text) {
            Some((_, names)) => names.push(name),
            None => parts.push((text, vec![name])),
        }
    }
    let said = parts.iter().filter(|(text, _)| !text.is_empty());
    let part = |(text, names): &(&str, Vec<&str>)| {
        format!("# {}\n\n{}", names.join(", "), cut(text, MOST_EACH))
    };
    let parts: Vec<_> = said.map(part).collect();
    (!parts.is_empty()).then(|| cut(&parts.join("\n\n"), MOST))
}

/// Cuts a text to at most `most` bytes, with the mark.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(MARK.len()));
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}{MARK}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine<const N: usize>(servers: [(&str, Option<&str>); N]) -> Option<String> {
        combined(servers.map(|(name, text)| (name, text.map(str::to_owned))))
    }

    #[test]
    fn one_server_is_passed_on_as_it_is_and_several_under_their_names() {
        assert_eq!(combine([]), None);
        assert_eq!(combine([("a", None)]), None);
        assert_eq!(
            combine([("a", Some(" Be kind.\n"))]).unwrap(),
            " Be kind.\n"
        );
        assert_eq!(combine([("a", None), ("b", Some("  "))]), None);
        let several = combine([
            ("files", Some("Read first.")),
            ("git", None),
            ("shop-1", Some("Pay last.")),
            ("shop-2", Some("Pay last.\n")),
        ]);
        assert_eq!(
            several.unwrap(),
            "# files\n\nRead first.\n\n# shop-1, shop-2\n\nPay last."
        );
    }

    #[test]
    fn what_is_too_long_is_cut_with_a_mark() {
        let long = "ü".repeat(20_000);
        let alone = combine([("a", Some(&long))]).unwrap();
        assert!(alone.len() <= MOST && alone.ends_with("ü\n[cut]"));
        let two = combine([("a", Some(&long)), ("b", Some("short"))]).unwrap();
        assert!(two.len() < MOST_EACH + 64 && two.ends_with("[cut]\n\n# b\n\nshort"));
        let many = combined((0..9).map(|n| ("x", Some(format!("{n}{long}"))))).unwrap();
        assert!(many.len() <= MOST && many.ends_with(MARK));
    }
}
