//! Users whom a trusted proxy names in a header.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use callward_core::{Caller, Credential, CredentialKind, Principal};
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::authenticator::Sender;
use crate::{MAX_CREDENTIAL, Reason};

/// The longest name of a user, in bytes.
const MAX_USER: usize = 256;

/// Which proxies name users, and in which header.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config, built by its fields")]
pub struct ProxyConfig {
    /// The header with the name of the user, such as `x-forwarded-user`. The proxy must set it, or
    /// remove it, on every request.
    pub header: String,
    /// The addresses and networks of the proxies, such as `10.0.0.0/8`.
    pub peers: Vec<String>,
    /// The header with the user's roles, separated by commas. Default: users have no roles.
    #[serde(default)]
    pub roles_header: Option<String>,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct InvalidProxy {
    /// The setting: `header`, `roles_header`, `peers`, or an element of it from `peers.1`.
    pub key: String,
    /// What is wrong, and what is expected.
    pub reason: String,
}

/// Proxies whose header names the user. What is sent by anyone else is refused.
#[derive(Debug, Clone)]
pub struct TrustedProxy {
    header: HeaderName,
    roles: Option<HeaderName>,
    peers: Vec<IpNet>,
}

impl TrustedProxy {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// An [`InvalidProxy`] for each one that cannot be used.
    pub fn new(config: &ProxyConfig) -> Result<Self, Vec<InvalidProxy>> {
        let mut faults = Vec::new();
        let mut name = |key, text: &String| {
            let name = header(key, text);
            name.map_err(|fault| faults.push(fault)).ok()
        };
        let user = name("header", &config.header);
        let roles = config.roles_header.as_ref();
        let roles = roles.and_then(|text| name("roles_header", text));
        if user.is_some() && roles == user {
            let other = "a name other than `header`";
            faults.push(invalid("roles_header", other, &config.header));
        }
        if config.peers.is_empty() {
            faults.push(invalid("peers", "the address of a proxy", &config.peers));
        }
        let mut peers = Vec::new();
        for (number, text) in (1_usize..).zip(&config.peers) {
            let address = || text.parse().map(IpAddr::into);
            let net = text.parse().ok().or_else(|| address().ok());
            match net.filter(|net: &IpNet| net.prefix_len() > 0) {
                Some(net) => peers.push(net),
                None => faults.push(invalid(&format!("peers.{number}"), NETWORK, text)),
            }
        }
        let header = user.filter(|_| faults.is_empty()).ok_or(faults)?;
        Ok(Self {
            header,
            roles,
            peers,
        })
    }

