//! Settings of a replay.

use std::time::Duration;

use callward_cache::{CacheConfig, ToolScopes};
use callward_core::{Profile, ToolDefinition, ToolName};

use crate::Capacity;

/// Settings of a replay.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// `true` plans by the tool's name alone, with the standard rules. Default: by the labels of
    /// the recording, and by the name where there is none.
    pub infer: bool,
    /// `true` lets all sessions of a trace share one state and one principal. Default: each session
    /// has its own state, unless the recording names a replica set.
    pub share_sessions: bool,
    /// Listed tools; they override the labels of the recording. Default: none.
    pub tools: Vec<ToolDefinition>,
    /// The scopes of single tools, for our cache. Default: each tool touches its whole world.
    pub scopes: Vec<(ToolName, ToolScopes)>,
    /// The table from hints to plans. Default: standard.
    pub profile: Profile,
    /// The settings of the cache, except its capacity. Default: those of the cache.
    pub cache: CacheConfig,
    /// The lifetime of results in the compared policies. Default: that of a read in our cache.
    pub ttl: Duration,
    /// The capacity of all bounded policies, including ours. Default: 64 MiB.
    pub capacity: Capacity,
    /// The saved time for a call of unknown duration. The clock does not advance by it. Default:
    /// 100 ms.
    pub assumed_duration: Duration,
    /// The time between two calls of a session without recorded times. Default: none.
    pub gap: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let profile = Profile::standard();
        Self {
            infer: false,
            share_sessions: false,
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
