//! When an attempt has to end, and what is said if it does. Pure.

use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict, Writer};
use callward_core::{Delivery, ErrorKind, Share, ToolCall, ToolError};
use tokio::time::Instant;

use super::config::Cap;
use super::meter::Meter;

/// What an attempt is held to.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Without progress.
    limit: Duration,
    /// With it.
    cap: Duration,
    /// What it has of the time to the deadline, and whether that is over and was not its end.
    share: Option<Share>,
    is_kept: bool,
    /// The call's.
    deadline: Option<Instant>,
    /// Who reads what comes of it, if anybody does.
    writer: Option<Writer>,
}

/// Whether an attempt is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Not before this moment; `None` if nothing but an answer can end it as things are.
    NotBefore(Option<Instant>),
    /// It is, and this did it.
    Over(Ended),
}

/// What ended an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Cap,
    Deadline,
    Limit,
    Share,
}

impl Terms {
    pub(crate) fn of(call: &ToolCall, cap: Cap) -> Self {
        let limit = call.plan().limits.attempt_timeout;
        Self {
            limit,
            cap: cap.of(limit),
            share: call.attempt().share.clone(),
            is_kept: false,
            deadline: call.deadline().map(Instant::from_std),
            writer: Writer::of(call),
        }
    }

    /// Says whether the attempt ends with its share. If not, it goes on as if it had none.
    pub(crate) fn ends_with_share(&mut self, now: Instant) -> bool {
        let left = self
            .deadline
            .map_or(Duration::MAX, |at| at.saturating_duration_since(now));
        let ends = self.share.as_ref().is_some_and(|share| share.end(left));
        self.is_kept = !ends;
        ends
    }

    /// Says whether the attempt is over, by what came first.
    pub(crate) fn due(&self, meter: &Meter, now: Instant) -> Due {
        let mut ends = [(self.deadline, Ended::Deadline); 4];
        // while a person is waited for, nothing but the deadline comes closer
        if !meter.is_asking() {
            let left = |of: Duration, used: Duration| now.checked_add(of.saturating_sub(used));
            let share = self.share.as_ref().filter(|_| !self.is_kept);
            ends = [
                (self.deadline, Ended::Deadline),
                (
                    share.and_then(|share| left(share.time(), meter.active(now))),
                    Ended::Share,
                ),
                (left(self.cap, meter.active(now)), Ended::Cap),
                (left(self.limit, meter.quiet(now)), Ended::Limit),
            ];
        }
        let first = ends
            .into_iter()
            .filter_map(|(at, ended)| Some((at?, ended)))
            // of two at one moment, the one further back: the deadline only if nothing else
            .min_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp_on_tie(b.1)));
        match first {
            Some((at, ended)) if at <= now => Due::Over(ended),
            first => Due::NotBefore(first.map(|(at, _)| at)),
        }
    }

    /// Says why the call is not even handed over, if it comes too late.
    pub(crate) fn too_late(&self) -> Option<ToolError> {
        let deadline = self.deadline?;
        let ago = Instant::now().checked_duration_since(deadline)?;
        let limit = self.limit;
        self.tell(|| {
            let why = "the call's deadline passed before it was sent";
            Decision::new(Stage::Timeout, Verdict::Refused, why)
        });
        let message = format!(
            "the call's deadline passed {ago:?} ago; nothing was sent (the attempt timeout is \
             {limit:?})"
        );
        let kind = ErrorKind::DeadlineExceeded;
        Some(ToolError::new(kind, Delivery::NotSent, message))
    }

    /// Says whether anybody reads what comes of the attempt's time.
    pub(crate) const fn is_told(&self) -> bool {
        self.writer.is_some()
    }

    /// Writes down that the attempt was answered beyond its time, as its server reported progress.
    pub(crate) fn answered(&self, meter: &Meter, now: Instant) {
        let active = meter.active(now);
        if active > self.limit && meter.last_report(now).is_some() {
            let (limit, cap) = (self.limit, self.cap);
            let why = || format!("progress stretched {limit:?}, at most to {cap:?}");
            self.tell(|| Decision::new(Stage::Timeout, Verdict::Extended, why()).took(active));
        }
    }

    fn tell(&self, make: impl FnOnce() -> Decision) {
        if let Some(writer) = &self.writer {
            writer.decided(make);
        }
    }

    /// States what ended the attempt, and what else it was held to.
    pub(crate) fn error(&self, ended: Ended, meter: &Meter, now: Instant) -> ToolError {
        let (limit, cap) = (self.limit, self.cap);
        let started = meter.started().unwrap_or(now);
        let after = now.saturating_duration_since(started);
        self.tell(|| {
            let why = match ended {
                Ended::Cap => format!("{cap:?}, the most that progress may stretch its time to"),
                Ended::Deadline => "the call's deadline".to_owned(),
                Ended::Limit => format!("no answer and no progress within {limit:?}"),
                Ended::Share => "its share of the time to the call's deadline".to_owned(),
            };
            Decision::new(Stage::Timeout, Verdict::Ended, why).took(after)
        });
        let (kind, what) = match ended {
            Ended::Cap => (
                ErrorKind::Timeout,
                format!(
                    "no answer within {cap:?}, the most that progress may stretch the attempt \
                         timeout of {limit:?} to"
                ),
            ),
            Ended::Deadline => (
                ErrorKind::DeadlineExceeded,
                format!(
                    "no answer before the call's deadline, {after:?} after it was sent (the \
                     attempt timeout is {limit:?}, at most {cap:?} with progress)"
                ),
            ),
            Ended::Limit => (
                ErrorKind::Timeout,
                format!(
                    "no answer and no progress within the attempt timeout of {limit:?} (at most \
                     {cap:?} with progress)"
                ),
            ),
            Ended::Share => (
                ErrorKind::Timeout,
                format!(
                    "no answer within {after:?}, this attempt's share of the time to the call's \
                     deadline (the attempt timeout is {limit:?}, at most {cap:?} with progress)"
                ),
            ),
        };
        let progress = match meter.last_report(now) {
            Some(ago) => format!("the last progress was {ago:?} ago"),
            None => "no progress was reported".to_owned(),
        };
        let person = match meter.person(now) {
            Duration::ZERO => String::new(),
            time => format!("; {time:?} of waiting for a person are not counted"),
        };
        let deadline = match self.deadline {
            None => "; the call has no deadline".to_owned(),
            Some(_) if ended == Ended::Deadline => String::new(),
            Some(at) => {
                let left = at.saturating_duration_since(started);
                format!("; the call's deadline was {left:?} away")
            }
        };
        let kept = match &self.share {
            Some(share) if self.is_kept => format!(
                "; its share of that time was over after {:?}, but no repeat could follow",
                share.time()
            ),
            _ => String::new(),
        };
        let message = format!("{what}; {progress}{person}{deadline}{kept}");
        ToolError::new(kind, Delivery::Unknown, message)
    }
}

impl Ended {
    /// Orders what ends an attempt at the same moment. The deadline comes first: at its end, no
    /// repeat is possible whatever else is said. The limit comes before the cap, which nothing has
    /// stretched it to then.
    fn cmp_on_tie(self, other: Self) -> std::cmp::Ordering {
        let rank = |ended| match ended {
            Self::Deadline => 0,
            Self::Limit => 1,
            Self::Share => 2,
            Self::Cap => 3,
        };
        rank(self).cmp(&rank(other))
    }
}