    /// Returns the user that a request names; `None` if it names none.
    pub(crate) fn user(&self, sender: Sender<'_>) -> Result<Option<Arc<Caller>>, Reason> {
        let is_sent = |name: &HeaderName| sender.headers.contains_key(name);
        let roles = self.roles.as_ref().filter(|name| is_sent(name));
        if !is_sent(&self.header) && roles.is_none() {
            return Ok(None);
        }
        // a socket for both families shows IPv4 addresses as IPv6 ones
        let peer = sender.peer.map(|peer| peer.to_canonical());
        if !peer.is_some_and(|peer| self.peers.iter().any(|net| net.contains(&peer))) {
            return Err(Reason::UntrustedPeer);
        }
        let user = single(sender.headers, &self.header, MAX_USER)?;
        if user.is_empty() {
            return Err(Reason::Malformed);
        }
        let roles = roles.map(|name| single(sender.headers, name, MAX_CREDENTIAL));
        let roles = roles.transpose()?.unwrap_or_default().split(',');
        let mut credential = Credential::default();
        credential.kind = CredentialKind::Proxy;
        credential.roles = roles
            .map(str::trim)
            .filter(|role| !role.is_empty())
            .map(ToOwned::to_owned)
            .collect();
        let caller = Caller::new(Principal::of("proxy", user)).with_credential(credential);
        Ok(Some(Arc::new(caller)))
    }
}

const HEADER: &str = "a header that only the proxy sets, such as \"x-forwarded-user\"";
const NETWORK: &str = "an address, or a network such as \"10.0.0.0/8\", not the whole internet";

fn invalid(key: &str, expected: &str, found: impl Debug) -> InvalidProxy {
    InvalidProxy {
        key: key.to_owned(),
        reason: format!("expected {expected}, found {found:?}"),
    }
}

/// Reads the name of a header, but of none that clients set or proxies append to.
fn header(key: &str, text: &str) -> Result<HeaderName, InvalidProxy> {
    let name = text.parse::<HeaderName>().ok();
    let others = ["authorization", "forwarded", "x-forwarded-for"];
    let name = name.filter(|name| !others.contains(&name.as_str()));
    name.ok_or_else(|| invalid(key, HEADER, text))
}

/// Returns the text of a header that must be there once.
fn single<'r>(headers: &'r HeaderMap, name: &HeaderName, most: usize) -> Result<&'r str, Reason> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or(Reason::Malformed)?.as_bytes();
    if values.next().is_some() {
        return Err(Reason::Several);
    }
    if value.len() > most {
        return Err(Reason::TooLong);
    }
    let text = std::str::from_utf8(value).ok();
    let text = text.filter(|text| !text.contains(char::is_control));
    text.map(str::trim).ok_or(Reason::Malformed)
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Uri};

    use super::*;

    fn config() -> ProxyConfig {
        ProxyConfig {
            header: "X-User".into(),
            peers: ["10.0.0.0/8", "::1"].map(Into::into).into(),
            roles_header: Some("x-roles".into()),
        }
    }

    /// Returns the principal and the roles that requests of a peer with these headers have.
    fn found(peer: &str, headers: &[(&'static str, &[u8])]) -> Result<Option<String>, Reason> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        let sender = Sender {
            headers: &map,
            uri: &Uri::from_static("/mcp"),
            peer: peer.parse().ok(),
            certificate: None,
        };
        let user = TrustedProxy::new(&config()).unwrap().user(sender)?;
        Ok(user.map(|user| {
            assert_eq!(user.credential.kind, CredentialKind::Proxy);
            let roles: Vec<_> = user.credential.roles.iter().map(String::as_str).collect();
            format!("{} {}", user.principal, roles.join("+"))
        }))
    }

    #[test]
    fn only_a_listed_peer_names_a_user() {
        let (user, roles) = ("x-user", "x-roles");
        let longest = [b'a'; MAX_USER];
        let too_long = [b'a'; MAX_USER + 1];
        let known = |text: &str| Ok(Some(text.to_owned()));
        let longest_name = format!("proxy#{} ", "a".repeat(MAX_USER));
        for (peer, headers, expected) in [
            ("10.0.0.1", &[(user, &b"ada"[..])][..], known("proxy#ada ")),
            ("::ffff:10.9.9.9", &[(user, b"a#b")], known("proxy#a#b ")),
            ("::1", &[(user, "é".as_bytes())], known("proxy#é ")),
            (
                "::1",
                &[(user, b"a"), (roles, b"b, a,,b ")],
                known("proxy#a a+b"),
            ),
            ("::1", &[(user, b"a"), (roles, b"")], known("proxy#a ")),
            ("::1", &[(user, &longest)], known(&longest_name)),
            ("::1", &[("x-users", b"ada")], Ok(None)),
            ("11.0.0.1", &[], Ok(None)),
            ("11.0.0.1", &[(user, b"ada")], Err(Reason::UntrustedPeer)),
            ("11.0.0.1", &[(roles, b"a")], Err(Reason::UntrustedPeer)),
            (
                "::ffff:11.0.0.1",
                &[(user, b"")],
                Err(Reason::UntrustedPeer),
            ),
            ("a socket", &[(user, b"ada")], Err(Reason::UntrustedPeer)),
            ("::1", &[(user, b"a"), (user, b"a")], Err(Reason::Several)),
            (
                "::1",
                &[(user, b"a"), (roles, b"a"), (roles, b"b")],
                Err(Reason::Several),
            ),
            ("::1", &[(user, &too_long)], Err(Reason::TooLong)),
            ("::1", &[(user, b"")], Err(Reason::Malformed)),
            ("::1", &[(user, b" ")], Err(Reason::Malformed)),
            ("::1", &[(user, b"a\tb")], Err(Reason::Malformed)),
            ("::1", &[(user, b"a\xc2\x85")], Err(Reason::Malformed)),
            ("::1", &[(user, b"a\xff")], Err(Reason::Malformed)),
            ("::1", &[(roles, b"a")], Err(Reason::Malformed)),
        ] {
            assert_eq!(found(peer, headers), expected, "{peer} {headers:?}");
        }
    }

    #[test]
    fn a_setting_that_cannot_be_used_is_named() {
        type Change = fn(&mut ProxyConfig);
        for (change, key) in [
            ((|it| it.header = "x user".into()) as Change, "header"),
            (|it| it.header = "Authorization".into(), "header"),
            (|it| it.header = "x-roles".into(), "roles_header"),
            (
                |it| it.roles_header = Some("Forwarded".into()),
                "roles_header",
            ),
            (|it| it.peers.clear(), "peers"),
            (|it| it.peers[1] = "localhost".into(), "peers.2"),
            (|it| it.peers[0] = "0.0.0.0/0".into(), "peers.1"),
            (
                |it| {
                    it.header.clear();
                    it.roles_header = Some("a b".into());
                    it.peers = ["x", "::1", "y"].map(Into::into).into();
                },
                "header roles_header peers.1 peers.3",
            ),
        ] {
            let mut config = config();
            change(&mut config);
            let faults = TrustedProxy::new(&config).unwrap_err();
            let keys: Vec<_> = faults.iter().map(|fault| &*fault.key).collect();
            assert_eq!(keys, key.split(' ').collect::<Vec<_>>(), "{faults:?}");
        }
    }
}
