//! Which `Host` and `Origin` may speak to us: the defence against DNS rebinding.
//!
//! A web page can make a browser resolve its own name to 127.0.0.1 and then talk to a server there.
//! What it cannot do is change the `Host` and `Origin` the browser sends along.

use std::fmt;
use std::str::FromStr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode, Uri};

use super::super::error::Fault;

/// A `Host` that is served: `*`, a name or address, or one with a port. Without a port, any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(Pattern);

/// An `Origin` that is served: `*`, `null`, or `scheme://host`, with a port, or with `:*` for any
/// port. Without a port, the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPattern(Origins);

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPattern {
    text: String,
    expected: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Any,
    One { host: String, port: Option<u16> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origins {
    Any,
    Null,
    One {
        scheme: String,
        host: String,
        /// Any, where there is none.
        port: Option<u16>,
    },
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.text, self.expected)
    }
}

impl std::error::Error for InvalidPattern {}

impl HostPattern {
    /// The loopback names, on any port.
    pub(super) fn loopback() -> Vec<Self> {
        let one = |host: &str| {
            Self(Pattern::One {
                host: host.to_owned(),
                port: None,
            })
        };
        LOOPBACK.map(one).into()
    }

    fn allows(&self, host: &str, port: Option<u16>) -> bool {
        match &self.0 {
            Pattern::Any => true,
            Pattern::One {
                host: allowed,
                port: wanted,
            } => {
                allowed.eq_ignore_ascii_case(host)
                    && wanted.is_none_or(|wanted| port == Some(wanted))
            }
        }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        if text == "*" {
            return Ok(Self(Pattern::Any));
        }
        let (host, port) = split(text).ok_or_else(|| InvalidPattern {
            text: text.to_owned(),
            expected: "a host, a host with a port, or `*`",
        })?;
        Ok(Self(Pattern::One {
            host: host.to_owned(),
            port,
        }))
    }
}

impl OriginPattern {
    /// The loopback origins, on any port.
    pub(super) fn loopback() -> Vec<Self> {
        let one = |scheme: &str, host: &str| {
            Self(Origins::One {
                scheme: scheme.to_owned(),
                host: host.to_owned(),
                port: None,
            })
        };
        LOOPBACK
            .iter()
            .flat_map(|host| [one("http", host), one("https", host)])
            .collect()
    }

    fn allows(&self, origin: &str) -> bool {
        let Origins::One {
            scheme,
            host,
            port: wanted,
        } = &self.0
        else {
            return self.0 == Origins::Any || origin.eq_ignore_ascii_case("null");
        };
        split_origin(origin).is_some_and(|(its_scheme, its_host, port)| {
            let port = port.or_else(|| default_port(its_scheme));
            scheme.eq_ignore_ascii_case(its_scheme)
                && host.eq_ignore_ascii_case(its_host)
                && wanted.is_none_or(|wanted| port == Some(wanted))
        })
    }
}

impl FromStr for OriginPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        match text {
            "*" => return Ok(Self(Origins::Any)),
            "null" => return Ok(Self(Origins::Null)),
            _ => {}
        }
        let any_port = text.strip_suffix(":*");
        let (scheme, host, port) = split_origin(any_port.unwrap_or(text))
            .filter(|(.., port)| any_port.is_none() || port.is_none())
            .ok_or_else(|| InvalidPattern {
                text: text.to_owned(),
                expected: "`scheme://host`, with a port or `:*` at will; `null`; or `*`",
            })?;
        let port = match any_port {
            Some(_) => None,
            None => port.or_else(|| default_port(scheme)),
        };
        Ok(Self(Origins::One {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port,
        }))
    }
}

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
    let allowed = hosts.iter().any(|pattern| match host.and_then(split) {
        Some((host, port)) => pattern.allows(host, port),
        None => pattern.0 == Pattern::Any,
    });
    if !allowed {
        tracing::warn!(?host, "refused: this host is not served");
        return Err(Fault::transport(
            StatusCode::FORBIDDEN,
            "this Host is not served",
        ));
    }
    let allowed = match single(headers, &ORIGIN) {
        Ok(None) => true,
        Ok(Some(origin)) => origins.iter().any(|pattern| pattern.allows(origin)),
        Err(()) => false,
    };
    if !allowed {
        tracing::warn!(origin = ?headers.get(ORIGIN), "refused: this origin is not served");
        return Err(Fault::transport(
            StatusCode::FORBIDDEN,
            "this Origin is not served",
        ));
    }
    Ok(())
}

/// The names of this machine for itself; addresses without brackets, as [`split`] returns them.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns a header that may be there once only, as text.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    first
        .map(|value| value.to_str().map_err(|_| ()))
        .transpose()
}

/// Splits `host`, `host:port`, `[address]:port` or a bare address.
fn split(text: &str) -> Option<(&str, Option<u16>)> {
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    let authority: &str = (!text.contains(['@', '/', '?', '#'])).then_some(text)?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (authority, None),
    };
    let host = match host.strip_prefix('[') {
        Some(address) => address
            .strip_suffix(']')
            .filter(|address| address.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => host,
    };
    (!host.is_empty()).then_some((host, port))
}

fn split_origin(text: &str) -> Option<(&str, &str, Option<u16>)> {
    let (scheme, authority) = text.split_once("://")?;
    let (host, port) = split(authority)?;
    (!scheme.is_empty()).then_some((scheme, host, port))
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn a_port_in_a_host_pattern_binds() {
        let patterns = ["gate.example:8443".parse().unwrap()];
        assert!(host_passes(&patterns, "gate.example:8443"));
        assert!(!host_passes(&patterns, "gate.example"));
        assert!(host_passes(&["*".parse().unwrap()], "anything:1"));
    }

    #[test]
    fn origins_match_by_scheme_host_and_port() {
        let cases = [
            ("https://app.example", "https://app.example", true),
            ("https://app.example", "https://APP.example:443", true),
            ("https://app.example", "http://app.example", false),
            ("https://app.example", "https://app.example:8443", false),
            ("https://app.example:*", "https://app.example:8443", true),
            ("https://app.example:*", "https://app.example.evil", false),
            ("null", "null", true),
            ("null", "https://app.example", false),
            ("*", "whatever", true),
            ("http://[::1]:*", "http://[::1]:3000", true),
        ];
        for (pattern, origin, passes) in cases {
            let parsed: OriginPattern = pattern.parse().unwrap();
            assert_eq!(parsed.allows(origin), passes, "{pattern} {origin}");
        }
        for text in [
            "",
            "app.example",
            "https://",
            "https://a:b",
            "https://a:1:*",
        ] {
            assert!(text.parse::<OriginPattern>().is_err(), "{text}");
        }
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

    proptest! {
        #[test]
        fn no_text_breaks_the_parsers(text in any::<String>()) {
            let _ = text.parse::<HostPattern>();
            if let Ok(pattern) = text.parse::<OriginPattern>() {
                let _ = pattern.allows(&text);
            }
        }
    }
}
