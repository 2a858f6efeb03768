//! Checks `Host` and `Origin`: the defence against DNS rebinding.
//!
//! A web page can make a browser resolve its own name to 127.0.0.1 and then talk to a server there.
//! It cannot change the `Host` and `Origin` that the browser sends.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

use super::HttpOptions;
use super::host::{HostPattern, split_authority};
use crate::server::error::Fault;
use crate::sparse::Sparse;
use crate::wire::header::single;

static HOSTS_REFUSED: Sparse = Sparse::new();
static ORIGINS_REFUSED: Sparse = Sparse::new();

/// Lets a request pass if its host is served, and its `Origin` if it has one, which is returned.
pub(super) fn check(
    options: &HttpOptions,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<HeaderValue>, Fault> {
    if let Err(refused) = check_host(&options.allowed_hosts, uri, headers) {
        let message = format!("{refused}: add it to `http.allowed_hosts` of the config");
        return Err(Fault::transport(StatusCode::FORBIDDEN, message));
    }
    let mut allowed = options.allowed_origins.iter();
    match single(headers, ORIGIN) {
        Ok(None) => return Ok(None),
        Ok(Some(origin)) if allowed.any(|pattern| pattern.allows(origin)) => {
            return Ok(headers.get(ORIGIN).cloned());
        }
        _ => {}
    }
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
    Err(Fault::transport(StatusCode::FORBIDDEN, message))
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
        (Ok(None), None) if !allowed.contains(&HostPattern::Any) => shown(headers, &HOST),
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

    /// Checks a request with these headers; returns the message of a refusal.
    fn checked(
        pattern: &str,
        uri: &'static str,
        hosts: &[&str],
        origins: &[&str],
    ) -> Result<(), String> {
        let pattern = match pattern {
            "loopback" => HostPattern::Loopback,
            other => other.parse().unwrap(),
        };
        let mut headers = HeaderMap::new();
        let hosts = hosts.iter().map(|host| (HOST, host));
        for (name, value) in hosts.chain(origins.iter().map(|origin| (ORIGIN, origin))) {
            headers.append(name, value.parse().unwrap());
        }
        let options = HttpOptions {
            allowed_hosts: vec![pattern],
            ..HttpOptions::default()
        };
        let checked = check(&options, &Uri::from_static(uri), &headers);
        checked
            .map(|_| ())
            .map_err(|fault| fault.error.message.into())
    }

    #[test]
    fn a_host_passes_that_a_pattern_allows() {
        const PATH: &str = "/mcp";
        for (pattern, uri, hosts, expected) in [
            ("loopback", PATH, &["LOCALHOST:80"][..], true),
            ("loopback", PATH, &["127.9.9.9:9000"], true),
            ("loopback", PATH, &["[::ffff:127.0.0.1]"], true),
            ("loopback", PATH, &["0.0.0.0"], false),
            ("loopback", PATH, &["192.168.1.1"], false),
            ("loopback", PATH, &["[::1]:1"], true),
            ("loopback", PATH, &["[::1]"], true),
            ("loopback", PATH, &["evil.example"], false),
            ("loopback", PATH, &["localhost.evil.example"], false),
            ("loopback", PATH, &["127.0.0.1.evil.example"], false),
            ("loopback", PATH, &["127.0.0.1@evil"], false),
            ("loopback", PATH, &[], false),
            ("loopback", PATH, &["localhost", "localhost"], false),
            ("*", PATH, &["localhost", "localhost"], false),
            ("*", PATH, &["anything:1"], true),
            ("gate.example:8443", PATH, &["gate.example:8443"], true),
            ("gate.example:8443", PATH, &["gate.example"], false),
            ("gate.example", PATH, &["gate.example:1"], true),
            // as an address alone, and not as HTTP writes it
            ("::1", PATH, &["[::1]:1"], true),
            // the host of an absolute target counts beside the header
            ("loopback", "http://localhost:1/mcp", &["localhost"], true),
            ("loopback", "http://localhost:1/mcp", &[], true),
            ("loopback", "http://evil.example/mcp", &["localhost"], false),
            ("loopback", "http://evil.example/mcp", &[], false),
            ("loopback", "http://localhost/mcp", &["evil.example"], false),
            ("loopback", "http://u@localhost/mcp", &["localhost"], false),
            ("loopback", "http://localhost:99999/", &["localhost"], false),
        ] {
            let case = format!("{pattern} {uri} {hosts:?}");
            let passes = checked(pattern, uri, hosts, &[]).is_ok();
            assert_eq!(passes, expected, "{case}");
        }
        let malformed = "localhost:99999 localhost: localhost:+80 localhost:80:80 user@localhost \
                         ::1 [localhost] [::1 :80 localhost/";
        for malformed in malformed.split(' ').chain(["local host", ""]) {
            for pattern in ["loopback", "*"] {
                let checked = checked(pattern, PATH, &[malformed], &[]);
                assert!(checked.is_err(), "{malformed}");
            }
        }
    }

    #[test]
    fn a_refusal_names_what_is_refused_and_the_key_to_change() {
        let long = "x".repeat(4_000);
        let (host, origin) = ("`http.allowed_hosts`", "`http.allowed_origins`");
        let app = "https://app.example";
        let twice = ["http://localhost"; 2];
        for (hosts, origins, words) in [
            (&[][..], &[][..], ["without one", host]),
            (&["a.example:8443"], &[], [r#""a.example:8443""#, host]),
            (&["localhost", "localhost"], &[], ["given twice", host]),
            (&[&long], &[], ["xxx", host]),
            (&["localhost"], &[app], [r#""https://app.example""#, origin]),
            (&["localhost"], &twice, ["given twice", origin]),
        ] {
            let message = checked("loopback", "/mcp", hosts, origins).unwrap_err();
            assert!(message.len() < 400, "{message}");
            for word in words {
                assert!(message.contains(word), "{message}");
            }
        }
    }
}
