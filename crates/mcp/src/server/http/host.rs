//! Which hosts are served.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use callward_core::InvalidValue;

/// A host that is served: `*`, a name or address, or one with a port. Without a port, any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(Pattern);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Any,
    Loopback,
    One { host: String, port: Option<u16> },
}

impl HostPattern {
    /// `localhost` and the addresses of loopback, on any port.
    #[must_use]
    pub const fn loopback() -> Self {
        Self(Pattern::Loopback)
    }

    /// Any host, and none, as `*` says. A value that is not a host is still refused.
    #[must_use]
    pub const fn any() -> Self {
        Self(Pattern::Any)
    }

    pub(super) const fn one(host: String, port: Option<u16>) -> Self {
        Self(Pattern::One { host, port })
    }

    pub(super) fn allows(&self, host: &str, port: Option<u16>) -> bool {
        match &self.0 {
            Pattern::Any => true,
            Pattern::Loopback => match host.parse::<IpAddr>() {
                // `::ffff:127.0.0.1` is loopback, too
                Ok(address) => address.to_canonical().is_loopback(),
                Err(_) => host.eq_ignore_ascii_case("localhost"),
            },
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
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == "*" {
            return Ok(Self::any());
        }
        let (host, port) = split(text).ok_or_else(|| {
            InvalidValue::new(format!(
                "{text:?} is not a host, a host with a port, or `*`"
            ))
        })?;
        Ok(Self::one(host.to_owned(), port))
    }
}

/// Splits `host`, `host:port`, `[address]:port` or a bare address.
pub(super) fn split(text: &str) -> Option<(&str, Option<u16>)> {
    // an address of version 6 has two colons at least, and usual hosts have one at most
    let colons = text.bytes().filter(|byte| *byte == b':').count();
    if colons > 1 && text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    split_authority(text)
}

/// Splits `host`, `host:port` or `[address]:port`, as HTTP writes them; nothing for any other text,
/// as two programs may read it in two ways.
pub(super) fn split_authority(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(split_port(port)?)),
        _ => (text, None),
    };
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']')?;
        return address
            .parse::<Ipv6Addr>()
            .is_ok()
            .then_some((address, port));
    }
    (!host.is_empty() && host.bytes().all(is_of_a_name)).then_some((host, port))
}

fn split_port(text: &str) -> Option<u16> {
    // the standard parser takes a sign
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns `true` if a byte may be part of a host's name (RFC 3986, `reg-name`).
fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_split_from_their_ports() {
        for (text, parts) in [
            ("a.example", ("a.example", None)),
            ("a.example:1", ("a.example", Some(1))),
            ("[::1]:1", ("::1", Some(1))),
            ("[::1]", ("::1", None)),
            // as an address alone, and not as HTTP writes it
            ("::1", ("::1", None)),
        ] {
            assert_eq!(split(text), Some(parts), "{text}");
        }
        for text in [
            "a.example:",
            "a.example:1:1",
            "user@a.example",
            "a.example/",
            ":1",
            "",
        ] {
            assert_eq!(split(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            let _ = text.parse::<HostPattern>();
        }
    }
}
