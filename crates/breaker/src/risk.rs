//! Whether a call may be a probe.

use callward_core::CallPlan;

/// Whether a call may be a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a call may be sent into the unknown, or not"
)]
pub enum Risk {
    /// It changes nothing, or may be sent again if its outcome is unknown: a probe like any other.
    Safe,
    /// It changes something and must not be sent twice: a probe only where nothing else can be.
    Write,
}

impl Risk {
    /// Reads it off a plan.
    #[must_use]
    pub const fn of(plan: &CallPlan) -> Self {
        if plan.is_write() && !plan.is_retryable() {
            Self::Write
        } else {
            Self::Safe
        }
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::{call, tool};
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_must_not_run_twice_is_a_risk() {
        let of = |tool| Risk::of(call(&tool, json!({})).plan());
        assert_eq!(of(tool("get").read_only().build()), Risk::Safe);
        assert_eq!(of(tool("set").idempotent().build()), Risk::Safe);
        assert_eq!(of(tool("add").build()), Risk::Write);
        assert_eq!(of(tool("drop").destructive().build()), Risk::Write);
    }
}
