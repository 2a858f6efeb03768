//! The URIs of resources that clients see: those of a set with a prefix end with it.
//!
//! The prefix stands in the fragment, so that scheme, authority and path stay as the server wrote
//! them, and a client can expand a template or compare the start of a URI as before.

/// Adds the prefix of its set to a URI or to a template of URIs.
#[must_use]
pub fn with_prefix(uri: &str, prefix: &str) -> String {
    let mark = if uri.contains('#') { '~' } else { '#' };
    format!("{uri}{mark}{prefix}")
}

/// Removes the prefix of a set from a URI; returns `None` if it does not end with that.
#[must_use]
pub fn without_prefix<'a>(uri: &'a str, prefix: &str) -> Option<&'a str> {
    // a fragment of a template may be empty when it is expanded
    uri.strip_suffix(prefix)?.strip_suffix(['~', '#'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_prefix_is_removed_as_it_was_added(
            uri in "[a-z]{1,3}:[a-z#~/{}]{0,8}",
            prefix in "[a-z0-9]{1,3}",
        ) {
            let seen = with_prefix(&uri, &prefix);
            prop_assert!(seen.starts_with(&uri));
            prop_assert_eq!(without_prefix(&seen, &prefix), Some(&*uri));
            prop_assert_eq!(without_prefix(&seen, "other"), None);
        }
    }
}
