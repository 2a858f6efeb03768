//! How recorded calls are replayed.

use std::time::Duration;

use callward_cache::{CacheConfig, ToolScopes};
use callward_core::{Profile, ToolDefinition, ToolName};

use crate::Capacity;

/// How recorded calls are replayed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where the plans come from. Default: the record.
    pub hints: HintSource,
    /// Which sessions meet. Default: none.
    pub sessions: Sessions,
    /// Tools as their servers list them; they come before the record's labels. Default: none.
    pub tools: Vec<ToolDefinition>,
    /// Which state single tools read and write, within their world: for our cache. Default: each
    /// touches all of it.
    pub scopes: Vec<(ToolName, ToolScopes)>,
    /// The table from hints to plans. Default: standard.
    pub profile: Profile,
    /// The cache's own settings, but for its capacity. Default: the cache's.
    pub cache: CacheConfig,
    /// How long the policies it is compared with keep a result. Default: as long as ours keeps a
    /// read.
    pub ttl: Duration,
    /// How much all bounded policies may keep, ours among them. Default: 64 MiB.
    pub capacity: Capacity,
    /// What a call of unknown duration would have cost. It is counted as saved, but moves no clock.
    /// Default: 100 ms.
    pub assumed_duration: Duration,
    /// The time between two calls of a session whose times are not recorded. Default: none.
    pub gap: Duration,
}

/// Where the plans of the calls come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HintSource {
    /// What the record says of the call; where it says nothing, from the tool's name.
    #[default]
    Recorded,
    /// The tool's name alone, by the standard rules.
    Inferred,
}

/// Which sessions share state and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sessions {
    /// Each session is a world of its own, unless the record names the state it works on.
    #[default]
    Apart,
    /// All sessions of a trace work on the same state, for the same principal.
    Shared,
}

impl Options {
    /// Says whether the tool is among those given.
    pub(crate) fn is_listed(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name().as_str() == name)
    }
}

impl Default for Options {
    fn default() -> Self {
        let profile = Profile::standard();
        Self {
            hints: HintSource::default(),
            sessions: Sessions::default(),
            tools: Vec::new(),
            scopes: Vec::new(),
            ttl: profile.read_ttl,
            profile,
            cache: CacheConfig::default(),
            capacity: Capacity::Bytes(CacheConfig::default().max_bytes),
            assumed_duration: Duration::from_millis(100),
            gap: Duration::ZERO,
        }
    }
}
