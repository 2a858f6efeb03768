//! The settings of the layer.

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

/// When a slow read gets a second attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HedgeConfig {
    /// The percentile of a tool's latency above which a call is slow. Default: 95, so that about
    /// one call in twenty is sent twice.
    pub percentile: u32,
}

impl Default for HedgeConfig {
    fn default() -> Self {
        Self { percentile: 95 }
    }
}

impl HedgeConfig {
    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if (50..=99).contains(&self.percentile) {
            return Ok(());
        }
        let reason = "is not between 50 and 99; below, most calls would be sent twice";
        Err(InvalidConfig::new("percentile", reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        for (percentile, valid) in [(49, false), (50, true), (99, true), (100, false)] {
            let fault = HedgeConfig { percentile }.validate().err();
            assert_eq!(fault.is_none_or(|fault| fault.field != "percentile"), valid);
        }
    }
}
