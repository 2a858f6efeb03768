//! From hints of several sources to one effective set, each field with its source and reason.
//!
//! **Rule.** Sources are laid over each other: inferred, then the server's defaults, then what the
//! server declares for the tool, then the operator's word. `tags` are united, every other field is
//! replaced. Two things bend this, both towards the stricter reading:
//!
//! - *Relaxing needs a reason.* A hint relaxes if it makes a call cheaper or less watched:
//!   read-only, idempotent, not destructive, closed world, no confirmation. An inferred hint that
//!   relaxes counts only on strong evidence. One that tightens always counts.
//! - *Trust.* On a `trusted` server declared hints count as they are. On a `standard` one they
//!   count unless strong evidence says the opposite: a tool that is named `delete_user` and
//!   declared read-only is destructive, and a warning says why. On an `untrusted` one neither
//!   declared nor inferred hints relax anything, and what is then still open is read as the MCP
//!   specification reads silence: not read-only, destructive, not idempotent, open world.
//!
//! Server defaults and the operator's word are configuration, so they count whatever the trust.
//!
//! At last the set is made to agree with itself. `destructiveHint` and `idempotentHint` mean
//! nothing on a read-only tool; so where both read-only and destructive came out, the one from the
//! stronger source stands, and of equal ones destructive. Where the tool turns out not to be
//! read-only, the `idempotentHint` of a source that called it so falls too, except the operator's:
//! it was said of a read, and many servers set it on every read.
//!
//! ```
//! use callward_core::infer::{RuleSet, Subject};
//! use callward_core::resolve::{Hints, Trust, resolve};
//! use callward_core::{Annotations, CallPlan, Effect, Profile};
//!
//! let inferred = RuleSet::Standard.infer(&Subject::new("delete_user"));
//! let declared = Annotations::default().with_read_only(true);
//! let resolved = resolve(&Hints::new(&inferred, &declared, Trust::Standard));
//! let plan = CallPlan::derive(&resolved, &Profile::standard());
//! assert_eq!(plan.effect, Effect::Destructive);
//! println!("{}", resolved.warnings()[0]);
//! ```

mod resolved;
mod rule;
mod slot;
mod vocabulary;

pub use resolved::{Provenance, Resolved};
pub use rule::{Hints, resolve};
pub use vocabulary::{Field, Source, Trust};
