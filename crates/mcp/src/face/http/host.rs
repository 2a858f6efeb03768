//! Which `Host` headers are served.

use std::str::FromStr;

use super::options::InvalidOption;

/// A `Host` that is served: `*`, a name or address, or one with a port. Without a port, any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(Pattern);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Any,
    One { host: String, port: Option<u16> },
}

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

    pub(super) fn allows(&self, host: &str, port: Option<u16>) -> bool {
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

    /// Says whether any host at all is served, also none.
    pub(super) fn allows_any(&self) -> bool {
        self.0 == Pattern::Any
    }
}

impl FromStr for HostPattern {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        if text == "*" {
            return Ok(Self(Pattern::Any));
        }
        let (host, port) = split(text).ok_or_else(|| InvalidOption {
            text: text.to_owned(),
            expected: "a host, a host with a port, or `*`",
        })?;
        Ok(Self(Pattern::One {
            host: host.to_owned(),
            port,
        }))
    }
}

/// The names of this machine for itself; addresses without brackets, as [`split`] returns them.
pub(super) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Splits `host`, `host:port`, `[address]:port` or a bare address.
pub(super) fn split(text: &str) -> Option<(&str, Option<u16>)> {
    // an address of version 6 has two colons at least, and usual hosts have one at most
    let colons = text.bytes().filter(|byte| *byte == b':').count();
    if colons > 1 && text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    if text
        .bytes()
        .any(|byte| matches!(byte, b'@' | b'/' | b'?' | b'#'))
    {
        return None;
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    let host = match host.strip_prefix('[') {
        Some(address) => address
            .strip_suffix(']')
            .filter(|address| address.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => host,
    };
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_split_from_their_ports() {
        for (text, parts) in [
            ("a.example", Some(("a.example", None))),
            ("a.example:1", Some(("a.example", Some(1)))),
            ("[::1]:1", Some(("::1", Some(1)))),
            ("[::1]", Some(("::1", None))),
            ("::1", Some(("::1", None))),
            ("a.example:", None),
            ("a.example:99999", None),
            ("user@a.example", None),
            ("[a.example]", None),
            (":1", None),
            ("", None),
        ] {
            assert_eq!(split(text), parts, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            let _ = text.parse::<HostPattern>();
        }
    }
}
