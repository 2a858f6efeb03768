//! The figures of a day.

use std::time::Duration;

use callward_cache::EvidenceStatus;

/// The figures of one lifetime.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Figures {
    /// Calls of the measured day.
    pub(crate) calls: u64,
    /// The calls that ran.
    pub(crate) executions: u64,
    /// Calls answered with the result of another call, stored or in flight.
    pub(crate) hits: u64,
    /// Hits that differ from what running the call would have returned.
    pub(crate) stale: u64,
    /// The age of the oldest stored answer that was served.
    pub(crate) oldest: Duration,
    /// The evidence at the beginning of the day.
    pub(crate) tools: Vec<ToolEvidence>,
}

/// The evidence of one tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolEvidence {
    /// The tool.
    pub(crate) name: String,
    /// The buckets, the shortest gaps first.
    pub(crate) buckets: Vec<BucketSum>,
    /// The equal weight that a bucket needs without a difference; `None` if none suffices.
    pub(crate) needed: Option<f64>,
    /// The lifetime that the rule allows.
    pub(crate) allowed: Duration,
    /// The lifetime if buckets without observations did not count.
    pub(crate) without_empty: Duration,
    /// The longest bucket that passes by itself.
    pub(crate) longest_alone: Duration,
}

/// The evidence of one bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BucketSum {
    /// The longest gap, in seconds.
    pub(crate) up_to_s: u32,
    /// Calls that repeated an earlier one after such a gap.
    pub(crate) repeats: u64,
    /// Those with another answer.
    pub(crate) different: u64,
    /// The weight of the equal ones: aged, one for each visit, limited for each key.
    pub(crate) equal_weight: f64,
}

impl ToolEvidence {
    pub(crate) fn new(name: &str, status: &EvidenceStatus) -> Self {
        let seconds = |up_to_s: u32| Duration::from_secs(up_to_s.into());
        let passing = |bucket: &&callward_cache::BucketStatus| bucket.passes;
        let observed = status.buckets.iter().filter(|bucket| bucket.repeats > 0);
        let edge = |bucket: Option<&callward_cache::BucketStatus>| {
            bucket.map_or(Duration::ZERO, |bucket| seconds(bucket.up_to_s))
        };
        Self {
            name: name.to_owned(),
            buckets: status
                .buckets
                .iter()
                .map(|bucket| BucketSum {
                    up_to_s: bucket.up_to_s,
                    repeats: bucket.repeats,
                    different: bucket.different,
                    equal_weight: bucket.equal_weight,
                })
                .collect(),
            needed: status.needed,
            allowed: status.allowed,
            without_empty: edge(observed.take_while(passing).last()),
            longest_alone: edge(status.buckets.iter().rev().find(passing)),
        }
    }
}
