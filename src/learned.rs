//! The learned lifetimes of tools, with their evidence.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use callward_cache::EvidenceStatus;
use callward_core::{CacheRule, CallPlan, Lifetime, ReplicaSetId, ToolName};

use crate::stack::Stack;

/// The learned lifetime of a tool's results, with its evidence.
///
/// Its `Display` is a clause of prose.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LearnedLifetime {
    /// The lifetime that evidence and the plan allow now, from the dispatch of a call, for
    /// arguments without evidence of their own; 0 if none.
    pub served: Duration,
    /// Executions that repeated an earlier one after at most 300 s.
    pub repeats: u64,
    /// Of these, the ones with another answer.
    pub different: u64,
    /// Why nothing is served beyond the burst window, with the evidence that is missing. `None`
    /// where a lifetime is allowed.
    pub missing: Option<String>,
}

impl LearnedLifetime {
    /// Derives it from a plan and the evidence; `None` if the plan's lifetime is not learned.
    /// `burst` is the cache's [burst window](callward_cache::CacheConfig::burst).
    pub(crate) fn new(
        plan: &CallPlan,
        seen: Option<&EvidenceStatus>,
        burst: Duration,
    ) -> Option<Self> {
        let CacheRule::Store {
            ttl,
            lifetime: Lifetime::Learned(rule),
        } = plan.cache
        else {
            return None;
        };
        let served = seen.map_or(Duration::ZERO, |seen| seen.allowed.min(ttl));
        // what is served without evidence
        let window = match rule.volatile || burst.is_zero() {
            true => String::new(),
            false => format!(" beyond the burst window ({} ms)", burst.as_millis()),
        };
        let missing = || {
            let why = match seen {
                _ if ttl.is_zero() => "its TTL is 0 s".to_owned(),
                Some(seen) => lacks(seen),
                None => "no repeated call is counted".to_owned(),
            };
            format!("not cached{window}: {why}")
        };
        Some(Self {
            served,
            repeats: seen.map_or(0, |seen| seen.repeats),
            different: seen.map_or(0, |seen| seen.different),
            missing: served.is_zero().then(missing),
        })
    }
}

impl fmt::Display for LearnedLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.missing {
            Some(missing) => f.write_str(missing),
            None => write!(
                f,
                "served for up to {}: {} repeats, {} different",
                seconds(self.served),
                self.repeats,
                self.different
            ),
        }
    }
}

/// A time in seconds.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Returns which observations the first bucket that does not pass needs.
fn lacks(seen: &EvidenceStatus) -> String {
    let bucket = seen.buckets.iter().find(|bucket| !bucket.passes);
    let (Some(bucket), Some(needed)) = (bucket, seen.needed) else {
        return "no evidence is enough for these `stale_odds`".to_owned();
    };
    let (up_to, needed) = (bucket.up_to_s, needed.ceil());
    let (equal, different) = (bucket.equal_weight.floor(), bucket.different_weight.ceil());
    let rest = match different > 0.0 {
        false => format!("{equal} are counted"),
        true => format!(
            "and more for each different one; {equal} equal and {different} different are counted"
        ),
    };
    format!("repeats within {up_to} s need about {needed} independent equal observations, {rest}")
}

impl Stack {
    /// Returns how long the results of each offered tool are served whose lifetime is learned, by
    /// the evidence of the principal with the most.
    #[must_use]
    pub fn learned_lifetimes(&self) -> HashMap<(ReplicaSetId, ToolName), LearnedLifetime> {
        let catalogue = self.catalogue();
        let evidence = self.cache().all_evidence();
        let config = &self.0.settings.cache;
        let entries = catalogue.entries().iter().filter(|_| config.enabled);
        let learned = entries.filter_map(|entry| {
            let tool = entry.tool();
            let name = (tool.set().clone(), tool.name().clone());
            let lifetime = LearnedLifetime::new(tool.plan(), evidence.get(&name), config.burst)?;
            Some((name, lifetime))
        });
        learned.collect()
    }
}
