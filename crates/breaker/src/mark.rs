//! What tells the tools of one server apart, in a word.

use tollgate_core::Tool;

/// Tells a tool from the others behind one breaker: half of its definition's digest, as it is copied
/// into the future of each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    pub(crate) fn of(tool: &Tool) -> Self {
        // what is left fits
        Self(u64::try_from(tool.digest().as_u128() >> 64).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use tollgate_testkit::tool;

    use super::*;

    #[test]
    fn tools_of_other_names_have_other_marks() {
        let of = |name| Mark::of(&tool(name).read_only().build());
        assert_eq!(of("get"), of("get"));
        assert_ne!(of("get"), of("got"));
    }
}
