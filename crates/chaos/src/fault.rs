//! The faults of one call.

use std::time::Duration;

use callward_core::ErrorKind;
use fastrand::Rng;

/// The fault of one call. A call is *executed* when its complete request was received and its tool
/// took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Answered with an error.
    Answer {
        /// The error.
        refusal: Refusal,
        /// Whether the call is executed before.
        runs: bool,
    },
    /// The server crashes at this call, with all others in flight, and restarts later.
    Crash {
        /// Whether the call is executed before.
        runs: bool,
        /// How long the server is down.
        down: Duration,
    },
    /// Executed, and answered byte by byte.
    Drip {
        /// The time of the whole answer.
        within: Duration,
    },
    /// Received, and never answered. The connection stays open.
    Hang {
        /// Whether the call is executed.
        runs: bool,
    },
    /// The connection breaks at once, but the request was received and is executed later.
    LandLate {
        /// The delay of the execution.
        after: Duration,
        /// How the connection ends.
        broken: Break,
    },
    /// Executed, and the connection breaks within the answer.
    LoseReply {
        /// The number of sent bytes.
        sent: usize,
        /// How the connection ends.
        broken: Break,
    },
    /// The connection breaks within the request: it is not executed.
    LoseRequest {
        /// The number of read bytes.
        read: usize,
        /// How the connection ends.
        broken: Break,
    },
    /// The connection is refused: nothing is sent or executed.
    Refuse,
    /// Answered with `isError`.
    Report {
        /// Whether the call is executed before.
        runs: bool,
    },
    /// Executed and answered, but late.
    Slow {
        /// The time until it is executed, and from then until it is answered.
        by: Duration,
    },
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "TCP knows two ways")]
pub enum Break {
    /// With an orderly close.
    Close,
    /// With a reset.
    Reset,
}

/// An error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Refusal {
    /// A JSON-RPC code if negative, an HTTP status otherwise.
    pub code: i64,
    /// The `Retry-After` of HTTP.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Creates an error without `Retry-After`.
    pub const fn new(code: i64) -> Self {
        Self {
            code,
            retry_after: None,
        }
    }

    /// Adds `Retry-After`.
    pub const fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Returns the kind of error that a client derives from it.
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
    /// Returns `true` if the call is executed, now or later, unless the server crashes before.
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

    /// Divides its times.
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

    /// Draws each number between zero and its value here, and each choice evenly.
    pub(crate) fn drawn(mut self, rng: &mut Rng) -> Self {
        match &mut self {
            Self::Answer { runs, .. } | Self::Hang { runs } | Self::Report { runs } => {
                *runs = rng.bool();
            }
            Self::Crash { runs, down } => {
                *runs = rng.bool();
                *down = within(*down, rng);
            }
            Self::Drip { within: time } | Self::Slow { by: time } => *time = within(*time, rng),
            Self::LandLate { after, broken } => {
                *after = within(*after, rng);
                *broken = Break::drawn(rng);
            }
            Self::LoseReply {
                sent: bytes,
                broken,
            }
            | Self::LoseRequest {
                read: bytes,
                broken,
            } => {
                *bytes = rng.usize(0..=*bytes);
                *broken = Break::drawn(rng);
            }
            Self::Refuse => {}
        }
        self
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
