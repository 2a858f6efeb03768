//! The instances of one server: how state is divided, and how many there may be.

use std::time::Duration;

use callward::Instances;
use callward_mcp::upstream::UpstreamBuilder;
use serde_json::json;

use super::changed::{Keys, differing, keys};
use super::file::Server;
use super::show_duration;

/// What the operator says about the instances of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceConfig {
    /// None if the server shows whether it keeps state for its clients.
    pub(crate) mode: Option<Instances>,
    pub(crate) spare: usize,
    pub(crate) idle: Duration,
    pub(crate) max: usize,
    pub(crate) reuse: bool,
}

impl Default for InstanceConfig {
    fn default() -> Self {
        Self::of(&Server::default())
    }
}

impl InstanceConfig {
    pub(super) fn of(written: &Server) -> Self {
        let fits = written.max_instances.saturating_sub(1);
        Self {
            mode: written.instances,
            spare: written.spare.unwrap_or_else(|| fits.min(1)),
            idle: written.idle,
            max: written.max_instances,
            reuse: written.reuse,
        }
    }

    /// Returns what is not the default.
    pub(super) fn changed(self) -> Keys {
        differing(self.written(), &Self::default().written())
    }

    /// Sets an upstream's instances up.
    pub(crate) fn apply(self, upstream: UpstreamBuilder) -> UpstreamBuilder {
        upstream
            .spare(self.spare)
            .idle(self.idle)
            .max_instances(self.max)
            .reuse(self.reuse)
    }

    fn written(self) -> Keys {
        keys([
            ("instances", json!(self.mode)),
            ("spare", json!(self.spare)),
            ("idle", json!(show_duration(self.idle))),
            ("max_instances", json!(self.max)),
            ("reuse", json!(self.reuse)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, ConfigError};

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("t.toml"), text)
    }

    #[test]
    fn what_is_said_of_instances_is_read_and_told() {
        let config = parse(
            "[servers.a]\ncommand = \"x\"\ninstances = \"principal\"\nspare = 0\nidle = \"1m\"\n\
             max_instances = 4\nreuse = true\n[servers.b]\ncommand = \"x\"\n",
        )
        .unwrap();
        let [a, b] = &config.servers[..] else {
            panic!("two servers expected");
        };
        let said = InstanceConfig {
            mode: Some(Instances::Principal),
            spare: 0,
            idle: Duration::from_secs(60),
            max: 4,
            reuse: true,
        };
        assert_eq!(a.instances, said);
        assert_eq!(a.changed().len(), 5);
        assert_eq!(b.instances, InstanceConfig::default());
        assert_eq!(b.changed(), Keys::new());
    }

    #[test]
    fn the_default_of_spare_fits_max_instances() {
        for (line, want) in [("max_instances = 1", 0), ("max_instances = 2", 1), ("", 1)] {
            let config = parse(&format!("[servers.a]\ncommand = \"x\"\n{line}\n")).unwrap();
            assert_eq!(config.servers[0].instances.spare, want, "{line}");
        }
        let error = parse("[servers.a]\ncommand = \"x\"\nmax_instances = 1\nspare = 1\n");
        assert!(error.unwrap_err().to_string().contains("servers.a.spare"));
        let error = parse("[servers.a]\ncommand = \"x\"\nmax_instances = 0\n").unwrap_err();
        assert!(!error.to_string().contains("spare"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_at_its_key() {
        for (line, key) in [
            ("max_instances = 0\nspare = 0", "max_instances"),
            ("max_instances = 2\nspare = 2", "spare"),
            ("idle = \"0s\"", "idle"),
            ("instances = \"client\"", "instances"),
        ] {
            let text = format!("[servers.a]\ncommand = \"x\"\n{line}\n");
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(key), "{line}: {error}");
        }
    }

    #[test]
    fn servers_of_a_set_divide_their_state_alike() {
        let pair = |one: &str, other: &str| {
            parse(&format!(
                "[servers.a]\ncommand = \"x\"\nset = \"s\"\n{one}\n\
                 [servers.b]\ncommand = \"x\"\nset = \"s\"\n{other}\n"
            ))
        };
        let session = "instances = \"session\"";
        assert!(pair(session, session).is_ok());
        assert!(pair("", "instances = \"shared\"").is_ok());
        let error = pair(session, "").unwrap_err().to_string();
        assert!(error.contains("servers.b.instances"), "{error}");
    }
}
