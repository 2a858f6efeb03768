//! Finds the one credential of a request.

use std::fmt;
use std::sync::Arc;

use callward_core::{BoxFuture, Caller};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};

use crate::{Reason, Refusal};

/// The longest credential that is looked at, in bytes.
pub const MAX_CREDENTIAL: usize = 8 * 1024;

/// How each API key begins. A token that begins so is a key and nothing else.
pub(crate) const KEY_PREFIX: &str = "cwk_";

/// Decides whether a token is valid.
pub trait VerifyToken: Send + Sync + 'static {
    /// Returns whose token it is, at once if no other machine has to be asked. The token is not
    /// empty, has at most [`MAX_CREDENTIAL`] bytes, and only characters of a bearer token.
    fn verify(&self, token: &str) -> Authenticated;
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

/// Identifies the sender of a request by the `Authorization` header.
///
/// A request has exactly one credential: `Bearer` with an API key or a token. None, two, another
/// scheme, or one in the query of the address is a refusal, and so is an invalid one: no other way
/// is tried then.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Authenticator {
    /// What verifies API keys. Default: none, and every key is unknown.
    pub keys: Option<Arc<dyn VerifyToken>>,
    /// What verifies all other tokens. Default: none, and every token is unknown.
    pub tokens: Option<Arc<dyn VerifyToken>>,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("keys", &self.keys.is_some())
            .field("tokens", &self.tokens.is_some())
            .finish()
    }
}

impl Authenticator {
    /// Identifies the sender of a request with these headers and this address.
    pub fn authenticate(&self, headers: &HeaderMap, uri: &Uri) -> Authenticated {
        let token = match bearer(headers, uri) {
            Ok(token) => token,
            Err(reason) => return reason.into(),
        };
        let verifier = match token.starts_with(KEY_PREFIX) {
            true => &self.keys,
            false => &self.tokens,
        };
        match verifier {
            Some(verifier) => verifier.verify(token),
            None => Reason::UnknownKey.into(),
        }
    }
}

/// Returns the token of a request.
fn bearer<'r>(headers: &'r HeaderMap, uri: &Uri) -> Result<&'r str, Reason> {
    let mut query = uri.query().unwrap_or_default().split('&');
    let is_credential = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        name == "access_token" || value.starts_with(KEY_PREFIX)
    };
    if query.any(is_credential) {
        return Err(Reason::Malformed);
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Reason::Missing)?;
    if values.next().is_some() {
        return Err(Reason::Several);
    }
    let text = value.to_str().map_err(|_| Reason::Malformed)?;
    let (scheme, token) = text.split_once(' ').ok_or(Reason::Malformed)?;
    let token = token.trim_matches(' ');
    if token.len() > MAX_CREDENTIAL {
        return Err(Reason::TooLong);
    }
    // RFC 6750: letters, digits and six signs, and `=` at the end
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    let body = token.trim_end_matches('=');
    let is_token = !body.is_empty() && body.bytes().all(is_sign);
    match scheme.eq_ignore_ascii_case("bearer") && is_token {
        true => Ok(token),
        false => Err(Reason::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use callward_core::Principal;
    use http::HeaderValue;

    use super::*;

    /// Knows every token, under this name.
    struct All(&'static str);

    impl VerifyToken for All {
        fn verify(&self, _: &str) -> Authenticated {
            let principal = Principal::new(self.0);
            Authenticated::Now(Ok(Arc::new(Caller::new(principal))))
        }
    }

    fn found(by: &Authenticator, headers: &[&[u8]], uri: &str) -> Result<String, Reason> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(AUTHORIZATION, HeaderValue::from_bytes(header).unwrap());
        }
        match by.authenticate(&map, &uri.parse().unwrap()) {
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
            (&[b""], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer"], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer "], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer =="], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer a b"], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer a,Bearer b"], "/mcp", refused(Reason::Malformed)),
            (&[b"Bearer a\xff"], "/mcp", refused(Reason::Malformed)),
            (&[b"Basic YTpi"], "/mcp", refused(Reason::Malformed)),
            (&[b"cwk_a"], "/mcp", refused(Reason::Malformed)),
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
}
