//! On whose behalf a call is made.

use std::fmt;
use std::sync::{Arc, OnceLock};

macro_rules! opaque {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Creates it from a name, as it is.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

opaque!(
    /// On whose behalf a call is made; part of every cache key.
    ///
    /// Opaque to the runtime: two principals are the same exactly if their texts are.
    Principal
);

opaque!(
    /// One conversation of one client, as its transport sees it.
    SessionId
);

/// The caller: its principal, and its session if there is one.
///
/// Built once per session and shared by `Arc`, so that a call carries one pointer.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Caller {
    /// On whose behalf.
    pub principal: Principal,
    /// The session, if the transport has sessions.
    pub session: Option<SessionId>,
}

impl Caller {
    /// Names a caller without a session.
    pub const fn new(principal: Principal) -> Self {
        Self {
            principal,
            session: None,
        }
    }

    /// Adds the session.
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// Returns the caller used where none is named: the process itself, principal `local`.
    pub fn local() -> Arc<Self> {
        Self::local_ref().clone()
    }

    /// The same, without another reference count.
    pub(crate) fn local_ref() -> &'static Arc<Self> {
        static LOCAL: OnceLock<Arc<Caller>> = OnceLock::new();
        LOCAL.get_or_init(|| Arc::new(Self::new(Principal::new("local"))))
    }
}

words! {
    /// How a layer that keeps something for each session treats calls without one.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    WithoutSession {
        /// All calls of one principal are one session. Right where each principal is one agent.
        ByPrincipal = "by_principal",
        /// They pass as if the layer were not there: a principal may stand for many conversations.
        Pass = "pass",
    } default Pass
}
