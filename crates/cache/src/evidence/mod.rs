//! How long a tool's answers stay equal, learned from calls that were executed more than once.
//!
//! An execution of a call that was executed before, under the same epochs, is an observation: its
//! answer is equal or different. *A lifetime is allowed while in each [bucket](bucket) of gaps up
//! to it the upper bound of P(different) is at most the odds*: one-sided, 95 %, valid at every
//! look.
//!
//! A bucket [passes](estimator) by an e-process. For p < odds, the product of p/odds for each
//! different and (1-p)/(1-odds) for each equal observation is a supermartingale if P(different) is
//! at least the odds; so is a mixture over several p, and by Ville's inequality it reaches 20 with
//! a chance of at most 1/20, however often one looks. See Robbins, Ann. Math. Stat. 41, 1970;
//! Howard, Ramdas, McAuliffe and Sekhon, Ann. Stat. 49, 2021; Waudby-Smith and Ramdas, JRSS B 86,
//! 2024. An observation of weight w < 1 is a factor to the power of w: by Jensen's inequality its
//! mean stays at most 1.
//!
//! Ageing (half-life one day) is such a weight too. At any one time the chance is at most 1/20;
//! there is no bound over all times, as differences age as well. The bound is for one bucket: of
//! many keys that pass by their own evidence, some pass by chance.
//!
//! One event may change many keys, so equal observations at about the same time are not
//! independent. In each bucket at most one of them counts for each stretch of time as long as the
//! bucket's edge, of a tool and of a key: 332 observations within 1 s take at least 332 s, however
//! many clients call. Different observations all count.

mod bucket;
mod estimator;
mod file;
mod key;
mod keys;
mod registry;
mod status;
mod tool;

#[cfg(test)]
mod tests;

pub(crate) use file::wall;
pub(crate) use registry::{Evidences, Subject};
pub use status::{BucketStatus, EvidenceStatus};
pub(crate) use tool::ToolEvidence;
