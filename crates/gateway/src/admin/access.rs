//! Who may use the admin listener.
//!
//! A credential is in `Authorization` alone. No cookie is ever read: browsers send cookies for
//! pages of any site, but that header for none, so no other protection against forgery is needed.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use callward::core::{Credential, CredentialKind};
use callward::{Caller, Delivery, ErrorKind, Principal, ToolError};
use callward_auth::keys::Secret;
use callward_auth::{Authenticated, Authenticator, Reason, Refusal, Sender, VerifyToken};
use callward_mcp::server::Refused;

use crate::auth::{Auth, Refusals};
use crate::{http, view};

/// What a caller may do on the admin listener, and what a route needs. The greater includes the
/// lesser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// What probes and scrapers ask, without a credential.
    Anyone,
    /// Everything that changes nothing.
    Viewer,
    /// Changes, and calls of tools.
    Operator,
}

/// The names of the roles of keys and tokens.
const VIEWER: &str = "viewer";
const OPERATOR: &str = "operator";

impl Role {
    /// Returns what a credential entitles to. One that is limited to scopes needs the scope of
    /// reads to view, and that of destructive calls to change something.
    fn of(credential: &Credential) -> Self {
        let scopes = credential.scopes.as_ref();
        let has = |scope| scopes.is_none_or(|scopes| scopes.contains(scope));
        let is = |role| credential.roles.contains(role);
        if is(OPERATOR) && has("tools:destroy") {
            Self::Operator
        } else if (is(OPERATOR) || is(VIEWER)) && has("tools:read") {
            Self::Viewer
        } else {
            Self::Anyone
        }
    }
}

/// Returns the operator of this machine: as anonymous as a client of the endpoint, so that it
/// shares its results.
pub(crate) fn local(kind: CredentialKind) -> Arc<Caller> {
    let mut credential = Credential::default();
    credential.kind = kind;
    credential.name = (kind != CredentialKind::None).then(|| "admin".to_owned());
    credential.roles.insert(OPERATOR.to_owned());
    let caller = Caller::new(Principal::new("anonymous"));
    Arc::new(caller.with_credential(credential))
}

/// Verifies the token of this run, and the keys of clients.
struct Keys {
    token: Secret,
    clients: Option<Arc<dyn VerifyToken>>,
}

impl VerifyToken for Keys {
    fn verify(&self, token: &str, peer: Option<IpAddr>) -> Authenticated {
        match &self.clients {
            _ if self.token.is(token) => Authenticated::Now(Ok(local(CredentialKind::ApiKey))),
            Some(clients) => clients.verify(token, peer),
            None => Reason::UnknownKey.into(),
        }
    }
}

/// Decides about each request.
pub(crate) struct Access {
    authenticator: Authenticator,
    refusals: Refusals,
    /// Whether only the operator can connect: a request without a credential is the operator's.
    is_private: bool,
}

impl Access {
    /// Admits who shows the token, or a key or token of a client that has a role. `None`: only the
    /// operator can connect, in this process or by a socket with mode 0600.
    pub(crate) fn new(auth: &Auth, token: Option<Secret>, refusals: &Refusals) -> Self {
        let (mut authenticator, is_private) = (auth.authenticator(), token.is_none());
        if let Some(token) = token {
            let clients = authenticator.keys.take();
            authenticator.keys = Some(Arc::new(Keys { token, clients }));
        }
        Self {
            authenticator,
            refusals: refusals.clone(),
            is_private,
        }
    }

    /// Answers a request if its sender has the role. The request has its caller then, if that is a
    /// viewer at least.
    pub(crate) async fn admit(&self, needed: Role, mut request: Request, next: Next) -> Response {
        let caller = match self.identify(request.headers(), request.uri()).await {
            Ok(caller) if Role::of(&caller.credential) >= needed.max(Role::Viewer) => caller,
            _ if needed == Role::Anyone => return next.run(request).await,
            Ok(_) => return forbidden(needed),
            Err(refusal) => return answer(self.refusals.refuse(refusal, None, None)),
        };
        let path = request.uri().path().to_owned();
        request.extensions_mut().insert(caller.clone());
        let answer = next.run(request).await;
        if needed == Role::Operator {
            let (principal, key) = (&caller.principal, &caller.credential.name);
            let status = answer.status().as_u16();
            tracing::info!(%principal, key, path, status, "an operator's request");
        }
        answer
    }

    async fn identify(&self, headers: &HeaderMap, uri: &Uri) -> Result<Arc<Caller>, Refusal> {
        if self.is_private && !headers.contains_key(AUTHORIZATION) {
            return Ok(local(CredentialKind::None));
        }
        // no proxy and no certificate names an operator
        let sender = Sender {
            headers,
            uri,
            peer: None,
            certificate: None,
        };
        match self.authenticator.authenticate(sender) {
            Authenticated::Now(found) => found,
            Authenticated::Later(found) => found.await,
        }
    }
}

fn forbidden(needed: Role) -> Response {
    let role = match needed {
        Role::Operator => OPERATOR,
        _ => VIEWER,
    };
    let text = format!("this needs a key or a token with the role `{role}`");
    let mut refused = Refused::new(StatusCode::FORBIDDEN, text);
    let challenge = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
    refused.challenge = Some(challenge);
    answer(refused)
}

fn answer(refused: Refused) -> Response {
    let text = refused.message.into_owned();
    let error = ToolError::new(ErrorKind::Unauthorized, Delivery::NotSent, text);
    let mut answer = http::json(refused.status, &view::error(&error));
    if let Some(challenge) = refused.challenge {
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if let Some(wait) = refused.retry_after {
        let seconds = wait.as_secs().saturating_add(1);
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_limited_by_the_scopes_of_its_credential() {
        let all = "tools:read tools:write tools:destroy";
        for (roles, scopes, expected) in [
            ("", None, Role::Anyone),
            ("dev Operator", None, Role::Anyone),
            ("viewer", None, Role::Viewer),
            ("operator", None, Role::Operator),
            ("viewer operator", Some(all), Role::Operator),
            ("operator", Some("tools:read tools:write"), Role::Viewer),
            ("viewer", Some(all), Role::Viewer),
            ("viewer", Some("tools:write"), Role::Anyone),
            ("operator", Some(""), Role::Anyone),
        ] {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            let mut credential = Credential::default();
            credential.roles = words(roles);
            credential.scopes = scopes.map(words);
            assert_eq!(Role::of(&credential), expected, "{roles} {scopes:?}");
        }
    }
}
