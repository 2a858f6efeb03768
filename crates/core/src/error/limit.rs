//! The limit that refused a call.

use std::time::Duration;

/// A limit of one principal that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the layer that refuses makes it")]
pub struct LimitReached {
    /// Its name.
    pub name: &'static str,
    /// How much it allows.
    pub max: u32,
    /// How long until it is as if unused; `None` if that is not known.
    pub reset: Option<Duration>,
}
