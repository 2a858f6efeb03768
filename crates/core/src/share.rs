//! The share of an attempt in the time to its call's deadline, readable while it runs.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What an attempt gets of the time to its call's deadline.
pub type Share = Arc<dyn TimeShare>;

/// What an attempt gets of the time to its call's deadline, so that there is some left for another:
/// the layer that makes the attempts of a call knows.
///
/// It counts from the moment the attempt is sent: waiting in a queue uses none of it. When it has
/// passed, the layer that times the attempt asks if another one would follow. Only then the attempt
/// ends; otherwise it would fail without need, and it may go on until the deadline.
pub trait TimeShare: Any + fmt::Debug + Send + Sync {
    /// Returns how long the attempt may take at least, from the moment it is sent.
    fn time(&self) -> Duration;

    /// Asks whether the attempt ends now because another one follows. `left` is the time to the
    /// call's deadline. If so, the attempt has to end: what the other one costs may have been paid.
    fn end(&self, left: Duration) -> bool;

    /// Returns `true` if an attempt was ended this way: it was given less time than it would have
    /// had.
    fn has_ended(&self) -> bool;
}
