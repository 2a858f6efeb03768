//! The evidence about a tool, for tables and metrics.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// How long a tool's answers are served for, and the evidence for that.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EvidenceStatus {
    /// The lifetime allowed for keys without evidence of their own, in seconds; 0 if none.
    #[serde(rename = "allowed_s", serialize_with = "seconds")]
    pub allowed: Duration,
    /// Executions that repeated an earlier one after at most 300 s.
    pub repeats: u64,
    /// Of these, the ones with another answer.
    pub different: u64,
    /// The equal observations that a bucket needs without a different one; `None` if the odds are
    /// such that no bucket can pass.
    pub needed: Option<f64>,
    /// Keys of which something is known.
    pub keys: usize,
    /// Keys for which only their own evidence counts, as they differed once.
    pub keys_alone: usize,
    /// Keys that differed once and were dropped, as there were too many. If there are any, new keys
    /// use their own evidence only.
    pub keys_forgotten: u64,
    /// One for each bucket of gaps, the shortest first.
    pub buckets: Vec<BucketStatus>,
}

/// What is known of repeats after one range of gaps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BucketStatus {
    /// The longest gap, in seconds.
    pub up_to_s: u32,
    /// Executions that repeated an earlier one after such a gap.
    pub repeats: u64,
    /// Of these, the ones with another answer.
    pub different: u64,
    /// Equal observations by weight: aged, one for each visit of a session to a key, and limited
    /// for each key.
    pub equal_weight: f64,
    /// Different observations by weight, of keys that had not differed before.
    pub different_weight: f64,
    /// Whether this bucket passes. It takes all shorter ones, too, to be served from.
    pub passes: bool,
}

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}
