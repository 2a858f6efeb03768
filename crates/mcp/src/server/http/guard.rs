//! Checks `Host` and `Origin`: the defence against DNS rebinding.
//!
//! A web page can make a browser resolve its own name to 127.0.0.1 and then talk to a server there.
//! It cannot change the `Host` and `Origin` that the browser sends.

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

/// Describes a header that may occur once, for a message.
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

    /// Returns `true` if a request passes with these `Host` headers.
    fn passes(pattern: &str, uri: &'static str, hosts: &[&str]) -> bool {
        let pattern = match pattern {
            "loopback" => HostPattern::loopback(),
            other => other.parse().unwrap(),
        };
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        let uri = Uri::from_static(uri);
        let passes = check_host(std::slice::from_ref(&pattern), &uri, &headers).is_ok();
        assert_eq!(check(&[pattern], &[], &uri, &headers).is_ok(), passes);
        passes
    }

    #[test]
    fn a_host_passes_that_a_pattern_allows() {
        const PATH: &str = "/mcp";
        for (pattern, uri, hosts, expected) in [
            ("loopback", PATH, &["localhost"][..], true),
            ("loopback", PATH, &["LOCALHOST:80"], true),
            ("loopback", PATH, &["127.0.0.1:9000"], true),
            ("loopback", PATH, &["[::1]:1"], true),
            ("loopback", PATH, &["[::1]"], true),
            ("loopback", PATH, &["evil.example"], false),
            ("loopback", PATH, &["localhost.evil.example"], false),
            ("loopback", PATH, &["127.0.0.1@evil"], false),
            ("loopback", PATH, &[":80"], false),
            ("loopback", PATH, &["[::1"], false),
            ("loopback", PATH, &[], false),
            ("loopback", PATH, &["localhost", "localhost"], false),
            ("*", PATH, &["localhost", "localhost"], false),
            ("*", PATH, &["anything:1"], true),
            ("gate.example:8443", PATH, &["gate.example:8443"], true),
            ("gate.example:8443", PATH, &["gate.example"], false),
            // the host of an absolute target counts beside the header
            ("loopback", "http://localhost:1/mcp", &["localhost"], true),
            ("loopback", "http://localhost:1/mcp", &[], true),
            ("loopback", "http://evil.example/mcp", &["localhost"], false),
            ("loopback", "http://evil.example/mcp", &[], false),
            ("loopback", "http://localhost/mcp", &["evil.example"], false),
            ("loopback", "http://u@localhost/mcp", &["localhost"], false),
            (
                "loopback",
                "http://localhost:99999/mcp",
                &["localhost"],
                false,
            ),
        ] {
            let case = format!("{pattern} {uri} {hosts:?}");
            assert_eq!(passes(pattern, uri, hosts), expected, "{case}");
        }
        for malformed in [
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
            for pattern in ["loopback", "*"] {
                assert!(!passes(pattern, PATH, &[malformed]), "{malformed}");
            }
        }
    }

    #[test]
    fn a_refusal_names_what_is_refused_and_the_key_to_change() {
        let long = "x".repeat(4_000);
        let (host, origin) = ("`http.allowed_hosts`", "`http.allowed_origins`");
        for (headers, words) in [
            (&[][..], &["without one", host][..]),
            (
                &[(HOST, "gate.example:8443")],
                &[r#""gate.example:8443""#, host],
            ),
            (
                &[(HOST, "localhost"), (HOST, "localhost")],
                &["given twice"],
            ),
            (&[(HOST, &long)], &[host]),
            (
                &[(HOST, "localhost"), (ORIGIN, "https://app.example")],
                &[r#""https://app.example""#, origin],
            ),
            (
                &[
                    (HOST, "localhost"),
                    (ORIGIN, "http://localhost"),
                    (ORIGIN, "http://localhost"),
                ],
                &["given twice", origin],
            ),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name, value.parse().unwrap());
            }
            let hosts = [HostPattern::loopback()];
            let origins = OriginPattern::loopback();
            let refused = check(&hosts, &origins, &Uri::from_static("/mcp"), &map);
            let message = refused.unwrap_err().error.message;
            assert!(message.len() < 400, "{message}");
            for word in words {
                assert!(message.contains(word), "{message}");
            }
        }
    }
}
