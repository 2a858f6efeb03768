//! The settings of approvals.

use std::time::Duration;

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

/// How long requests live, how many there may be, and how long calls wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ApprovalConfig {
    /// How long a request is open: to be decided and, once approved, to be run. Default: 15 min.
    #[serde(with = "callward_core::human::duration")]
    pub expires: Duration,
    /// How long a call waits for a decision, before it ends with the answer to ask again. Below the
    /// 60 s after which many clients give up. Default: 50 s.
    #[serde(with = "callward_core::human::duration")]
    pub hold: Duration,
    /// How long a denial bars equal calls. Default: 5 min.
    #[serde(with = "callward_core::human::duration")]
    pub cool_off: Duration,
    /// How many requests of one principal may be pending. Default: 64.
    pub pending_per_principal: usize,
    /// How many requests may be pending in all. Default: 10,000.
    pub pending: usize,
    /// The name of this process among those that share a store, the same after a restart. Default:
    /// `main`.
    pub instance: String,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Self {
            expires: minutes(15),
            hold: Duration::from_secs(50),
            cool_off: minutes(5),
            pending_per_principal: 64,
            pending: 10_000,
            instance: "main".to_owned(),
        }
    }
}

impl ApprovalConfig {
    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let expires = Duration::from_secs(1)..=DAY;
        let (field, reason) = match self {
            config if !expires.contains(&config.expires) => {
                ("expires", "is not between 1 s and 1 day")
            }
            config if config.cool_off > DAY => ("cool_off", "is above 1 day"),
            Self { pending: 0, .. } => ("pending", "is 0, which refuses every call"),
            config if config.pending_per_principal == 0 => {
                ("pending_per_principal", "is 0, which refuses every call")
            }
            _ => return Ok(()),
        };
        Err(InvalidConfig::new(field, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        let base = ApprovalConfig::default();
        assert_eq!(base.validate(), Ok(()));
        type Change = fn(&mut ApprovalConfig);
        for (field, change) in [
            (
                "expires",
                (|config| config.expires = Duration::ZERO) as Change,
            ),
            ("expires", |config| config.expires = Duration::MAX),
            ("cool_off", |config| config.cool_off = Duration::MAX),
            ("pending_per_principal", |config| {
                config.pending_per_principal = 0;
            }),
            ("pending", |config| config.pending = 0),
        ] {
            let mut config = base.clone();
            change(&mut config);
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
