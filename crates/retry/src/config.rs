//! The settings of the layer.

use std::time::Duration;

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

use crate::Backoff;

/// How often, how soon and for how much a failed call is retried. Whether it may be is in the
/// tool's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RetryConfig {
    /// How many attempts a call has, the first one included. Default: 3. With 1 no call is retried.
    pub max_attempts: u32,
    /// The schedule of the pauses. Default: full jitter, at most 10 s.
    #[serde(flatten)]
    pub backoff: Backoff,
    /// The longest `Retry-After` that a call waits for, and the longest it waits for open breakers
    /// in all. Default: 60 s.
    #[serde(with = "callward_core::human::duration")]
    pub max_retry_after: Duration,
    /// How many retries each hundred calls of a replica set pay for. Default: 20.
    #[serde(rename = "budget", with = "callward_core::human::percent")]
    pub budget_percent: u32,
    /// How many retries a replica set has before any call has paid for one. Default: 3.
    #[serde(skip)]
    pub budget_reserve: u32,
    /// How many retries can be saved up: the burst a server gets when it fails after a long good
    /// time. Default: 100.
    #[serde(skip)]
    pub budget_capacity: u32,
    /// Seeds the jitter, for reproducible pauses. Default: a random seed.
    #[serde(skip)]
    pub seed: Option<u64>,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            backoff: Backoff::default(),
            max_retry_after: Duration::from_secs(60),
            budget_percent: 20,
            budget_reserve: 3,
            budget_capacity: 100,
            seed: None,
        }
    }
}

impl RetryConfig {
    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if self.max_attempts == 0 {
            return fault("max_attempts", "is 0; use 1 to try each call once");
        }
        if self.backoff.ceiling.is_zero() {
            return fault("backoff.ceiling", "is 0; retries need a pause");
        }
        if self.budget_percent > MAX_PERCENT {
            return fault("budget_percent", "is above 1000, ten retries for each call");
        }
        if self.budget_capacity == 0 {
            return fault(
                "budget_capacity",
                "is 0; use max_attempts 1 to retry nothing",
            );
        }
        if self.budget_capacity > MAX_CAPACITY {
            return fault("budget_capacity", "is above 1000000");
        }
        if self.budget_reserve > self.budget_capacity {
            return fault(
                "budget_reserve",
                "is above budget_capacity, which could not hold it",
            );
        }
        Ok(())
    }
}

const MAX_PERCENT: u32 = 1000;
/// A bucket counts hundredths of a retry in 32 bits.
const MAX_CAPACITY: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        let cases: [(fn(&mut RetryConfig), _); 6] = [
            (|of| of.max_attempts = 0, "max_attempts"),
            (|of| of.backoff.ceiling = Duration::ZERO, "backoff.ceiling"),
            (|of| of.budget_percent = 1001, "budget_percent"),
            (|of| of.budget_capacity = 0, "budget_capacity"),
            (|of| of.budget_capacity = 1_000_001, "budget_capacity"),
            (|of| of.budget_reserve = 101, "budget_reserve"),
        ];
        for (change, field) in cases {
            let mut config = RetryConfig::default();
            assert_eq!(config.validate(), Ok(()));
            change(&mut config);
            let fault = config.validate().unwrap_err();
            assert_eq!(fault.field, field);
            assert!(fault.to_string().starts_with(field), "{fault}");
        }
    }
}
