//! Who may use the admin listener.
//!
//! A credential is in `Authorization` alone. No cookie is ever read: browsers send cookies for
//! pages of any site, but that header for none, so no other protection against forgery is needed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use callward::core::{Credential, CredentialKind};
use callward::{Caller, Delivery, ErrorKind, Principal, Stack, ToolError};
use callward_auth::keys::Secret;
use callward_auth::{Authenticated, Authenticator, Reason, Refusal, Sender, VerifyToken};
use callward_mcp::server::Refused;
use futures_util::StreamExt;

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
/// The principal of clients that nothing identifies.
pub(super) const ANONYMOUS: &str = "anonymous";

impl Role {
    /// Returns its name in credentials, and the scope that one needs which is limited to scopes: to
    /// change something that of destructive calls, and to view that of reads.
    const fn needs(self) -> [&'static str; 2] {
        match self {
            Self::Operator => [OPERATOR, "tools:destroy"],
            _ => [VIEWER, "tools:read"],
        }
    }

    /// Returns `true` if a credential names the role or a greater one, whatever its scopes.
    fn is_named(self, credential: &Credential) -> bool {
        let roles = &credential.roles;
        roles.contains(OPERATOR) || roles.contains(self.needs()[0])
    }

    /// Returns what a credential entitles to.
    fn of(credential: &Credential) -> Self {
        let scopes = credential.scopes.as_ref();
        let has = |scope| scopes.is_none_or(|scopes| scopes.contains(scope));
        let may = |role: &Self| role.is_named(credential) && has(role.needs()[1]);
        let mut roles = [Self::Operator, Self::Viewer].into_iter();
        roles.find(may).unwrap_or(Self::Anyone)
    }
}

/// Returns the principal of the operator of this machine: as anonymous as a client of the endpoint,
/// so that it shares its results. Where operators decide about calls it is another one than that of
/// any client: who asks does not decide.
pub(crate) fn principal(stack: &Stack) -> Principal {
    Principal::new(match stack.approvals() {
        Some(_) => OPERATOR,
        None => ANONYMOUS,
    })
}

/// Returns the operator of this machine.
pub(crate) fn local(kind: CredentialKind, principal: Principal) -> Arc<Caller> {
    let mut credential = Credential::default();
    credential.kind = kind;
    credential.name = (kind != CredentialKind::None).then(|| "admin".to_owned());
    credential.roles.insert(OPERATOR.to_owned());
    Arc::new(Caller::new(principal).with_credential(credential))
}

/// Verifies the token of this run, and the keys of clients.
struct Keys {
    token: Secret,
    operator: Principal,
    clients: Option<Arc<dyn VerifyToken>>,
}

impl VerifyToken for Keys {
    fn verify(&self, token: &str, peer: Option<IpAddr>) -> Authenticated {
        match &self.clients {
            _ if self.token.is(token) => {
                let operator = self.operator.clone();
                Authenticated::Now(Ok(local(CredentialKind::ApiKey, operator)))
            }
            Some(clients) => clients.verify(token, peer),
            None => Reason::UnknownKey.into(),
        }
    }
}

/// How often the sender of an open stream is identified again: as on the public listener.
const IDENTIFIED_EVERY: Duration = Duration::from_secs(10);

/// Decides about each request.
pub(crate) struct Access {
    authenticator: Authenticator,
    refusals: Refusals,
    /// Whether only the operator can connect: a request without a credential is the operator's.
    is_private: bool,
    /// The principal of the operator of this machine.
    operator: Principal,
}

impl Access {
    /// Admits who shows the token, or a key or token of a client that has a role. `None`: only the
    /// operator can connect, in this process or by a socket with mode 0600.
    pub(crate) fn new(
        auth: &Auth,
        token: Option<Secret>,
        refusals: &Refusals,
        operator: Principal,
    ) -> Self {
        let (mut authenticator, is_private) = (auth.authenticator(), token.is_none());
        if let Some(token) = token {
            let clients = authenticator.keys.take();
            authenticator.keys = Some(Arc::new(Keys {
                token,
                operator: operator.clone(),
                clients,
            }));
        }
        Self {
            authenticator,
            refusals: refusals.clone(),
            is_private,
            operator,
        }
    }

    /// Answers a request if its sender has the role. The request has its caller then, if that is a
    /// viewer at least. A stream of events ends when its sender has the role no more.
    pub(crate) async fn admit(
        self: Arc<Self>,
        needed: Role,
        mut request: Request,
        next: Next,
    ) -> Response {
        let (headers, uri) = (request.headers().clone(), request.uri().clone());
        let caller = match self.identify(&headers, &uri).await {
            Ok(caller) if Role::of(&caller.credential) >= needed.max(Role::Viewer) => caller,
            _ if needed == Role::Anyone => return next.run(request).await,
            Ok(caller) => return forbidden(needed, &caller.credential),
            Err(refusal) => return answer(self.refusals.refuse(refusal, None, None)),
        };
        request.extensions_mut().insert(caller.clone());
        let answer = next.run(request).await;
        if needed == Role::Operator {
            let (principal, key) = (&caller.principal, &caller.credential.name);
            let (path, status) = (uri.path(), answer.status().as_u16());
            tracing::info!(%principal, key, path, status, "an operator's request");
        }
        let kind = answer.headers().get(CONTENT_TYPE);
        if kind.is_none_or(|kind| kind != "text/event-stream") {
            return answer;
        }
        let refused = Box::pin(self.refused(needed, headers, uri));
        answer.map(|events| Body::from_stream(events.into_data_stream().take_until(refused)))
    }

