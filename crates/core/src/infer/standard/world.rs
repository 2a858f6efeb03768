//! Whether a tool reaches systems that its server does not control.
//!
//! That depends mostly on the server, and one tool shows little of it. So the specification's
//! default applies, which is also the careful one: open, unless there is evidence that the tool
//! stays within its server. Words of the web are evidence against that.

use super::look::Look;
use crate::infer::evidence::Reason;
use crate::infer::lexicon::{Role, Roles};
use crate::infer::words::Words;

/// Returns why a tool may reach out; `None` if its world seems closed.
pub(super) fn reaches_out(look: &Look<'_, '_>, server: &Words<'_>) -> Option<Reason> {
    let of_server = |role| server.iter().find_map(|word| Roles::of(word).word_if(role));
    let find = |role| look.first(role).or_else(|| of_server(role));
    match find(Role::Outside) {
        Some(word) => Some(Reason::ReachesOut(word)),
        None => find(Role::AtHome).is_none().then_some(Reason::MayReachOut),
    }
}
