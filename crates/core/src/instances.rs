//! The owner of the instance that serves a call.

use std::time::Duration;

use crate::{Caller, Principal, SessionId};

words! {
    /// How the state that a server keeps is divided among its callers.
    ///
    /// Many servers keep state per client: a browser's tabs, a cursor, a list of thoughts. The
    /// protocol gives each client a process, or a session, of its own. Where clients share one
    /// instance, each sees and changes what the others do.
    #[non_exhaustive]
    Instances {
        /// One instance serves all callers.
        Shared = "shared",
        /// One instance per principal.
        Principal = "principal",
        /// One instance per session of a principal. Calls without a session have one per principal.
        Session = "session",
    } default Shared
}

impl Instances {
    /// Returns whose instance serves a caller; `None` if all callers share one.
    #[inline]
    pub fn owner(self, caller: &Caller) -> Option<Owner<'_>> {
        let session = match self {
            Self::Shared => return None,
            Self::Principal => None,
            Self::Session => caller.session.as_ref(),
        };
        Some(Owner {
            principal: &caller.principal,
            session,
        })
    }
}

/// The owner of an instance: a principal, or one of its sessions. A session alone is not an owner:
/// a session id that another principal learned must not lead to the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Owner<'a> {
    /// On whose behalf.
    pub principal: &'a Principal,
    /// The session, if the instance belongs to one.
    pub session: Option<&'a SessionId>,
}

/// One instance of a server, as operators see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceStatus {
    /// The principal it serves or served last; `None` if it has served no principal yet.
    pub principal: Option<Principal>,
    /// The session it serves; `None` if it serves a principal, or none yet.
    pub session: Option<SessionId>,
    /// What it does: `listing`, `spare`, `starting`, `up`, `down` or `ending`.
    pub state: &'static str,
    /// How long ago it was started, or connected for the last time.
    pub age: Duration,
    /// How long it took until it could be called first; `None` before that.
    pub startup: Option<Duration>,
    /// How many calls it was given.
    pub calls: u64,
    /// How many of them are in flight.
    pub in_flight: usize,
    /// How many bytes of memory its processes hold; `None` for remote servers, and where the system
    /// does not report it.
    pub memory: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_principal_and_its_session() {
        let alone = Caller::new(Principal::new("ada"));
        let ada = alone.clone().with_session(SessionId::new("s"));
        let eve = Caller::new(Principal::new("eve")).with_session(SessionId::new("s"));
        assert_eq!(Instances::Shared.owner(&ada), None);
        let principal = Instances::Principal.owner(&ada).unwrap();
        assert_eq!(Some(principal), Instances::Principal.owner(&alone));
        assert_eq!(Some(principal), Instances::Session.owner(&alone));
        let session = Instances::Session.owner(&ada).unwrap();
        assert_ne!(session, principal);
        assert_ne!(Some(session), Instances::Session.owner(&eve));
    }
}