    /// Waits until the sender of a request has the role no more. One that cannot be checked for now
    /// still has it.
    async fn refused(self: Arc<Self>, needed: Role, headers: HeaderMap, uri: Uri) {
        loop {
            tokio::time::sleep(IDENTIFIED_EVERY).await;
            match self.identify(&headers, &uri).await {
                Ok(caller) if Role::of(&caller.credential) >= needed => {}
                Err(refusal) if refusal.reason == Reason::Unavailable => {}
                _ => return,
            }
        }
    }

    /// Returns `true` if this is a key or token of the principal. Another one counts as refused.
    pub(super) async fn is_of(&self, key: &str, principal: &Principal) -> bool {
        // what no header can have is malformed, as none is
        let key = HeaderValue::try_from(format!("Bearer {key}"));
        let key = key.unwrap_or(HeaderValue::from_static("Bearer"));
        let headers = HeaderMap::from_iter([(AUTHORIZATION, key)]);
        let refusal = match self.identify(&headers, &Uri::default()).await {
            Ok(caller) if caller.principal == *principal => return true,
            Ok(_) => Reason::UnknownKey.into(),
            Err(refusal) => refusal,
        };
        let _ = self.refusals.refuse(refusal, None, None);
        false
    }

    async fn identify(&self, headers: &HeaderMap, uri: &Uri) -> Result<Arc<Caller>, Refusal> {
        if self.is_private && !headers.contains_key(AUTHORIZATION) {
            return Ok(local(CredentialKind::None, self.operator.clone()));
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

fn forbidden(needed: Role, credential: &Credential) -> Response {
    let [role, scope] = needed.needs();
    let text = match needed.is_named(credential) {
        true => format!("this needs the scope `{scope}`; the role of the key or token is enough"),
        false => format!("this needs a key or a token with the role `{role}`"),
    };
    let mut refused = Refused::new(StatusCode::FORBIDDEN, text);
    let challenge = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
    refused.challenge = Some(challenge);
    answer(refused)
}

fn answer(refused: Refused) -> Response {
    let text = refused.message.into_owned();
    let error = ToolError::new(ErrorKind::Unauthorized, Delivery::NotSent, text);
    let mut answer = http::json(refused.status, &view::refusal(&error));
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
pub(super) mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::Router;
    use axum::body::to_bytes;
    use axum::middleware::from_fn;
    use axum::response::sse::{Event, Sse};
    use axum::routing::get;
    use futures_util::stream;
    use opentelemetry::metrics::MeterProvider;
    use opentelemetry_sdk::metrics::SdkMeterProvider;
    use tokio::time::{Instant, sleep};
    use tower::ServiceExt;

    use super::*;

    /// Knows every token, as the name of its principal.
    struct Named;

    impl VerifyToken for Named {
        fn verify(&self, token: &str, _: Option<IpAddr>) -> Authenticated {
            Authenticated::Now(Ok(Arc::new(Caller::new(Principal::new(token)))))
        }
    }

    fn open() -> Access {
        let refusals = Refusals::new(&SdkMeterProvider::default().meter("test"));
        Access::new(&Auth::default(), None, &refusals, Principal::new(OPERATOR))
    }

    /// Tokens identify, each as the name of its principal.
    pub(in super::super) fn of_tokens() -> Access {
        let mut access = open();
        access.is_private = false;
        access.authenticator.tokens = Some(Arc::new(Named));
        access
    }

    /// Whether the one token there is has been revoked.
    #[derive(Default)]
    struct Revoked(AtomicBool);

    impl VerifyToken for Revoked {
        fn verify(&self, _: &str, _: Option<IpAddr>) -> Authenticated {
            match self.0.load(Ordering::Relaxed) {
                true => Reason::Revoked.into(),
                false => {
                    let operator = Principal::new(OPERATOR);
                    Authenticated::Now(Ok(local(CredentialKind::ApiKey, operator)))
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_the_credential_of_its_reader_is_revoked() {
        let revoked = Arc::new(Revoked::default());
        let mut access = open();
        access.authenticator.tokens = Some(revoked.clone());
        let access = Arc::new(access);
        let events = get(async || Sse::new(stream::pending::<Result<Event, Infallible>>()));
        let events = events.route_layer(from_fn(move |request, next| {
            access.clone().admit(Role::Viewer, request, next)
        }));
        let request = Request::get("/").header(AUTHORIZATION, "Bearer token");
        let request = request.body(Body::empty()).unwrap();
        let answer = Router::new().route("/", events).oneshot(request).await;
        let began = Instant::now();
        let revoke = async {
            sleep(IDENTIFIED_EVERY * 5 / 2).await;
            revoked.0.store(true, Ordering::Relaxed);
        };
        let (read, ()) = tokio::join!(to_bytes(answer.unwrap().into_body(), 1024), revoke);
        assert_eq!(
            (read.unwrap().len(), began.elapsed()),
            (0, IDENTIFIED_EVERY * 3)
        );
    }

    #[tokio::test]
    async fn who_lacks_a_scope_only_is_told_so() {
        let mut credential = Credential::default();
        credential.scopes = Some(["tools:read".to_owned()].into());
        for (role, lacks) in [
            ("viewer", "with the role `operator`"),
            (OPERATOR, "`tools:destroy`"),
        ] {
            credential.roles.insert(role.to_owned());
            let refused = forbidden(Role::Operator, &credential).into_body();
            let said = to_bytes(refused, 1024).await.unwrap();
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains(lacks), "{said}");
        }
    }

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
