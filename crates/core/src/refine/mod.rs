//! Rules over a call's arguments: one tool, several plans.
//!
//! A tool such as `browser_tabs` does what its argument `action` says: `list` reads, `close` does
//! not. Its own plan must fit the worst it can do. An operator who knows the tool adds
//! [`ArgumentRule`]s, each with conditions and hints; they are bound to the tool when it is
//! registered ([`Refinements`]), and read when a call is made, before anything is decided about it.
//!
//! **Rule.** All conditions of a rule must hold. The first rule that matches wins; where none does,
//! the tool's own plan stands. The hints of a rule are laid over what the operator says about the
//! tool, as a statement of the operator, and everything is weighed anew ([`resolve`]): so each hint
//! still knows its source, and its reason names the rule.
//!
//! **Doubt.** Between what we read and what the tool's server reads there must be no gap. Where a
//! text can be read in two ways, no rule is trusted and none is ignored: such a call gets the
//! strictest of all the tool's plans, its own and those of its rules, in every respect
//! ([`Refinements::strictest`]). There is doubt if
//!
//! - the arguments are not JSON, or no object;
//! - a member that any rule looks for, or a member on the way to it, is given twice, or under a
//!   name that some take for it: some parsers take the first, some the last, some do not tell
//!   `Action` from `action`, and some end a name at a control character;
//! - a text stands where a rule expects an object or array, and it may itself be JSON that the
//!   server unpacks;
//! - it must be known whether an argument is present, and it is `null`: to many servers that is
//!   the same as absent;
//! - two numbers differ, but not once they are rounded to a double;
//! - a text of more than 16 KiB is to be matched with a pattern.
//!
//! The last three concern one condition, so they matter only if the rules before it do not match.
//!
//! **Equality** is exact, and of JSON: `1` is not `"1"`. Numbers are compared by value: `1`, `1.0`
//! and `1e0` are the same, whatever the number of digits. Objects are equal if their members are,
//! in any order. The order of members and white space never change a verdict.
//!
//! A server may read more into an argument than JSON says (`"true"` for `true`, `DELETE` for
//! `delete`). So give the tool itself the hints of the worst it does, and let rules name what is
//! harmless: what no rule knows then gets the careful plan.
//!
//! ```
//! use callward_core::infer::Inferred;
//! use callward_core::refine::{ArgumentRule, Condition, Refinements, When};
//! use callward_core::resolve::{Hints, Trust, resolve};
//! use callward_core::{Annotations, CallPlan, Effect, Profile};
//!
//! let reads = ArgumentRule::new(
//!     When::argument("action", Condition::equals("list"))?,
//!     Annotations::default().with_read_only(true),
//! )?;
//! let (inferred, profile) = (Inferred::default(), Profile::standard());
//! let declared = Annotations::default().with_destructive(true);
//! let hints = Hints::new(&inferred, &declared, Trust::Standard);
//! let own = CallPlan::derive(&resolve(&hints), &profile);
//!
//! let rules = Refinements::bind(&[reads], &hints, &own, &profile);
//! let effect = |arguments: &str| {
//!     let applied = rules.apply(arguments.as_bytes());
//!     rules.plan(applied).map_or(own.effect, |plan| plan.effect)
//! };
//! assert_eq!(effect(r#"{"action": "list"}"#), Effect::ReadOnly);
//! assert_eq!(effect(r#"{"action": "close"}"#), Effect::Destructive);
//! assert_eq!(effect(r#"{"action": "list", "action": "close"}"#), Effect::Destructive);
//! # Ok::<(), callward_core::refine::InvalidRule>(())
//! ```
//!
//! [`resolve`]: mod@crate::resolve

mod bound;
mod compare;
mod condition;
mod number;
mod path;
mod read;
mod rule;
mod strictest;

pub use bound::{Applied, Doubt, RefinedRule, Refinements, Unmet};
pub use condition::Condition;
pub use path::ArgumentPath;
pub use rule::{ArgumentRule, InvalidRule, When};
