//! Recorded sessions replayed as the traffic of a day: how many hits each lifetime gives, and how many
//! of them are stale.
//!
//! What is recorded: the tools, the arguments, the order of a session's calls, which calls failed,
//! which were writes, and where a repeated call of a session had another answer. Recorded times
//! between the calls of a session and recorded durations are used where they exist.
//!
//! What is modelled, all of it from one seed:
//!
//! - *Times.* A session begins at a random moment of an eight-hour day. Where no times are recorded,
//!   the model takes a log-normal time between two calls (median 3 s, sigma 0.9); one in ten of these
//!   pauses waits for a person instead (median 40 s, sigma 1). A call of unknown duration takes a
//!   log-normal time (median 0.2 s, sigma 0.8). The schedule is the same under every lifetime: a hit
//!   does not make an agent faster.
//! - *Load.* Each recorded session happens [`Model::times`] times a day, as a session of its own.
//! - *State.* All sessions of a recording share one state, except that a session name with a slash
//!   (`run/task`) works on the state of its task. Answers change when a write succeeds, for all
//!   reads that have a value of an argument in common with it; and where a recorded session saw another
//!   answer than before: at its last write in between, else at a random moment in between.
//! - *Others.* A call with several recorded answers is also changed from outside, without a call
//!   through the cache: [`Model::outside`] times an hour, at random moments.
//!
//! A stale answer is one that differs from what executing the call at that moment would have
//! returned.

mod figures;
mod model;
mod run;
mod state;

pub use self::figures::{BucketSum, Figures, ToolEvidence, evidence_grid, grid};
pub use self::model::{Model, Traffic};
pub use self::run::{Freshness, measure};
