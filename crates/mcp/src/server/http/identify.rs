//! Who sends a request.

use std::borrow::Cow;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use callward_core::{BoxFuture, Caller, Principal};
use futures_util::future::Either;
use http::request::Parts;
use http::{HeaderValue, StatusCode};

/// Finds out who sends a request, before its body is read. No call is made without a caller.
///
/// A credential that is there and not valid is a refusal: never fall back to another way.
pub trait Identify: Send + Sync + 'static {
    /// Returns the caller of a request, at once if no other machine has to be asked.
    fn identify(&self, request: &Parts) -> Identified;

    /// Returns the `WWW-Authenticate` header for a call whose caller has a valid credential and has
    /// to ask for one with these scopes, separated by spaces. Default: none.
    fn step_up(&self, request: &Parts, scopes: &str) -> Option<HeaderValue> {
        let _ = (request, scopes);
        None
    }
}

/// What [`Identify::identify`] finds: on the left if it is known already, on the right if another
/// machine has to be asked.
pub type Identified =
    Either<Ready<Result<Arc<Caller>, Refused>>, BoxFuture<'static, Result<Arc<Caller>, Refused>>>;

/// Why a request is refused before it is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refused {
    /// 401 if a valid credential is missing, 403 if it does not suffice, 503 if it cannot be
    /// checked now.
    pub status: StatusCode,
    /// What is said to the client. Must not contain anything of the credential.
    pub message: Cow<'static, str>,
    /// The `WWW-Authenticate` header. Default: none.
    pub challenge: Option<HeaderValue>,
    /// When a retry may succeed. Default: unknown.
    pub retry_after: Option<Duration>,
}

impl Refused {
    /// Refuses with a status and a reason.
    #[must_use]
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
            challenge: None,
            retry_after: None,
        }
    }
}

/// Identifies every client as the principal `anonymous`: for listeners that only this machine can
/// reach.
#[derive(Debug, Clone)]
pub struct Anonymous(Arc<Caller>);

impl Default for Anonymous {
    fn default() -> Self {
        Self(Arc::new(Caller::new(Principal::new("anonymous"))))
    }
}

impl Identify for Anonymous {
    fn identify(&self, _: &Parts) -> Identified {
        Either::Left(ready(Ok(self.0.clone())))
    }
}
