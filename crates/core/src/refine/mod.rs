//! Rules over a call's arguments: one tool, several plans.
//!
//! A tool such as `browser_tabs` does what its argument `action` says: `list` reads, `close` does
//! not. Its own plan must fit its most harmful use. An operator who knows the tool adds
//! [`ArgumentRule`]s, each with conditions and hints. They are bound to the tool when it is
//! registered ([`Refinements`]), and read when a call is made, before any layer decides about it.
//!
//! **Rule.** All conditions of a rule must hold. The first rule that matches wins; if none matches,
//! the tool's own plan applies. The hints of a rule are laid over the operator's hints for the
//! tool, and all sources are [resolved](mod@crate::resolve) again: so each hint still has its
//! source, and its reason names the rule.
//!
//! **Doubt.** A server may read arguments in another way than this crate. If a text can be read in
//! two ways, the call gets the strictest of all the tool's plans ([`Doubt`]).
//!
//! **Equality** is exact, and of JSON: see [`Condition`].
//!
//! A server may read more into an argument than JSON says (`"true"` for `true`, `DELETE` for
//! `delete`). So give the tool itself the hints of its most harmful use, and let rules name
//! harmless calls: arguments that match no rule then get the careful plan.

mod bound;
mod compare;
mod condition;
mod path;
mod read;
mod rule;
mod strictest;
mod written;

pub use bound::{Applied, Doubt, RefinedRule, Refinements, Unmet};
pub use condition::Condition;
pub use path::ArgumentPath;
pub use rule::{ArgumentRule, ArgumentsRead, When};
