//! Windows in which nothing ran, which trials are compared with.

use std::collections::HashMap;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

/// The calls with controls.
const MAX_CALLS: usize = 256;
/// The controls of one call.
const MAX_CONTROLS: usize = 4;
/// Older controls are of another time, when others may have written more or less.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The longest controls of each call that are not compared yet: a short one fits few trials. Which
/// are kept and which one is compared does not depend on whether the answer changed.
#[derive(Debug, Default)]
pub(super) struct Controls(HashMap<u128, SmallVec<[Control; MAX_CONTROLS]>>);

#[derive(Debug)]
struct Control {
    ended: Instant,
    gap: Duration,
    changed: bool,
}

impl Controls {
    pub(super) fn put(&mut self, call: u128, now: Instant, gap: Duration, changed: bool) {
        if !self.0.contains_key(&call) && self.0.len() >= MAX_CALLS {
            self.0.retain(|_, of_call| {
                of_call.retain(|control| control.is_recent(now));
                !of_call.is_empty()
            });
            if self.0.len() >= MAX_CALLS {
                self.0.clear();
            }
        }
        let of_call = self.0.entry(call).or_default();
        of_call.retain(|control| control.is_recent(now));
        let at = of_call.partition_point(|control| control.gap < gap);
        let ended = now;
        of_call.insert(
            at,
            Control {
                ended,
                gap,
                changed,
            },
        );
        if of_call.len() > MAX_CONTROLS {
            of_call.remove(0);
        }
    }

    /// Takes the shortest control that is at least this long; returns whether the answer changed.
    pub(super) fn take(&mut self, call: u128, now: Instant, gap: Duration) -> Option<bool> {
        let of_call = self.0.get_mut(&call)?;
        let fits = |control: &Control| control.gap >= gap && control.is_recent(now);
        let at = of_call.iter().position(fits)?;
        Some(of_call.remove(at).changed)
    }
}

impl Control {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.ended) <= MAX_AGE
    }
}
