//! Recorded sessions as the traffic of a day: the hits of each lifetime, and the stale ones.
//!
//! `docs/benchmarks/freshness.md` documents what is recorded and what is modelled. All random
//! choices follow from one seed. The schedule is the same for every lifetime: a hit does not make
//! an agent faster. A session name with a slash (`run/task`) works on the state of its task. A
//! stale answer differs from what running the call at that moment would have returned.
//!
//! The benchmark `freshness` includes this module.

pub(crate) mod figures;
mod model;
pub(crate) mod random;
mod run;
mod state;

pub(crate) use self::figures::Figures;
pub(crate) use self::model::{Model, Traffic};
pub(crate) use self::run::{Freshness, measure};

/// A recording that cannot be replayed.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;
