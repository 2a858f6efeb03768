//! When an attempt has to end, and the error it then ends with. Pure.

use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{Delivery, ErrorKind, Share, ToolCall, ToolError};
use tokio::time::Instant;

use super::Cap;
use super::meter::Meter;

/// The bounds of one attempt's time.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// Without progress.
    limit: Duration,
    /// With progress.
    cap: Duration,
    /// The attempt's share of the time to the deadline, until it ended without a retry.
    share: Option<Share>,
    /// The call's.
    deadline: Option<Instant>,
    /// The call, if its decisions are recorded.
    call: Option<ToolCall>,
}

/// Whether an attempt is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Not before this moment; `None` if only a result can end it for now.
    NotBefore(Option<Instant>),
    /// It is over, at this bound.
    Over(Bound),
}

/// A bound of an attempt. Of two at the same moment the first one here counts: after the deadline
/// no retry is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    Deadline,
    Limit,
    Share,
    Cap,
}

impl Bounds {
    pub(crate) fn of(call: &ToolCall, cap: Cap) -> Self {
        let limit = call.plan().limits.attempt_timeout;
        Self {
            limit,
            cap: cap.of(limit),
            share: call.attempt().share.clone(),
            deadline: call.deadline.map(Instant::from_std),
            call: call.clone_to_decide(),
        }
    }

    /// Returns `true` if a retry follows, so that the attempt ends with its share. If not, it goes
    /// on as if it had none.
    pub(crate) fn ends_with_share(&mut self, now: Instant) -> bool {
        let left = self
            .deadline
            .map_or(Duration::MAX, |at| at.saturating_duration_since(now));
        self.share = self.share.take().filter(|share| share.end(left));
        self.share.is_some()
    }

    /// Returns whether the attempt is over, and which bound comes first.
    pub(crate) fn due(&self, meter: &Meter, now: Instant) -> Due {
        let left = |bound: Duration, used: Duration| {
            // while a person decides, only the deadline comes closer
            let counts = !meter.person.is_open();
            counts.then(|| now.checked_add(bound.saturating_sub(used)))?
        };
        let share = self.share.as_ref();
        let share = share.and_then(|share| left(share.time(), meter.active(now)));
        let first = [
            (self.deadline, Bound::Deadline),
            (left(self.limit, meter.quiet(now)), Bound::Limit),
            (share, Bound::Share),
            (left(self.cap, meter.active(now)), Bound::Cap),
        ]
        .into_iter()
        .filter_map(|(at, bound)| Some((at?, bound)))
        .min();
        match first {
            Some((at, bound)) if at <= now => Due::Over(bound),
            first => Due::NotBefore(first.map(|(at, _)| at)),
        }
    }

    /// Returns an error if the deadline has passed before the call is sent.
    pub(crate) fn late(&self) -> Option<ToolError> {
        let ago = Instant::now().checked_duration_since(self.deadline?)?;
        self.record(|| {
            let why = "the call's deadline passed before it was sent";
            Decision::new(Stage::Timeout, Verdict::Refused, why)
        });
        let message = format!("the call's deadline passed {ago:?} ago; nothing was sent");
        let kind = ErrorKind::DeadlineExceeded;
        Some(ToolError::new(kind, Delivery::NotSent, message))
    }

    /// Records that progress stretched the attempt, if it did.
    pub(crate) fn answered(&self, meter: &Meter, now: Instant) {
        let active = meter.active(now);
        if active > self.limit && meter.last_report(now).is_some() {
            self.record(|| {
                let why = format!(
                    "progress stretched {:?}, at most to {:?}",
                    self.limit, self.cap
                );
                Decision::new(Stage::Timeout, Verdict::Extended, why).took(active)
            });
        }
    }

    fn record(&self, make: impl FnOnce() -> Decision) {
        if let Some(call) = &self.call {
            call.decided(make);
        }
    }

    /// Returns the error of an attempt that ended at a bound, and records it.
    pub(crate) fn error(&self, bound: Bound, meter: &Meter, now: Instant) -> ToolError {
        let (limit, cap) = (self.limit, self.cap);
        let after = now.saturating_duration_since(meter.started);
        let why = match bound {
            Bound::Cap => format!("no answer within {cap:?}, the cap with progress"),
            Bound::Deadline => format!("no answer before the call's deadline, after {after:?}"),
            Bound::Limit => format!("no answer and no progress within {limit:?}"),
            Bound::Share => {
                format!("no answer within {after:?}, its share of the time to the call's deadline")
            }
        };
        let kind = match bound {
            Bound::Deadline => ErrorKind::DeadlineExceeded,
            _ => ErrorKind::Timeout,
        };
        let progress = match meter.last_report(now) {
            Some(ago) => format!("the last progress was {ago:?} ago"),
            None => "no progress was reported".to_owned(),
        };
        let person = match meter.person.time(now.into_std()) {
            Duration::ZERO => String::new(),
            time if bound == Bound::Deadline => {
                format!("; {time:?} of it passed while a person was asked")
            }
            time => format!("; {time:?} of waiting for a person are not counted"),
        };
        let message = format!(
            "{why} (attempt timeout of {limit:?}, at most {cap:?} with progress); \
             {progress}{person}"
        );
        self.record(|| Decision::new(Stage::Timeout, Verdict::Ended, why).took(after));
        ToolError::new(kind, Delivery::Unknown, message)
    }
}
