//! What an attempt gets of the time to its call's deadline, readable while it runs.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What an attempt gets of the time to its call's deadline, so that there is some left for another.
///
/// It counts from the moment the attempt is sent: waiting in a queue uses none of it. When it has
/// passed, the layer that times the attempt asks if another one would follow. Only then the attempt
/// ends; otherwise it would fail for nothing, and it may go on until the deadline.
///
/// Clones share it; two are equal if they are clones of each other.
#[derive(Clone)]
pub struct Share(Arc<dyn TimeShare>);

/// The source of a [`Share`]: the layer that makes the attempts of a call.
pub trait TimeShare: Any + Send + Sync {
    /// Returns how long the attempt may take at least, from the moment it is sent.
    fn time(&self) -> Duration;

    /// Asks whether the attempt ends now because another one follows. `left` is the time to the
    /// call's deadline.
    fn end(&self, left: Duration) -> bool;

    /// Returns `true` if an attempt was ended this way.
    fn has_ended(&self) -> bool;
}

impl Share {
    /// Makes a share.
    #[must_use]
    pub fn new(share: Arc<impl TimeShare>) -> Self {
        Self(share)
    }

    /// Returns how long the attempt may take at least, from the moment it is sent.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.0.time()
    }

    /// Asks whether the attempt ends now because another one follows. `left` is the time to the
    /// call's deadline. If so, the attempt has to end: what the other one costs may have been paid.
    #[must_use]
    pub fn end(&self, left: Duration) -> bool {
        self.0.end(left)
    }

    /// Returns `true` if an attempt was ended this way: it was given less time than it would have
    /// had.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Returns what was given to [`new`](Self::new), for code that knows its type.
    #[must_use]
    pub fn downcast_ref<T: TimeShare>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("time", &self.time())
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Share {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always;

    impl TimeShare for Always {
        fn time(&self) -> Duration {
            Duration::from_secs(2)
        }

        fn end(&self, left: Duration) -> bool {
            left > self.time()
        }

        fn has_ended(&self) -> bool {
            true
        }
    }

    #[test]
    fn who_made_a_share_finds_it_again_and_clones_are_equal() {
        let share = Share::new(Arc::new(Always));
        assert!(share.downcast_ref::<Always>().is_some());
        assert_eq!(share, share.clone());
        assert_ne!(share, Share::new(Arc::new(Always)));
        assert_eq!(format!("{share:?}"), "Share { time: 2s, has_ended: true }");
    }
}
