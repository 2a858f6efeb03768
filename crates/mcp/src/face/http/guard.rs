//! Which `Host` and `Origin` may speak to us: the defence against DNS rebinding.
//!
//! A web page can make a browser resolve its own name to 127.0.0.1 and then talk to a server there.
//! What it cannot do is change the `Host` and `Origin` the browser sends along.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

use super::host::{HostPattern, split};
use super::origin::OriginPattern;
use crate::face::error::Fault;

/// Lets a request pass if its `Host` is served, and its `Origin` if it has one.
pub(super) fn check(
    hosts: &[HostPattern],
    origins: &[OriginPattern],
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Fault> {
    let host = match single(headers, &HOST) {
        Ok(Some(host)) => Some(host),
        Ok(None) => uri.authority().map(Authority::as_str),
        Err(()) => None,
    };
    let parts = host.and_then(split);
    let allowed = hosts.iter().any(|pattern| match parts {
        Some((host, port)) => pattern.allows(host, port),
        None => pattern.allows_any(),
    });
    if !allowed {
        let host = shown(headers.get(HOST), host);
        tracing::warn!(host, "request refused: this host is not allowed");
        let message =
            format!("the Host {host} is not allowed: add it to `http.allowed_hosts` of the config");
        return Err(Fault::transport(StatusCode::FORBIDDEN, message));
    }
    let allowed = match single(headers, &ORIGIN) {
        Ok(None) => true,
        Ok(Some(origin)) => origins.iter().any(|pattern| pattern.allows(origin)),
        Err(()) => false,
    };
    if !allowed {
        let origin = shown(headers.get(ORIGIN), None);
        tracing::warn!(origin, "request refused: this origin is not allowed");
        let message = format!(
            "the Origin {origin} is not allowed: add it to `http.allowed_origins` of the config"
        );
        return Err(Fault::transport(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

/// The longest host or origin that is shown, in characters.
const LONGEST_SHOWN: usize = 200;

/// Quotes a header for a message: the client chose it, so it is escaped and cut.
fn shown(header: Option<&HeaderValue>, otherwise: Option<&str>) -> String {
    let text = match (header, otherwise) {
        (Some(header), _) => String::from_utf8_lossy(header.as_bytes()),
        (None, Some(text)) => text.into(),
        (None, None) => return "of a request without one".to_owned(),
    };
    let cut: String = text.chars().take(LONGEST_SHOWN).collect();
    format!("{cut:?}")
}

/// Returns a header that may be there once only, as text.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    first
        .map(|value| value.to_str().map_err(|_| ()))
        .transpose()
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
        let patterns = HostPattern::loopback();
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
            let checked = check(&HostPattern::loopback(), &[], &uri, headers);
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
        let (hosts, origins) = (HostPattern::loopback(), OriginPattern::loopback());
        headers.append(ORIGIN, "http://localhost".parse().unwrap());
        assert!(check(&hosts, &origins, &uri, &headers).is_ok());
        headers.append(ORIGIN, "http://localhost".parse().unwrap());
        assert!(check(&hosts, &origins, &uri, &headers).is_err());
        headers.remove(ORIGIN);
        headers.append(HOST, "localhost".parse().unwrap());
        assert!(check(&hosts, &origins, &uri, &headers).is_err());
    }
}
