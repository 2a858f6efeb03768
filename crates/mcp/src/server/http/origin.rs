//! Which `Origin` headers are served.

use std::str::FromStr;

use callward_core::InvalidValue;

use super::host::{HostPattern, split};

/// An `Origin` that is served: `*`, `null`, or `scheme://host`, with a port, or with `:*` for any
/// port. Without a port, the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPattern(Origins);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origins {
    Any,
    Null,
    One { scheme: String, host: HostPattern },
}

impl OriginPattern {
    /// The loopback origins, on any port.
    pub(super) fn loopback() -> Vec<Self> {
        let one = |scheme: &str| {
            let (scheme, host) = (scheme.to_owned(), HostPattern::Loopback);
            Self(Origins::One { scheme, host })
        };
        vec![one("http"), one("https")]
    }

    pub(super) fn allows(&self, origin: &str) -> bool {
        match &self.0 {
            Origins::Any => true,
            Origins::Null => origin.eq_ignore_ascii_case("null"),
            Origins::One { scheme, host } => {
                split_origin(origin).is_some_and(|(its_scheme, its_host, port)| {
                    let port = port.or_else(|| default_port(its_scheme));
                    scheme.eq_ignore_ascii_case(its_scheme) && host.allows(its_host, port)
                })
            }
        }
    }
}

impl FromStr for OriginPattern {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "*" => return Ok(Self(Origins::Any)),
            "null" => return Ok(Self(Origins::Null)),
            _ => {}
        }
        let any_port = text.strip_suffix(":*");
        let (scheme, host, port) = split_origin(any_port.unwrap_or(text))
            .filter(|(.., port)| any_port.is_none() || port.is_none())
            .ok_or_else(|| {
                InvalidValue::new(format!(
                    "{text:?} is not `scheme://host`, with a port or `:*` at will; `null`; or `*`"
                ))
            })?;
        let port = match any_port {
            Some(_) => None,
            None => port.or_else(|| default_port(scheme)),
        };
        let host = host.to_owned();
        let host = HostPattern::One { host, port };
        let scheme = scheme.to_owned();
        Ok(Self(Origins::One { scheme, host }))
    }
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

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            if let Ok(pattern) = text.parse::<OriginPattern>() {
                let _ = pattern.allows(&text);
            }
        }
    }
}
