//! What tells the tools of one server apart, or those who call, in a word.

use std::hash::{DefaultHasher, Hash, Hasher};

use callward_core::{SessionId, Tool};

/// Tells a tool from the others behind one breaker, or a session from the others that call: a word, as it
/// is copied into the future of each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    /// Half of the tool's definition's digest.
    pub(crate) fn of(tool: &Tool) -> Self {
        // what is left fits
        Self(u64::try_from(tool.digest().as_u128() >> 64).unwrap_or_default())
    }

    /// A hash of its name, which whoever calls may have made anew for each call.
    pub(crate) fn of_session(session: &SessionId) -> Self {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::tool;

    use super::*;

    #[test]
    fn sessions_keep_their_marks() {
        let [one, same, other] = ["a", "a", "b"].map(SessionId::new);
        assert_eq!(Mark::of_session(&one), Mark::of_session(&same));
        assert_ne!(Mark::of_session(&one), Mark::of_session(&other));
    }

    #[test]
    fn tools_of_other_names_have_other_marks() {
        let of = |name| Mark::of(&tool(name).read_only().build());
        assert_eq!(of("get"), of("get"));
        assert_ne!(of("get"), of("got"));
    }
}
