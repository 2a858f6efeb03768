//! Ends loops in which one session sends the same failing call over and over.
//!
//! **Rule.** After [`LoopGuardConfig::failures`] failures in a row of one write (the same session,
//! tool and JSON arguments), the guard answers it with `isError`, and no server is asked.
//! [`LoopGuardConfig::WAIT`] after the last failure it admits one trial. A success of any write, or
//! one that may have had an effect, clears all other calls: it may have removed the cause. Reads
//! always pass, as they may poll for a change from outside, and further rounds, as they are no
//! repeats.
//!
//! An answer with `isError`, and an error that says *never*, are failures. One that says *later* is
//! not: not sent, rate limited, breaker open, cancelled, with a `Retry-After`; nor is a call that
//! [waits](callward_core::OutputStatus::Waits) for a person.
//!
//! **Readiness** is that of the inner service. **Cancellation:** a dropped call is not a failure; a
//! dropped trial is admitted again. **Clone:** services of one layer share their state. **Errors:**
//! none, as models read answers.
//!
//! **Order.** Outside approval, whose denials count as failures, and outside retry: a call that
//! failed after all its attempts counts.

mod call;
mod config;
mod layer;
mod outcome;
mod table;

pub use config::LoopGuardConfig;
pub use layer::{LoopGuard, LoopGuardLayer, LoopGuardStats};
