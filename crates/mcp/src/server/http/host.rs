//! Which hosts are served.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use callward_core::InvalidValue;

/// A host that is served: `*`, a name or address, or one with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostPattern {
    /// Any host, and none, as `*` says. A value that is not a host is still refused.
    Any,
    /// `localhost` and the addresses of loopback, on any port.
    Loopback,
    /// A name or an address.
    One {
        /// Without the brackets of an address of version 6.
        host: String,
        /// `None` for any port.
        port: Option<u16>,
    },
}

impl HostPattern {
    pub(super) fn allows(&self, host: &str, port: Option<u16>) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback => match host.parse::<IpAddr>() {
                // `::ffff:127.0.0.1` is loopback, too
                Ok(address) => address.to_canonical().is_loopback(),
                Err(_) => host.eq_ignore_ascii_case("localhost"),
            },
            Self::One {
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
            return Ok(Self::Any);
        }
        let (host, port) = split(text).ok_or_else(|| {
            InvalidValue::new(format!(
                "{text:?} is not a host, a host with a port, or `*`"
            ))
        })?;
        let host = host.to_owned();
        Ok(Self::One { host, port })
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
