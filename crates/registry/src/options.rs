//! The options of a replica set.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Shown;
use callward_core::infer::{Inference, Lexicon, RuleSet};
use callward_core::{
    Annotations, ArgumentRule, Caching, FreshnessMode, Instances, Learned, Lifetime, Profile,
    ToolName, Trust,
};

/// The options that the tools of a replica set are read with.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SetOptions {
    /// The prefix before `__` in the names that clients see. Default: none, names stay unchanged.
    pub prefix: Option<String>,
    /// How far the servers' own hints are trusted. Default: [`Trust::Standard`].
    pub trust: Trust,
    /// The inference rules. Default: `standard`.
    pub rules: RuleSet,
    /// The verbs that the `standard` rules know. Default: [`Lexicon::standard`].
    pub lexicon: Option<Arc<Lexicon>>,
    /// The preset that turns hints into plans. Default: [`Profile::standard`].
    pub profile: Profile,
    /// The lifetime of results that the operator does not configure. Default:
    /// [`FreshnessMode::Fixed`].
    pub freshness: FreshnessMode,
    /// The operator's caching of all tools. Default: none.
    pub caching: Option<Caching>,
    /// The operator's caching of single tools. Default: none.
    pub tool_caching: HashMap<ToolName, Caching>,
    /// Hints of every tool, weaker than those that a server declares. Default: none.
    pub defaults: Annotations,
    /// The operator's hints by tool, which beat all others. Default: none.
    pub overrides: HashMap<ToolName, Annotations>,
    /// The operator's rules over arguments, by tool: the first that matches wins. Default: none.
    pub refinements: HashMap<ToolName, Vec<ArgumentRule>>,
    /// The operator's pairs: by writing tool, the read-only tool of the set that shows the effect
    /// of a call with an unknown outcome. Default: none, names decide.
    pub verify_with: HashMap<ToolName, ToolName>,
    /// How single tools are shown to clients. Default: as their servers list them.
    pub shown: HashMap<ToolName, Shown>,
    /// Whether arguments are checked against the tool's schema before a call is sent. Default: no,
    /// as servers may accept more than their schemas say. Needs the feature `schema`.
    pub checks_arguments: bool,
    /// How the state behind the tools is divided among callers. Default: each server's own.
    pub instances: Option<Instances>,
}

impl SetOptions {
    /// Returns the known verbs.
    pub(crate) fn words(&self) -> &Lexicon {
        match &self.lexicon {
            Some(lexicon) => lexicon,
            None => Lexicon::standard(),
        }
    }

    /// Returns the inference of the set.
    pub(crate) fn inference(&self) -> Inference<'_> {
        Inference {
            rules: self.rules,
            lexicon: self.words(),
        }
    }

    /// Returns the profile of one tool, with the operator's caching of the tool, or else of the
    /// server. A TTL of the server does not apply to its volatile tools, such as clocks and
    /// cursors.
    pub(crate) fn profile_of(&self, tool: &ToolName, is_volatile: bool) -> Profile {
        let mut profile = self.profile.clone();
        if self.freshness == FreshnessMode::Learned {
            let mut learned = Learned::default();
            learned.extends = self.trust != Trust::Untrusted;
            let learned = Lifetime::Learned(learned);
            profile.read_lifetime = learned;
            if profile.idempotent_lifetime == Lifetime::Fixed {
                profile.idempotent_lifetime = learned;
            }
        }
        let of_tool = self.tool_caching.get(tool);
        match of_tool.or(self.caching.as_ref()) {
            Some(Caching::Never) => profile.caches = false,
            Some(Caching::For(_)) if is_volatile && of_tool.is_none() => profile.caches = false,
            Some(Caching::For(ttl)) => {
                profile.read_ttl = *ttl;
                profile.read_lifetime = Lifetime::Stated;
            }
            _ => {}
        }
        profile
    }
}
