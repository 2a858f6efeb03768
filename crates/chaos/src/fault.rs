//! What can go wrong with one call, at every point of its way.

use std::time::Duration;

use callward_core::ErrorKind;
use fastrand::Rng;

/// What goes wrong with one call.
///
/// A call is *executed* when all of its request was received and its tool took effect. Each fault
/// says whether and when that happens; what the caller sees of it is another matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Answered with an error.
    Answer {
        /// What is answered.
        refusal: Refusal,
        /// Whether the call is executed before. A 503 can follow the effect.
        runs: bool,
    },
    /// The whole server dies at this call, with all others it has. It is back after a while.
    Crash {
        /// Whether the call is executed before.
        runs: bool,
        /// How long no connection can be made.
        down: Duration,
    },
    /// Executed, and answered in single bytes with pauses between them.
    Drip {
        /// How long the answer takes in all.
        within: Duration,
    },
    /// Received, and never answered. The connection stays.
    Hang {
        /// Whether the call is executed.
        runs: bool,
    },
    /// The connection breaks at once; the request was received all the same, and is executed later,
    /// when the caller has long given up.
    LandLate {
        /// How much later.
        after: Duration,
        /// How the connection ends.
        broken: Break,
    },
    /// Executed, and the connection breaks within the answer.
    LoseReply {
        /// How many bytes of the answer are sent.
        sent: usize,
        /// How the connection ends.
        broken: Break,
    },
    /// The connection breaks within the request: it is not executed.
    LoseRequest {
        /// How many bytes of the request are read.
        read: usize,
        /// How the connection ends.
        broken: Break,
    },
    /// No connection can be made: nothing was sent, nothing is executed.
    Refuse,
    /// Answered as a failure of the tool itself: `isError`.
    Report {
        /// Whether the call is executed before.
        runs: bool,
    },
    /// Executed and answered, but late.
    Slow {
        /// How long until it is executed; as long again until it is answered.
        by: Duration,
    },
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "TCP knows two ways")]
pub enum Break {
    /// In good order, though too soon.
    Close,
    /// With a reset.
    Reset,
}

/// An error that a server answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// A JSON-RPC code if negative, an HTTP status otherwise.
    pub code: i64,
    /// When to come back. Only HTTP can say it.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// States an error without a time to come back.
    #[must_use]
    pub const fn new(code: i64) -> Self {
        Self {
            code,
            retry_after: None,
        }
    }

    /// Adds when to come back.
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Returns the kind of failure a client makes of it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self.code {
            429 => ErrorKind::RateLimited,
            401 | 403 => ErrorKind::Unauthorized,
            400..=499 | -32_602..=-32_600 | -32_700 => ErrorKind::InvalidCall,
            _ => ErrorKind::ServerFault,
        }
    }
}

impl Fault {
    /// Says whether the call is executed, now or later. A server that dies meanwhile, or that hears
    /// of a cancellation in time, may still prevent it.
    #[must_use]
    pub const fn runs(&self) -> bool {
        match self {
            Self::Answer { runs, .. }
            | Self::Crash { runs, .. }
            | Self::Hang { runs }
            | Self::Report { runs } => *runs,
            Self::Drip { .. }
            | Self::LandLate { .. }
            | Self::LoseReply { .. }
            | Self::Slow { .. } => true,
            Self::LoseRequest { .. } | Self::Refuse => false,
        }
    }

    /// Says whether the fault is one of the way to the server, not of the server.
    #[must_use]
    pub const fn is_transport(&self) -> bool {
        matches!(
            self,
            Self::Crash { .. }
                | Self::LandLate { .. }
                | Self::LoseReply { .. }
                | Self::LoseRequest { .. }
                | Self::Refuse
        )
    }

    /// Returns the word used in tables and counts.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Answer { .. } => "answer",
            Self::Crash { .. } => "crash",
            Self::Drip { .. } => "drip",
            Self::Hang { .. } => "hang",
            Self::LandLate { .. } => "land_late",
            Self::LoseReply { .. } => "lose_reply",
            Self::LoseRequest { .. } => "lose_request",
            Self::Refuse => "refuse",
            Self::Report { .. } => "report",
            Self::Slow { .. } => "slow",
        }
    }

    /// Makes its times so many times shorter.
    pub(crate) fn hastened(mut self, times: u32) -> Self {
        match &mut self {
            Self::Answer { refusal, .. } => {
                refusal.retry_after = refusal.retry_after.map(|wait| wait / times);
            }
            Self::Crash { down: time, .. }
            | Self::Drip { within: time }
            | Self::LandLate { after: time, .. }
            | Self::Slow { by: time } => *time /= times,
            Self::Hang { .. }
            | Self::LoseReply { .. }
            | Self::LoseRequest { .. }
            | Self::Refuse
            | Self::Report { .. } => {}
        }
        self
    }

    /// Draws each figure anew, between nothing and what it is here, and each choice evenly.
    pub(crate) fn drawn(self, rng: &mut Rng) -> Self {
        match self {
            Self::Answer { refusal, .. } => Self::Answer {
                refusal,
                runs: rng.bool(),
            },
            Self::Crash { down, .. } => Self::Crash {
                runs: rng.bool(),
                down: within(down, rng),
            },
            Self::Drip { within: most } => Self::Drip {
                within: within(most, rng),
            },
            Self::Hang { .. } => Self::Hang { runs: rng.bool() },
            Self::LandLate { after, .. } => Self::LandLate {
                after: within(after, rng),
                broken: Break::drawn(rng),
            },
            Self::LoseReply { sent, .. } => Self::LoseReply {
                sent: rng.usize(0..=sent),
                broken: Break::drawn(rng),
            },
            Self::LoseRequest { read, .. } => Self::LoseRequest {
                read: rng.usize(0..=read),
                broken: Break::drawn(rng),
            },
            Self::Refuse => Self::Refuse,
            Self::Report { .. } => Self::Report { runs: rng.bool() },
            Self::Slow { by } => Self::Slow {
                by: within(by, rng),
            },
        }
    }
}

impl Break {
    fn drawn(rng: &mut Rng) -> Self {
        if rng.bool() { Self::Close } else { Self::Reset }
    }
}

fn within(most: Duration, rng: &mut Rng) -> Duration {
    Duration::from_micros(rng.u64(0..=u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
}
