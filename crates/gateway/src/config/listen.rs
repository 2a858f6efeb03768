//! The addresses of the gateway, and which ones it refuses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the admin listener is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum AdminAddress {
    Tcp(SocketAddr),
    /// A Unix socket with mode 0600.
    Unix(PathBuf),
}

/// Reads an address to listen on: `127.0.0.1:7420`, `localhost:7420`, or a port on loopback.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: &str| {
        let port = port.parse::<u16>().ok()?;
        Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    };
    text.parse::<SocketAddr>()
        .ok()
        .or_else(|| loopback(text.strip_prefix("localhost:").unwrap_or(text)))
        .ok_or_else(|| {
            format!(
                "expected an address with a port, such as \"127.0.0.1:7420\", or a port such as \
                 \"7420\", found {text:?}"
            )
        })
}

/// Reads an address with a port, a port on loopback, or `unix:/PATH`.
impl TryFrom<String> for AdminAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.strip_prefix("unix:").map(PathBuf::from) {
            None => parse_listen(&text).map(Self::Tcp),
            Some(path) if cfg!(unix) && path.is_absolute() => Ok(Self::Unix(path)),
            Some(_) => Err(format!(
                "expected an absolute path on a Unix system after `unix:`, found {text:?}"
            )),
        }
    }
}

impl From<AdminAddress> for String {
    fn from(address: AdminAddress) -> Self {
        address.to_string().replacen("http://", "", 1)
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why an address for clients is refused and what to do about it, and one for operators.
pub(crate) const PUBLIC: &str = "the gateway does not authenticate them. Add `[auth]` to the config \
                                 file, listen";
pub(crate) const ADMIN: &str = "keys pass it unencrypted. Use TLS: listen";

/// Returns why an address is refused unless `http.insecure` is set; `None` if it is loopback.
pub(crate) fn exposed(address: SocketAddr, advice: &str) -> Option<String> {
    // `::ffff:127.0.0.1` is loopback, too
    (!address.ip().to_canonical().is_loopback()).then(|| {
        format!(
            "{address} is not loopback: other machines can reach it, and {advice} on loopback behind \
             a proxy that does, or set `http.insecure = true` in the config file"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ports_names_or_sockets() {
        for (text, want) in [
            ("7421", Some("http://127.0.0.1:7421")),
            ("localhost:0", Some("http://127.0.0.1:0")),
            ("[::1]:80", Some("http://[::1]:80")),
            ("0.0.0.0:80", Some("http://0.0.0.0:80")),
            ("example.org:80", None),
            ("here", None),
            ("unix:relative", None),
            ("unix:", None),
            #[cfg(unix)]
            ("unix:/run/callward.sock", Some("unix:/run/callward.sock")),
        ] {
            let parsed = AdminAddress::try_from(text.to_owned()).ok();
            let shown = parsed.map(|address| address.to_string());
            assert_eq!(shown.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn only_loopback_addresses_are_not_exposed() {
        for (address, is_exposed) in [
            ("127.0.0.1:1", false),
            ("127.9.9.9:1", false),
            ("[::1]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("192.168.1.1:1", true),
        ] {
            let why = exposed(address.parse().unwrap(), ADMIN);
            assert_eq!(why.is_some(), is_exposed, "{address}");
        }
    }
}
