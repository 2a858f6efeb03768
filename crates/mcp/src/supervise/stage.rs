//! When the processes of a server are terminated and killed: a pure state machine.

use std::time::Duration;

use super::KILL_TIME;

/// How long it takes between two rounds of SIGKILL: what was ended has to be waited for.
const ROUND: Duration = Duration::from_millis(5);

/// The stage of the termination. Times are those of [`now`](super::now).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The server runs.
    Serving,
    /// Its input is closed, which asks it to end by itself.
    Asked { until: Duration },
    /// All have been sent SIGTERM.
    Terminating { until: Duration },
    /// All are sent SIGKILL, again and again.
    Killing { until: Duration },
    /// What is left cannot be ended.
    GivenUp,
}

/// The events so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Seen {
    pub(super) server_ended: bool,
    pub(super) client_is_gone: bool,
    /// How often the client has asked for the end.
    pub(super) signals: usize,
}

impl Stage {
    /// Returns the stage after `seen`.
    ///
    /// A signal that comes while the processes are terminating for another reason is the first:
    /// only the second one kills, so that SIGTERM is always followed by the client's grace period.
    pub(super) fn next(self, seen: Seen, now: Duration, grace: Duration) -> Self {
        let killing = Self::Killing {
            until: now.saturating_add(KILL_TIME),
        };
        let later = now.saturating_add(grace);
        match self {
            Self::Serving | Self::Asked { .. } if seen.signals > 1 => killing,
            Self::Serving | Self::Asked { .. } if seen.server_ended || seen.signals > 0 => {
                Self::Terminating { until: later }
            }
            Self::Serving if seen.client_is_gone => Self::Asked { until: later },
            Self::Asked { until } if now >= until => Self::Terminating { until: later },
            Self::Terminating { until } if seen.signals > 1 || now >= until => killing,
            Self::Killing { until } if now >= until => Self::GivenUp,
            other => other,
        }
    }

    /// Returns how long to wait for something to happen; nothing: for ever.
    pub(super) fn pause(self, now: Duration) -> Option<Duration> {
        match self {
            Self::Serving => None,
            Self::Asked { until } | Self::Terminating { until } => Some(until.saturating_sub(now)),
            Self::Killing { .. } => Some(ROUND),
            Self::GivenUp => Some(Duration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(2);

    #[test]
    fn each_stage_follows_the_one_before_in_its_time() {
        // what is seen at which millisecond, and the stages that follow
        for (steps, names) in [
            ("0 none, 9999 none", "serving serving"),
            (
                "0 gone, 1999 gone, 2000 gone, 4000 gone",
                "asked asked terminating killing",
            ),
            (
                "0 ended, 1999 ended, 2000 ended, 6999 ended, 7000 ended",
                "terminating terminating killing killing given-up",
            ),
            ("0 signalled, 1 twice", "terminating killing"),
            ("0 twice", "killing"),
            // the client's first signal does not cut short what began without it
            (
                "0 gone, 2000 gone, 2001 gone-signalled",
                "asked terminating terminating",
            ),
            ("0 gone, 1 gone-signalled", "asked terminating"),
        ] {
            let mut stage = Stage::Serving;
            let followed = steps.split(", ").map(|step| {
                let (millis, words) = step.split_once(' ').unwrap();
                let seen = Seen {
                    client_is_gone: words.contains("gone"),
                    server_ended: words.contains("ended"),
                    signals: match words.split('-').next_back() {
                        Some("signalled") => 1,
                        Some("twice") => 2,
                        _ => 0,
                    },
                };
                stage = stage.next(seen, Duration::from_millis(millis.parse().unwrap()), GRACE);
                match stage {
                    Stage::Serving => "serving",
                    Stage::Asked { .. } => "asked",
                    Stage::Terminating { .. } => "terminating",
                    Stage::Killing { .. } => "killing",
                    Stage::GivenUp => "given-up",
                }
            });
            assert_eq!(Vec::from_iter(followed).join(" "), names, "{steps}");
        }
    }
}
