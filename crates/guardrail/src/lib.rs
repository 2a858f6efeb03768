//! Checks the arguments and the results of calls by an operator's [rules](Rule).
//!
//! **Two layers** share one [`Guardrails`]. [`ArgumentGuardLayer`] refuses calls for their
//! arguments, and may rewrite them: lists, dry runs, credentials, size, and a
//! [service](Screen) of the operator. [`ResultGuardLayer`] counts executions, and rewrites or
//! withholds results. It marks those of tools that reach into an open world as
//! [untrusted](UNTRUSTED_META).
//!
//! Where a tool has a [check](callward_core::Tool::argument_check), arguments that do not fit its
//! schema get an answer with `isError`.
//!
//! **Refused** calls fail as `NotSent`: [`Unauthorized`](callward_core::ErrorKind::Unauthorized)
//! for what they contain, `InvalidCall` for their size or a missing dry run, and `RateLimited` with
//! a time. A result that is withheld becomes an answer with `isError`, which says that the call has
//! run. All rules that concern a call apply, and arguments that two parsers may read differently
//! count as the stricter reading.
//!
//! **Readiness** is that of the inner service, taken again after a wait for the service.
//! **Cancellation:** a dropped call counts as an execution once it was sent. **Clone:** services of
//! one `Guardrails` share dry runs and counts.
//!
//! **Order.** `ArgumentGuardLayer` inside authorization and outside approval: a person is not asked
//! about what is refused anyway, and sees the arguments that run. `ResultGuardLayer` inside the
//! cache, which then keeps only what passed, and outside retry, so that attempts are not counted.
//! Not checked are progress reports, log messages, and what a server asks the client meanwhile.

mod arguments;
mod dry_runs;
mod executions;
mod guardrails;
mod results;
mod rule;
mod screen;

pub use arguments::{ArgumentGuard, ArgumentGuardLayer};
pub use guardrails::Guardrails;
pub use results::{ResultGuard, ResultGuardLayer, UNTRUSTED_META};
pub use rule::{Handling, MaxCalls, Rule, Sides, Size};
pub use screen::Screen;
