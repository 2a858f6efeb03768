//! Merges hints of several sources into one effective set, each field with its source and reason.
//!
//! **Rule.** Later sources override earlier ones: inferred, then the server's defaults, then what
//! the server declares for the tool, then the operator's hints. `tags` are united, every other
//! field is replaced. Two rules make the result stricter:
//!
//! - *Relaxing needs a reason.* A hint relaxes if it makes a call cheaper or less watched:
//!   read-only, idempotent, not destructive, closed world, no confirmation. An inferred hint that
//!   relaxes counts only on strong evidence. One that tightens always counts.
//! - *Trust.* On a `trusted` server declared hints count as they are. On a `standard` one they
//!   count unless strong evidence says the opposite: a tool that is named `delete_user` and
//!   declared read-only is destructive, and a warning says why. On an `untrusted` one neither
//!   declared nor inferred hints relax anything, and a field that is then still open gets the
//!   default of the MCP specification: not read-only, destructive, not idempotent, open world.
//!
//! What is observed, and what plugins of discovery set, only tightens.
//!
//! Server defaults and the operator's hints are configuration, so they count at every trust level.
//!
//! Finally the set is made consistent. `destructiveHint` and `idempotentHint` mean nothing on a
//! read-only tool. So if both read-only and destructive result, the hint from the stronger source
//! wins, and `destructiveHint` wins a tie. If the tool turns out not to be read-only, the
//! `idempotentHint` of a source that called it read-only is dropped too, except the operator's: it
//! described a read, and many servers set it on every read.

mod resolved;
mod rule;
mod slot;
mod vocabulary;

pub use resolved::{Observation, Provenance, Resolved};
pub use rule::{Hints, resolve};
pub use vocabulary::{Field, Source, Trust};
