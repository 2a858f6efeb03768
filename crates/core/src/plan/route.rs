//! Which servers may get a call, and which come first.

use std::sync::Arc;

use serde::Serialize;
use smallvec::SmallVec;

use crate::{Annotations, Complexity, Effect, Profile};

/// Servers of this category come first for idempotent tools.
const CACHING: &str = "caching";
/// Servers of this category come first for complex or costly tools.
const HIGH_COMPUTE: &str = "high-compute";
/// `costHint` above this makes a tool costly.
const COSTLY: f64 = 100.0;

/// Which servers may get a call, and which come first.
///
/// Cloning copies no text.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct RouteRule {
    /// Only servers of at least this weight; none healthy is an error.
    pub min_weight: Option<u32>,
    /// Servers of these categories come first, if any is healthy.
    pub prefer: SmallVec<[&'static str; 2]>,
    /// The tool's `tags`, each once: strategies select servers by them as categories or
    /// capabilities. The first 32, without those longer than 128 characters; the tool itself keeps
    /// all.
    pub tags: Arc<[Box<str>]>,
    /// The cost of a call, in relative units from 0 up: the tool's `costHint`.
    pub cost: Option<f64>,
}

impl RouteRule {
    /// The most tags that calls are routed by.
    pub(crate) const MAX_TAGS: usize = 32;

    /// The longest tag that calls are routed by, in bytes.
    pub(crate) const MAX_TAG_LEN: usize = 128;

    /// Derives the rule from the effect and the effective hints.
    pub(super) fn derive(effect: Effect, hints: &Annotations, profile: &Profile) -> Self {
        let mut route = Self {
            tags: bounded(hints.tags.iter().flatten().map(String::as_str)),
            cost: hints
                .cost_hint
                .filter(|cost| cost.is_finite() && *cost >= 0.0),
            ..Self::default()
        };
        match effect {
            Effect::Destructive => {
                route.min_weight = Some(profile.primary_weight);
                if hints.idempotent_hint == Some(true) {
                    route.prefer.push(CACHING);
                }
            }
            Effect::Idempotent => route.prefer.push(CACHING),
            Effect::ReadOnly | Effect::Mutating => {}
        }
        if hints.complexity == Some(Complexity::Complex)
            || route.cost.is_some_and(|cost| cost > COSTLY)
        {
            route.prefer.push(HIGH_COMPUTE);
        }
        route
    }

    /// Adds the requirements of `by`: the greater weight, every tag of both, the greater cost.
    /// Categories that only come first do not change.
    pub(crate) fn tighten(&mut self, by: &Self) {
        self.min_weight = self.min_weight.max(by.min_weight);
        if by.tags.iter().any(|tag| !self.tags.contains(tag)) {
            let both = self.tags.iter().chain(by.tags.iter());
            self.tags = bounded(both.map(|tag| &**tag));
        }
        self.cost = [self.cost, by.cost].into_iter().flatten().reduce(f64::max);
    }
}

/// Takes the tags that calls are routed by.
fn bounded<'a>(tags: impl Iterator<Item = &'a str>) -> Arc<[Box<str>]> {
    let mut kept: Vec<Box<str>> = Vec::new();
    for tag in tags.filter(|tag| tag.len() <= RouteRule::MAX_TAG_LEN) {
        if kept.len() < RouteRule::MAX_TAGS && !kept.iter().any(|known| **known == *tag) {
            kept.push(tag.into());
        }
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(hints: &Annotations) -> RouteRule {
        RouteRule::derive(Effect::ReadOnly, hints, &Profile::standard())
    }

    fn tagged<const N: usize>(tags: [&str; N]) -> RouteRule {
        rule(&Annotations::default().with_tags(tags))
    }

    #[test]
    fn whatever_a_tool_lists_a_rule_has_a_bound() {
        let long = "x".repeat(RouteRule::MAX_TAG_LEN + 1);
        let many = (0..1_000).map(|n| n.to_string());
        let hints = Annotations::default().with_tags([long].into_iter().chain(many));
        let rule = rule(&hints);
        assert_eq!(rule.tags.len(), RouteRule::MAX_TAGS);
        assert_eq!(&*rule.tags[0], "0");

        let mut joined = tagged(["a"]);
        joined.tighten(&rule);
        assert_eq!(joined.tags.len(), RouteRule::MAX_TAGS);
    }

    #[test]
    fn a_cost_that_is_no_number_from_zero_up_is_none() {
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            let rule = rule(&Annotations::default().with_cost(odd));
            assert_eq!((rule.cost, rule.prefer.len()), (None, 0), "{odd}");
        }
        assert_eq!(rule(&Annotations::default().with_cost(0.0)).cost, Some(0.0));
        let costly = rule(&Annotations::default().with_cost(100.5));
        assert_eq!(costly.prefer[..], [HIGH_COMPUTE]);
    }
}
