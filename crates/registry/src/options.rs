//! How the tools of one replica set are read.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::infer::{Inference, Lexicon, RuleSet};
use callward_core::{
    Annotations, ArgumentRule, Caching, FreshnessMode, Instances, Learned, Lifetime, Profile,
    ToolName, Trust,
};

/// How the tools of one replica set are read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SetOptions {
    /// What stands before `__` in the names clients see. Default: nothing, names stay as they are.
    pub prefix: Option<String>,
    /// How far the servers' own hints are believed. Default: [`Trust::Standard`].
    pub trust: Trust,
    /// Which rules fill gaps. Default: `standard`.
    pub rules: RuleSet,
    /// Which verbs the `standard` rules know. Default: [`Lexicon::standard`].
    pub lexicon: Option<Arc<Lexicon>>,
    /// Which preset turns hints into plans. Default: [`Profile::standard`].
    pub profile: Profile,
    /// What decides how long results are kept of which the operator says nothing. Default:
    /// [`FreshnessMode::Fixed`].
    pub freshness: FreshnessMode,
    /// What the operator says of the results of all tools. Default: nothing.
    pub caching: Option<Caching>,
    /// What the operator says of the results of single tools. Default: nothing.
    pub tool_caching: HashMap<ToolName, Caching>,
    /// Hints for every tool of the set, weaker than what a server declares. Default: none.
    pub defaults: Annotations,
    /// The operator's own hints, by tool: they win over everything. Default: none.
    pub overrides: HashMap<ToolName, Annotations>,
    /// The operator's rules over arguments, by tool: the first that matches wins. Default: none.
    pub refinements: HashMap<ToolName, Vec<ArgumentRule>>,
    /// The operator's own pairs: by tool that writes, the tool of the same set that only reads, to
    /// check with what a call did whose answer never came. Default: none, so that names decide.
    pub verify_with: HashMap<ToolName, ToolName>,
    /// How the state behind the tools is divided among callers. Default: as each server says.
    pub instances: Option<Instances>,
}

impl Default for SetOptions {
    fn default() -> Self {
        Self {
            prefix: None,
            trust: Trust::default(),
            rules: RuleSet::Standard,
            lexicon: None,
            profile: Profile::default(),
            freshness: FreshnessMode::default(),
            caching: None,
            tool_caching: HashMap::new(),
            defaults: Annotations::default(),
            overrides: HashMap::new(),
            refinements: HashMap::new(),
            verify_with: HashMap::new(),
            instances: None,
        }
    }
}

impl SetOptions {
    /// Returns the verbs that are known.
    pub(crate) fn words(&self) -> &Lexicon {
        match &self.lexicon {
            Some(lexicon) => lexicon,
            None => Lexicon::standard(),
        }
    }

    /// Returns what draws conclusions about the tools of the set.
    pub(crate) fn inference(&self) -> Inference<'_> {
        Inference::new(self.rules).with_lexicon(self.words())
    }

    /// Returns the profile for one tool: with what the operator says of its results, or else of all
    /// results of the server. A TTL of the server is not meant for its clocks and cursors.
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

    /// Sets what stands before `__` in the names clients see.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }
}
