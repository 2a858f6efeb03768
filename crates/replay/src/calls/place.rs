//! Which calls meet: the state a call works on, on whose behalf, and what makes two the same.

use callward_core::FingerprintKey;

use crate::trace::RecordedCall;

/// Where a call stands. Equal numbers meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The state that calls read and write.
    pub(crate) world: u128,
    /// The principal; meaningful within the world.
    pub(crate) principal: u128,
    /// The conversation.
    pub(crate) session: u128,
    /// Calls with the same clock have comparable times.
    pub(crate) clock: u128,
    /// World, principal, tool and arguments.
    pub(crate) key: u128,
}

impl Place {
    pub(crate) fn of(call: &RecordedCall, share_sessions: bool) -> Self {
        // nothing here is secret
        let hash = FingerprintKey::fixed();
        let text = |text: &str| hash.bytes(text.as_bytes());
        let trace = text(&call.trace);
        let session = hash.combine(&[0, trace, text(&call.session)]);
        let shared = hash.combine(&[1, trace]);
        let set = call.set.as_deref();
        let own = if share_sessions { shared } else { session };
        let world = set.map_or(own, |set| hash.combine(&[2, trace, text(set)]));
        let principal = match call.principal.as_deref() {
            Some(principal) if !share_sessions => hash.combine(&[3, trace, text(principal)]),
            _ => own,
        };
        let raw = call.arguments().as_bytes();
        // arguments without a structural hash are compared as text
        let arguments = hash.json(raw).unwrap_or_else(|| hash.bytes(raw));
        let key = [world, principal, text(call.tool.as_str()), arguments];
        Self {
            world,
            principal,
            session,
            clock: if world == session { session } else { shared },
            key: hash.combine(&key),
        }
    }
}
