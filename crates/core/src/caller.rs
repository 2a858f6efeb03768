//! On whose behalf a call is made.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

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

impl Principal {
    /// Names the subject that an issuer vouches for, as `ISSUER#SUBJECT`. Another issuer's subject
    /// of the same name is another principal.
    pub fn of(issuer: &str, subject: &str) -> Self {
        // no `#` of the issuer may be taken for the one that ends it
        Self::new(format!("{}#{subject}", issuer.replace('#', "%23")))
    }
}

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
    /// What the principal showed, and what it may do with it.
    pub credential: Arc<Credential>,
    /// The toolset whose path the client uses, if it uses one.
    pub toolset: Option<Arc<str>>,
}

words! {
    /// How a caller showed who it is.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    CredentialKind {
        /// Not at all: it is on the same machine, or no one asked.
        None = "none",
        /// An API key of this gateway.
        ApiKey = "api_key",
        /// A signed token of an issuer.
        Jwt = "jwt",
        /// A token that its issuer was asked about.
        Opaque = "opaque",
        /// A client certificate.
        Certificate = "certificate",
        /// A header of a trusted proxy.
        Proxy = "proxy",
    } default None
}

/// What a caller showed, and what it entitles to. Never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Credential {
    /// How the caller showed who it is.
    pub kind: CredentialKind,
    /// A name for people, such as that of an API key.
    pub name: Option<String>,
    /// The roles of the caller.
    pub roles: BTreeSet<String>,
    /// The scopes that the credential is limited to; `None` if it is not limited.
    pub scopes: Option<BTreeSet<String>>,
    /// When it stops being valid, if ever.
    pub expires: Option<SystemTime>,
}

impl Caller {
    /// Names a caller without a session and without a credential.
    pub fn new(principal: Principal) -> Self {
        Self {
            principal,
            session: None,
            credential: Arc::default(),
            toolset: None,
        }
    }

    /// Sets what the caller showed.
    pub fn with_credential(mut self, credential: Credential) -> Self {
        self.credential = Arc::new(credential);
        self
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
