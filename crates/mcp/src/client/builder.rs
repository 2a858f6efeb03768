//! Settings of an upstream.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{PeerObserver, ServerId};
use serde::{Deserialize, Serialize};

use super::ask::{Style, modern_context};
use super::handle::Upstream;
use super::http::Connections;
use super::info::ServerInfo;
use super::instances::Limits;
use super::pipe::Supervisor;
use super::shared::Shared;
use super::target::Target;
use crate::wire::{DEFAULT_MAX_LINE, Era, LongMessages, known_version, write};

/// Which era to speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "there are two eras, and not knowing"
)]
pub enum EraChoice {
    /// Ask the server. One that speaks both over HTTP gets 2026-07-28, and `initialize` for each
    /// owner of an instance, if that opens a session.
    #[default]
    Auto,
    /// Only 2026-07-28 and later.
    Modern,
    /// Only up to 2025-11-25; the server is not probed.
    Legacy,
}

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) era: EraChoice,
    pub(super) connect_timeout: Duration,
    pub(super) greeting_timeout: Duration,
    pub(super) list_timeout: Duration,
    pub(super) probe_timeout: Duration,
    pub(super) reconnect_cap: Duration,
    pub(super) shutdown_grace: Duration,
    pub(super) max_message: usize,
    pub(super) connections: Connections,
    pub(super) long_messages: LongMessages,
    pub(super) supervisor: Option<Arc<[OsString]>>,
    /// Whether calls carry their idempotency key; nothing: if the server says it takes them.
    pub(super) idempotency_keys: Option<bool>,
    /// The implementation object we introduce ourselves with, raw.
    pub(super) client_info: Arc<[u8]>,
    pub(super) observer: Option<Arc<dyn PeerObserver>>,
    pub(super) instances: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            era: EraChoice::Auto,
            connect_timeout: Duration::from_secs(30),
            greeting_timeout: Duration::from_secs(5 * 60),
            list_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(10),
            reconnect_cap: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(2),
            max_message: DEFAULT_MAX_LINE,
            connections: Connections::new(DEFAULT_MAX_CONNECTIONS),
            long_messages: LongMessages::default(),
            supervisor: None,
            idempotency_keys: None,
            client_info: client_info("callward", env!("CARGO_PKG_VERSION")),
            observer: None,
            instances: Limits::default(),
        }
    }
}

impl Options {
    /// Returns how requests to a server are written.
    pub(super) fn style(&self, info: &ServerInfo) -> Style {
        let is_modern = info.era == Era::Modern;
        Style {
            context: is_modern.then(|| modern_context(&self.client_info).into()),
            keys: self.idempotency_keys.unwrap_or(info.takes_idempotency_keys),
            version: known_version(&info.version),
        }
    }

    /// Returns the command that a child is started behind; empty if the platform has none.
    pub(super) fn supervisor(&self) -> Option<Supervisor> {
        let command = self.supervisor.clone().filter(|words| !words.is_empty())?;
        cfg!(target_os = "linux").then_some(Supervisor {
            command,
            grace: self.shutdown_grace,
        })
    }
}

/// How many connections there are to a server behind HTTP by default.
const DEFAULT_MAX_CONNECTIONS: usize = 256;

/// Sets an upstream up. Every option has a default that suits most servers.
#[derive(Debug)]
#[must_use = "nothing happens before `start`"]
pub struct UpstreamBuilder {
    id: ServerId,
    target: Target,
    options: Options,
}

impl UpstreamBuilder {
    pub(super) fn new(id: ServerId, target: Target) -> Self {
        Self {
            id,
            target,
            options: Options::default(),
        }
    }

    /// Sets the observer of calls, listings and sessions, notified when they end. Default: none.
    pub fn observer(mut self, observer: Arc<dyn PeerObserver>) -> Self {
        self.options.observer = Some(observer);
        self
    }

    /// Sets the era. Default: [`EraChoice::Auto`].
    pub fn era(mut self, era: EraChoice) -> Self {
        self.options.era = era;
        self
    }

