//! Finds the credential of a request that counts: the first of three.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use callward_core::{BoxFuture, Caller};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};

use crate::{Reason, Refusal, TrustedProxy};

/// The longest credential that is looked at, in bytes.
pub const MAX_CREDENTIAL: usize = 8 * 1024;

/// How each API key begins. A token that begins so is a key and nothing else.
pub(crate) const KEY_PREFIX: &str = "cwk_";

/// Decides whether a token is valid.
pub trait VerifyToken: Send + Sync + 'static {
    /// Returns whose token it is, at once if no other machine has to be asked. The token is not
    /// empty, has at most [`MAX_CREDENTIAL`] bytes, and only characters of a bearer token. `peer`
    /// is that of its [`Sender`].
    fn verify(&self, token: &str, peer: Option<IpAddr>) -> Authenticated;
}

/// What [`VerifyToken::verify`] finds.
#[expect(clippy::exhaustive_enums, reason = "a result is there or not")]
pub enum Authenticated {
    /// It is known already.
    Now(Result<Arc<Caller>, Refusal>),
    /// Another machine has to be asked.
    Later(BoxFuture<'static, Result<Arc<Caller>, Refusal>>),
}

impl From<Reason> for Authenticated {
    fn from(reason: Reason) -> Self {
        Self::Now(Err(reason.into()))
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(found) => f.debug_tuple("Now").field(found).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// What is known of who sends a request.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by its fields")]
pub struct Sender<'r> {
    /// The headers of the request.
    pub headers: &'r HeaderMap,
    /// Its target.
    pub uri: &'r Uri,
    /// The address at the other end of the connection, unless that is a Unix socket or a pipe.
    pub peer: Option<IpAddr>,
    /// Whose certificate the connection has shown, where certificates count. The listener has
    /// verified it.
    pub certificate: Option<&'r Result<Arc<Caller>, Reason>>,
}

/// Without the headers: they have credentials.
impl fmt::Debug for Sender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.peer, self.certificate).fmt(f)
    }
}

/// Identifies the sender of a request.
///
/// The first of these credentials counts, in this order:
///
/// 1. the `Authorization` header: `Bearer` with an API key or a token;
/// 2. the header in which a trusted proxy names its user;
/// 3. the client certificate of the connection.
///
/// If the first one is not valid, the request is refused: no other one is tried. So is one with a
/// credential in the query of its address, with two headers of a kind, or with a proxy's header
/// that is malformed or from anyone else, whatever else it has.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Authenticator {
    /// What verifies API keys. Default: none, and every key is unknown.
    pub keys: Option<Arc<dyn VerifyToken>>,
    /// What verifies all other tokens. Default: none, and every token is unknown.
    pub tokens: Option<Arc<dyn VerifyToken>>,
    /// Which proxies name users. Default: none, and no header does.
    pub proxy: Option<TrustedProxy>,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("keys", &self.keys.is_some())
            .field("tokens", &self.tokens.is_some())
            .field("proxy", &self.proxy)
            .finish()
    }
}

impl Authenticator {
    /// Identifies the sender of a request.
    pub fn authenticate(&self, sender: Sender<'_>) -> Authenticated {
        self.find(sender).unwrap_or_else(Into::into)
    }

    fn find(&self, sender: Sender<'_>) -> Result<Authenticated, Reason> {
        let named = self.proxy.as_ref().map(|proxy| proxy.user(sender));
        let named = named.transpose()?.flatten();
        let Some(token) = bearer(sender.headers, sender.uri)? else {
            let shown = || sender.certificate.map_or(Err(Reason::Missing), valid_now);
            let caller = named.map_or_else(shown, Ok)?;
            return Ok(Authenticated::Now(Ok(caller)));
        };
        let verifier = match token.starts_with(KEY_PREFIX) {
            true => &self.keys,
            false => &self.tokens,
        };
        let verifier = verifier.as_ref().ok_or(Reason::UnknownKey)?;
        Ok(verifier.verify(token, sender.peer))
    }
}

