//! From what is written to what is meant, with every problem reported at its place.

mod audit;
mod instances;
mod limits;
mod resilience;
mod router;
mod servers;
mod settings;
mod telemetry;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::error::{Fault, Source};
use super::file::File;
use super::{Config, Servers, scopes};

/// What a file without a single key means, but for its servers.
pub(super) fn defaults() -> Config {
    let mut faults = Faults {
        source: &Source::new(""),
        found: Vec::new(),
    };
    faults.settings(&File::default())
}

/// Checks a file.
pub(super) fn check(
    written: File,
    servers: Servers,
    source: &Source<'_>,
) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults {
        source,
        found: Vec::new(),
    };
    let mut config = faults.settings(&written);
    if servers == Servers::Some && written.servers.is_empty() {
        faults.at(
            &["servers"],
            "expected at least one server: a table [servers.NAME] with `command` or `url`",
        );
    }
    // as they stand in the file: of two that want a name, the first one has it
    let mut servers: Vec<_> = written.servers.into_iter().collect();
    servers.sort_by_key(|(id, _)| source.span(&["servers", id]).map(|span| span.start));
    for (id, server) in servers {
        if let Some(server) = faults.server(&id, server) {
            config.servers.push(server);
        }
    }
    faults.sets(&config.servers);
    scopes::check_sets(&config.servers, |path, message| faults.at(path, message));
    if faults.found.is_empty() {
        Ok(config)
    } else {
        Err(faults.found)
    }
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
            format!("expected an address with a port, such as \"127.0.0.1:7420\", found {text:?}")
        })
}

/// The problems found so far, and the text they are found in.
struct Faults<'a, 'i> {
    source: &'a Source<'i>,
    found: Vec<Fault>,
}

impl Faults<'_, '_> {
    fn at(&mut self, path: &[&str], message: impl Into<String>) {
        self.found.push(self.source.key_fault(path, message));
    }

    fn has_fault_at(&self, path: &[&str]) -> bool {
        let key = path.join(".");
        self.found.iter().any(|fault| fault.key == key)
    }

    fn expect(&mut self, holds: bool, path: &[&str], message: &str) {
        if !holds {
            self.at(path, message);
        }
    }

    /// Takes a result apart: an error is reported at the key.
    fn ok<T, E: std::fmt::Display>(&mut self, result: Result<T, E>, path: &[&str]) -> Option<T> {
        result
            .map_err(|error| self.at(path, error.to_string()))
            .ok()
    }
}
