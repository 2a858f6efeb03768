//! The instances of the servers.

use super::super::file::Server;
use super::super::{InstanceConfig, ServerConfig};
use super::Faults;

impl Faults<'_, '_> {
    pub(super) fn instances(&mut self, key: &str, server: &Server) -> InstanceConfig {
        let at = |name| ["servers", key, name];
        self.expect(
            server.max_instances > 0,
            &at("max_instances"),
            "expected 1 or more",
        );
        self.expect(
            server
                .spare
                .is_none_or(|spare| spare < server.max_instances.max(1)),
            &at("spare"),
            "expected less than `max_instances`: a spare instance counts too",
        );
        self.expect(
            !server.idle.is_zero(),
            &at("idle"),
            "expected more than 0: an instance would end with each call",
        );
        InstanceConfig::of(server)
    }

    /// The servers of a set divide their state alike: all calls of an owner go to one of them.
    pub(super) fn instances_of_sets(&mut self, servers: &[ServerConfig]) {
        for (index, server) in servers.iter().enumerate() {
            let mode = |server: &ServerConfig| server.instances.mode.unwrap_or_default();
            let first = servers[..index]
                .iter()
                .find(|other| other.set == server.set);
            if let Some(first) = first.filter(|first| mode(first) != mode(server)) {
                let message = format!(
                    "expected {:?} as in `servers.{}`: both are in set {:?}, and an owner's calls go to one of \
                     its servers only",
                    mode(first).as_str(),
                    first.id,
                    server.set.as_str()
                );
                self.at(&["servers", server.id.as_str(), "instances"], message);
            }
        }
    }
}