/// Returns whose certificate it is. A connection may outlive it.
fn valid_now(shown: &Result<Arc<Caller>, Reason>) -> Result<Arc<Caller>, Reason> {
    let caller = shown.clone()?;
    match caller.credential.expires {
        Some(end) if end <= now() => Err(Reason::Expired),
        _ => Ok(caller),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "people, issuers and authorities state times of the day; nothing else reads them"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the token of a request; `None` if there is no `Authorization` header.
fn bearer<'r>(headers: &'r HeaderMap, uri: &Uri) -> Result<Option<&'r str>, Reason> {
    let mut query = uri.query().unwrap_or_default().split('&');
    let is_credential = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        name == "access_token" || value.starts_with(KEY_PREFIX)
    };
    if query.any(is_credential) {
        return Err(Reason::Malformed);
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Reason::Several);
    }
    let text = value.to_str().map_err(|_| Reason::Malformed)?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Reason::Scheme);
    }
    let token = token.trim_matches(' ');
    if token.len() > MAX_CREDENTIAL {
        return Err(Reason::TooLong);
    }
    // RFC 6750: letters, digits and six signs, and `=` at the end
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    let body = token.trim_end_matches('=');
    let is_token = !body.is_empty() && body.bytes().all(is_sign);
    match is_token {
        true => Ok(Some(token)),
        false => Err(Reason::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use callward_core::Principal;
    use http::HeaderValue;

    use super::*;
    use crate::ProxyConfig;

    /// Knows every token, under this name.
    struct All(&'static str);

    impl VerifyToken for All {
        fn verify(&self, _: &str, _: Option<IpAddr>) -> Authenticated {
            let principal = Principal::new(self.0);
            Authenticated::Now(Ok(Arc::new(Caller::new(principal))))
        }
    }

    fn found(by: &Authenticator, headers: &[&[u8]], uri: &str) -> Result<String, Reason> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(AUTHORIZATION, HeaderValue::from_bytes(header).unwrap());
        }
        let sender = Sender {
            headers: &map,
            uri: &uri.parse().unwrap(),
            peer: None,
            certificate: None,
        };
        named(by.authenticate(sender))
    }

    fn named(found: Authenticated) -> Result<String, Reason> {
        match found {
            Authenticated::Now(Ok(caller)) => Ok(caller.principal.to_string()),
            Authenticated::Now(Err(refusal)) => Err(refusal.reason),
            Authenticated::Later(_) => unreachable!("nothing is asked"),
        }
    }

    #[test]
    fn a_request_has_one_bearer_token_in_its_header() {
        let both = Authenticator {
            keys: Some(Arc::new(All("keys"))),
            tokens: Some(Arc::new(All("tokens"))),
            proxy: None,
        };
        let long = [b"Bearer ", &[b'a'; MAX_CREDENTIAL][..]].concat();
        let too_long = [&long[..], b"a"].concat();
        let refused = |reason| Err(reason);
        let known = |by: &str| Ok(by.to_owned());
        for (headers, uri, expected) in [
            (&[][..], "/mcp", refused(Reason::Missing)),
            (&[&b"Bearer cwk_a"[..]], "/mcp", known("keys")),
            (&[b"bEARER   cwk_a "], "/mcp?a=b", known("keys")),
            (&[b"Bearer a.b-c_d~e+f/g=="], "/mcp", known("tokens")),
            (&[&long], "/mcp", known("tokens")),
            (&[&too_long], "/mcp", refused(Reason::TooLong)),
            (
                &[b"Bearer a", b"Bearer a"],
                "/mcp",
                refused(Reason::Several),
            ),
            (&[b"Bearer a", b""], "/mcp", refused(Reason::Several)),
            (&[b""], "/mcp", refused(Reason::Scheme)),
            (&[b"Bearer"], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer "], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer =="], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer a b"], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer a,Bearer b"], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer a\xff"], "/mcp", refused(Reason::Malformed)),
            (&[b"Basic YTpi"], "/mcp", refused(Reason::Scheme)),
            (&[b"cwk_a"], "/mcp", refused(Reason::Scheme)),
            (&[], "/mcp?access_token=a", refused(Reason::Malformed)),
            (&[], "/mcp?a=b&key=cwk_a", refused(Reason::Malformed)),
            (
                &[b"Bearer a"],
                "/mcp?access_token",
                refused(Reason::Malformed),
            ),
        ] {
            assert_eq!(found(&both, headers, uri), expected, "{headers:?} {uri}");
        }
        let none = Authenticator::default();
        for token in [&b"Bearer cwk_a"[..], b"Bearer a"] {
            assert_eq!(found(&none, &[token], "/"), Err(Reason::UnknownKey));
        }
        let keys = Authenticator {
            tokens: None,
            ..both
        };
        assert_eq!(found(&keys, &[b"Bearer a"], "/"), Err(Reason::UnknownKey));
    }

    fn holder(expires: Option<SystemTime>) -> Arc<Caller> {
        let mut credential = callward_core::Credential::default();
        credential.expires = expires;
        let caller = Caller::new(Principal::new("certificate"));
        Arc::new(caller.with_credential(credential))
    }

    #[test]
    fn the_first_credential_alone_decides() {
        let by = Authenticator {
            keys: Some(Arc::new(All("keys"))),
            tokens: None,
            proxy: TrustedProxy::new(&ProxyConfig {
                header: "x-user".into(),
                peers: vec!["10.0.0.0/8".into()],
                roles_header: None,
            })
            .ok(),
        };
        let known = |by: &str| Some(Ok(by.to_owned()));
        let refused = |reason| Some(Err(reason));
        let listed = Some(IpAddr::from([10, 0, 0, 1]));
        let certificates = [
            (None, None),
            (Some(Ok(holder(None))), known("certificate")),
            (
                Some(Ok(holder(Some(SystemTime::UNIX_EPOCH)))),
                refused(Reason::Expired),
            ),
            (Some(Err(Reason::NoName)), refused(Reason::NoName)),
        ];
        for (token, of_token) in [
            (None, None),
            (Some("Bearer cwk_a"), known("keys")),
            (Some("Bearer a"), refused(Reason::UnknownKey)),
            (Some("Basic a"), refused(Reason::Scheme)),
        ] {
            for (user, of_user) in [(None, None), (Some("ada"), known("proxy#ada"))] {
                let mut headers = HeaderMap::new();
                let mut add = |name, value| headers.append(name, HeaderValue::from_static(value));
                token.map(|token| add("authorization", token));
                user.map(|user| add("x-user", user));
                add("x-forwarded-for", "10.0.0.1");
                for peer in [None, listed, Some([11, 0, 0, 1].into())] {
                    for (certificate, of_certificate) in &certificates {
                        let all = [&of_token, &of_user, of_certificate];
                        let first = all.into_iter().flatten().next().cloned();
                        let expected = match user {
                            Some(_) if peer != listed => Err(Reason::UntrustedPeer),
                            _ => first.unwrap_or(Err(Reason::Missing)),
                        };
                        let sender = Sender {
                            headers: &headers,
                            uri: &Uri::from_static("/mcp"),
                            peer,
                            certificate: certificate.as_ref(),
                        };
                        let found = named(by.authenticate(sender));
                        assert_eq!(found, expected, "{sender:?}");
                    }
                }
            }
        }
    }
}
