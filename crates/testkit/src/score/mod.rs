//! How good inference is, measured on tools whose authors declared their hints.
//!
//! Each tool is resolved as the runtime would resolve it had its server declared nothing: name,
//! description, schema and server name are all there is. The effective hints are then compared with
//! the declared ones. A hint that stays open counts as `false`; a hint the author left out is not a
//! label and is not scored. Labels are opinions, and each server has its own; so figures over all
//! tools stand beside their mean over servers.
//!
//! One figure matters more than the others: *unsafe*, the share of tools declared not read-only, or
//! destructive, that come out as read-only. Such a tool would be cached and repeated.

mod corpus;
mod figures;
mod interval;
mod report;
mod worst;

pub use corpus::{Case, read};
pub use figures::{Counts, HINTS, Mistake, OfServer, Score, score, score_without_own};
pub use interval::{Interval, Intervals};
