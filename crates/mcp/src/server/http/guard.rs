//! Which `Host` and `Origin` may speak to us: the defence against DNS rebinding.
//!
//! A web page can make a browser resolve its own name to 127.0.0.1 and then talk to a server there.
//! What it cannot do is change the `Host` and `Origin` the browser sends along.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode, Uri};

use super::host::{HostPattern, split_authority};
use super::origin::OriginPattern;
use crate::server::error::Fault;
use crate::sparse::Sparse;
use crate::wire::header::single;

static HOSTS_REFUSED: Sparse = Sparse::new();
static ORIGINS_REFUSED: Sparse = Sparse::new();

/// Lets a request pass if its host is served, and its `Origin` if it has one.
pub(super) fn check(
    hosts: &[HostPattern],
    origins: &[OriginPattern],
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Fault> {
    if let Err(refused) = check_host(hosts, uri, headers) {
        let message = format!("{refused}: add it to `http.allowed_hosts` of the config");
        return Err(Fault::transport(StatusCode::FORBIDDEN, message));
    }
    let allowed = match single(headers, ORIGIN) {
        Ok(None) => true,
        Ok(Some(origin)) => origins.iter().any(|pattern| pattern.allows(origin)),
        Err(_) => false,
    };
    if !allowed {
        let origin = shown(headers, &ORIGIN);
        if let Some(unlogged) = ORIGINS_REFUSED.admit() {
            tracing::warn!(
                origin,
                unlogged,
                "request refused: this origin is not allowed"
            );
        }
        let message = format!(
            "the Origin {origin} is not allowed: add it to `http.allowed_origins` of the config"
        );
        return Err(Fault::transport(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

/// Lets a request pass if every host that it names is allowed: the one of its `Host` header, and
/// the one of a target in absolute form. One that names none passes only if any host may.
///
/// # Errors
///
/// [`HostRefused`] if a host is not allowed or malformed, or if there are two `Host` headers,
/// whatever they say.
pub fn check_host(
    allowed: &[HostPattern],
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), HostRefused> {
    let is_allowed = |host: &str| {
        split_authority(host)
            .is_some_and(|(host, port)| allowed.iter().any(|pattern| pattern.allows(host, port)))
    };
    let target = uri.authority().map(Authority::as_str);
    let host = match (single(headers, HOST), target) {
        (Err(_), _) => shown(headers, &HOST),
        (Ok(Some(host)), _) if !is_allowed(host) => quoted(host),
        (Ok(_), Some(target)) if !is_allowed(target) => quoted(target),
        (Ok(None), None) if !allowed.contains(&HostPattern::any()) => shown(headers, &HOST),
        _ => return Ok(()),
    };
    if let Some(unlogged) = HOSTS_REFUSED.admit() {
        tracing::warn!(host, unlogged, "request refused: this host is not allowed");
    }
    Err(HostRefused { host })
}

/// A request names a host that is not allowed, or none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the Host {host} is not allowed")]
pub struct HostRefused {
    host: String,
}

/// The longest host or origin that is shown, in characters.
const LONGEST_SHOWN: usize = 200;

/// Says for a message what a header that may be there once has.
fn shown(headers: &HeaderMap, name: &HeaderName) -> String {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => quoted(&String::from_utf8_lossy(value.as_bytes())),
        (Some(_), Some(_)) => "that is given twice".to_owned(),
        (None, _) => "of a request without one".to_owned(),
    }
}

/// Quotes a text for a message: the client chose it, so it is escaped and cut.
fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(LONGEST_SHOWN).collect();
    format!("{cut:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_passes(patterns: &[HostPattern], host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        check(patterns, &[], &Uri::from_static("/mcp"), &headers).is_ok()
    }

    #[test]
    fn loopback_names_pass_on_any_port_and_nothing_else_does() {
        let patterns = [HostPattern::loopback()];
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9000",
            "[::1]:1",
            "[::1]",
        ] {
            assert!(host_passes(&patterns, host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1@evil",
            "",
            ":80",
            "[::1",
        ] {
            assert!(!host_passes(&patterns, host), "{host}");
        }
        let none = HeaderMap::new();
        assert!(check(&patterns, &[], &Uri::from_static("/mcp"), &none).is_err());
    }

    #[test]
    fn a_refusal_names_the_host_and_the_key_to_change() {
        let uri = Uri::from_static("/mcp");
        let refusal = |headers: &HeaderMap| {
            let checked = check(&[HostPattern::loopback()], &[], &uri, headers);
            checked.unwrap_err().error.message.into_owned()
        };
        let mut headers = HeaderMap::new();
        assert!(refusal(&headers).contains("without one"));
        headers.insert(HOST, "gate.example:8443".parse().unwrap());
        let message = refusal(&headers);
        assert!(message.contains(r#""gate.example:8443""#), "{message}");
        assert!(message.contains("`http.allowed_hosts`"), "{message}");
        headers.insert(HOST, "x".repeat(4_000).parse().unwrap());
        assert!(refusal(&headers).len() < 400);
        headers.insert(HOST, "localhost".parse().unwrap());
        headers.insert(ORIGIN, "https://app.example".parse().unwrap());
        let message = refusal(&headers);
        assert!(message.contains(r#""https://app.example""#), "{message}");
        assert!(message.contains("`http.allowed_origins`"), "{message}");
    }

    #[test]
    fn a_port_in_a_host_pattern_binds() {
        let patterns = ["gate.example:8443".parse().unwrap()];
        assert!(host_passes(&patterns, "gate.example:8443"));
        assert!(!host_passes(&patterns, "gate.example"));
        assert!(host_passes(&["*".parse().unwrap()], "anything:1"));
    }

    #[test]
    fn two_hosts_or_two_origins_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost".parse().unwrap());
        let uri = Uri::from_static("/mcp");
        let (hosts, origins) = ([HostPattern::loopback()], OriginPattern::loopback());
        headers.append(ORIGIN, "http://localhost".parse().unwrap());
        assert!(check(&hosts, &origins, &uri, &headers).is_ok());
        headers.append(ORIGIN, "http://localhost".parse().unwrap());
        assert!(check(&hosts, &origins, &uri, &headers).is_err());
        headers.remove(ORIGIN);
        headers.append(HOST, "localhost".parse().unwrap());
        assert!(check(&hosts, &origins, &uri, &headers).is_err());
        let refused = check_host(&[HostPattern::any()], &uri, &headers).unwrap_err();
        assert!(refused.to_string().contains("given twice"), "{refused}");
    }

    #[test]
    fn a_host_that_is_malformed_passes_nowhere() {
        for host in [
            "localhost:99999",
            "localhost:",
            "localhost:+80",
            "localhost:80:80",
            "user@localhost",
            "local host",
            "::1",
            "[localhost]",
            "",
        ] {
            assert!(!host_passes(&[HostPattern::loopback()], host), "{host}");
            assert!(!host_passes(&[HostPattern::any()], host), "{host}");
        }
    }

    #[test]
    fn the_host_of_an_absolute_target_counts_beside_the_header() {
        let passes = |uri: &'static str, host: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(host.map(|host| (HOST, host.parse().unwrap())));
            let allowed = [HostPattern::loopback()];
            check_host(&allowed, &Uri::from_static(uri), &headers).is_ok()
        };
        assert!(passes("http://localhost:1/mcp", Some("localhost")));
        assert!(passes("http://localhost:1/mcp", None));
        assert!(!passes("http://evil.example/mcp", Some("localhost")));
        assert!(!passes("http://evil.example/mcp", None));
        assert!(!passes("http://localhost/mcp", Some("evil.example")));
        assert!(!passes("http://u@localhost/mcp", Some("localhost")));
        assert!(!passes("http://localhost:99999/mcp", Some("localhost")));
    }
}
