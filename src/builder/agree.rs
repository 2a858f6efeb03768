//! The settings that all servers of a replica set share.

use std::collections::{BTreeMap, HashMap};

use callward_cache::{ScopeRules, StateGroup, ToolScopes};
use callward_core::{ReplicaSetId, ToolName};
use callward_registry::SetOptions;

use super::{BuildError, Settings};
use crate::server::Server;

impl Settings {
    /// Merges the settings of servers into the options of their replica set.
    pub(crate) fn set_options<'a>(
        &self,
        servers: impl Iterator<Item = &'a Server>,
    ) -> Result<BTreeMap<ReplicaSetId, SetOptions>, BuildError> {
        let mut all: BTreeMap<ReplicaSetId, SetOptions> = BTreeMap::new();
        for server in servers {
            let mut said = server.options.clone();
            said.rules = self.rules;
            said.lexicon.clone_from(&self.lexicon);
            said.profile = self.profile.clone();
            let mode = server.freshness.or(self.freshness);
            said.freshness = mode.unwrap_or_else(|| server.server.0.freshness());
            let Some(options) = all.get_mut(&server.set) else {
                all.insert(server.set.clone(), said);
                continue;
            };
            // servers that replace each other have no state of one caller's, unless the operator
            // says so
            let instances = *options.instances.get_or_insert_default();
            let instances = said.instances.unwrap_or_default() == instances;
            let caching = agree(&mut options.tool_caching, &said.tool_caching);
            let overrides = agree(&mut options.overrides, &said.overrides);
            let refinements = agree(&mut options.refinements, &said.refinements);
            let verify_with = agree(&mut options.verify_with, &said.verify_with);
            let shown = agree(&mut options.shown, &said.shown);
            let checks = options.checks_arguments == said.checks_arguments;
            let freshness = options.freshness == said.freshness;
            let defaults = options.defaults == said.defaults;
            for (agree, what) in [
                (options.prefix == said.prefix, "the prefix of their tools"),
                (options.trust == said.trust, "how far they are trusted"),
                (freshness, "what decides how long results are kept"),
                (options.caching == said.caching, "whether results are kept"),
                (defaults, "the default hints of their tools"),
                (instances, "whose instance of a server a call goes to"),
                (caching, "whether results of one tool are kept"),
                (overrides, "the operator's hints for one tool"),
                (refinements, "the rules over one tool's arguments"),
                (verify_with, "what to verify one tool's calls with"),
                (shown, "what clients see of one tool"),
                (checks, "whether arguments are checked against schemas"),
            ] {
                if !agree {
                    return Err(BuildError::conflict(&server.set, what));
                }
            }
        }
        Ok(all)
    }

    /// Merges the scopes of the cache's config and those of the servers.
    pub(crate) fn scope_rules<'a>(
        &self,
        servers: impl Iterator<Item = &'a Server>,
    ) -> Result<ScopeRules, BuildError> {
        let mut said: BTreeMap<&ReplicaSetId, HashMap<ToolName, ToolScopes>> = BTreeMap::new();
        let mut states: BTreeMap<&ReplicaSetId, &StateGroup> = BTreeMap::new();
        for server in servers {
            if *states.entry(&server.set).or_insert(&server.state) != &server.state {
                let what = "which other sets share their state";
                return Err(BuildError::conflict(&server.set, what));
            }
            if !agree(said.entry(&server.set).or_default(), &server.scopes) {
                let what = "which state one tool reads and writes";
                return Err(BuildError::conflict(&server.set, what));
            }
        }
        states.retain(|_, state| **state != StateGroup::Shared);
        let mut rules = self.cache.scopes.clone();
        for (set, state) in states {
            rules = rules.with_state(set.clone(), state.clone());
        }
        for (set, tools) in said {
            for (tool, scopes) in tools {
                rules = rules.with(set.clone(), tool, scopes);
            }
        }
        Ok(rules)
    }
}

/// Adds what one more server's config states about single tools. Returns `true` if it contradicts
/// nothing.
fn agree<T: Clone + PartialEq>(
    taken: &mut HashMap<ToolName, T>,
    said: &HashMap<ToolName, T>,
) -> bool {
    said.iter()
        .all(|(tool, said)| taken.entry(tool.clone()).or_insert_with(|| said.clone()) == said)
}
