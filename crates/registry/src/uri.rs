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

/// Separates a URI from what may be the prefix of a set at its end.
#[must_use]
pub fn split(uri: &str) -> Option<(&str, &str)> {
    // a fragment of a template may be empty when it is expanded
    uri.rsplit_once(['~', '#'])
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
            prop_assert_eq!(split(&seen), Some((&*uri, &*prefix)));
        }
    }
}