    /// Sets how long one attempt to connect may take: over HTTP greeting included, over a pipe
    /// without it ([`greeting_timeout`](Self::greeting_timeout)). A call waits so long for an
    /// instance that is starting. Default: 30 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.connect_timeout = timeout;
        self
    }

    /// Sets how long a server over a pipe may take to answer its first greeting. Then its process
    /// is ended and started again. Default: 5 min, since `npx` and `uvx` download on a cold start.
    /// One that has greeted before has at most the [`connect_timeout`](Self::connect_timeout).
    pub fn greeting_timeout(mut self, timeout: Duration) -> Self {
        self.options.greeting_timeout = timeout;
        self
    }

    /// Sets the longest pause between two attempts to connect. The first follows a loss at once,
    /// the second after 100 ms; then the pause doubles. Default: 5 s.
    pub fn reconnect_cap(mut self, cap: Duration) -> Self {
        self.options.reconnect_cap = cap;
        self
    }

    /// Sets how long a child may take to end after its input is closed, and again after SIGTERM.
    /// Default: 2 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.options.shutdown_grace = grace;
        self
    }

    /// Sets the longest message accepted from the server, in bytes. A call whose answer is longer
    /// fails with [`ErrorKind::TooLarge`](callward_core::ErrorKind::TooLarge). Default:
    /// [`DEFAULT_MAX_LINE`](crate::wire::DEFAULT_MAX_LINE), 16 MiB.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.options.max_message = bytes;
        self
    }

    /// Sets how many connections there are to a server behind HTTP at most, for all of its
    /// instances together; 0 counts as 1. A call that finds no free one within the
    /// [`connect_timeout`](Self::connect_timeout) fails with
    /// [`ErrorKind::Overloaded`](callward_core::ErrorKind::Overloaded). Default: 256.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.options.connections = Connections::new(max);
        self
    }

    /// Sets the command that runs [`supervise`](crate::supervise::supervise), so that all processes
    /// that a child starts end with it, also those that leave its process group. The arguments of
    /// `supervise` are appended. Default: none, and the child's process group is killed. Only Linux
    /// has supervisors; elsewhere this has no effect.
    ///
    /// This program itself is found as `/proc/self/exe`, also after its file was replaced.
    pub fn supervisor(mut self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.options.supervisor = Some(command.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether each call carries its idempotency key: in `_meta` as
    /// `io.callward/idempotencyKey`, and over HTTP as `Idempotency-Key` too. Default: if the server
    /// declares the experimental capability `io.callward/idempotency`.
    ///
    /// A key that came with a caller other than this process goes out as a hash of key and
    /// principal, so that two callers who choose the same one do not get each other's results.
    pub fn idempotency_keys(mut self, send: bool) -> Self {
        self.options.idempotency_keys = Some(send);
        self
    }

    /// Sets how many unassigned instances are kept started for the next session, beginning with the
    /// first one. With 0 no instance runs after all have ended, until one is needed. Default: 1.
    pub fn spare(mut self, instances: usize) -> Self {
        self.options.instances.spare = instances;
        self
    }

    /// Sets how long after its last call an instance ends, and what it holds is lost. Default: 5
    /// min.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.options.instances.idle = idle;
        self
    }

    /// Sets how many instances there are at most. For a further owner one is ended that has no call
    /// in flight and has run nothing but reads; if there is none, its calls fail. Default: 32; 0
    /// counts as 1.
    pub fn max_instances(mut self, instances: usize) -> Self {
        self.options.instances.max = instances.max(1);
        self
    }

    /// Sets the name and version to introduce ourselves with. Default: `callward` and its version.
    pub fn client_info(mut self, name: &str, version: &str) -> Self {
        self.options.client_info = client_info(name, version);
        self
    }

    /// Starts connecting, in the background. Never fails: see [`Upstream::ready`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(self) -> Upstream {
        Upstream::start(Shared::new(self.id, self.options), self.target)
    }
}

fn client_info(name: &str, version: &str) -> Arc<[u8]> {
    let mut out = b"{\"name\":".to_vec();
    write::string(&mut out, name);
    out.extend_from_slice(b",\"version\":");
    write::string(&mut out, version);
    out.push(b'}');
    out.into()
}
