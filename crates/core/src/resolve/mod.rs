//! From hints of several sources to one effective set, each field with its source and reason.

mod resolved;
mod vocabulary;

pub use resolved::{Provenance, Resolved};
pub use vocabulary::{Field, Source, Trust};
