//! Settings of an upstream.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{CallClient, ClientCapabilities, Method, PeerObserver, ToolOutput};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::ask::Style;
use super::info::ServerInfo;
use crate::wire::{DEFAULT_MAX_LINE, known_version};

/// Which era to speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "two eras, and not knowing")]
pub enum EraChoice {
    /// Ask the server. One that speaks both over HTTP gets 2026-07-28, and `initialize` for each
    /// owner of an instance, if that opens a session. One that speaks both over a pipe gets
    /// `initialize`.
    #[default]
    Auto,
    /// Only 2026-07-28 and later.
    Modern,
    /// Only up to 2025-11-25; the server is not probed.
    Legacy,
}

/// Changes results of a server before any layer sees them, such as the URIs in them.
pub trait Rewrite: fmt::Debug + Send + Sync {
    /// Returns the result of a request of this method. `has_resources` states whether the server
    /// has any.
    fn result(&self, method: Method, output: ToolOutput, has_resources: bool) -> ToolOutput;
}

/// The only client of a process, as it has introduced itself.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OnlyClient {
    /// What it declares, without the extensions: each of its requests declares these.
    pub capabilities: ClientCapabilities,
    /// Where servers ask it between its calls; `None` if they can only ask in a call.
    pub client: Option<CallClient>,
}

impl OnlyClient {
    /// Describes a client.
    #[must_use]
    pub const fn new(capabilities: ClientCapabilities, client: Option<CallClient>) -> Self {
        Self {
            // else its calls would have an instance apart from the first one
            capabilities: capabilities.without_extensions(),
            client,
        }
    }
}

/// The settings of an upstream. The defaults suit most servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// Is notified of calls, listings and sessions when they end. Default: none.
    pub observer: Option<Arc<dyn PeerObserver>>,
    /// The client of a process that has only one: the first instance waits for it for 2 s, so that
    /// it can serve that client. Default: none, and the first instance declares nothing, as clients
    /// share it.
    pub only_client: Option<watch::Receiver<Option<OnlyClient>>>,
    /// Changes each result. Default: none, and results stay as they are.
    pub rewrite: Option<Arc<dyn Rewrite>>,
    /// The era. Default: [`EraChoice::Auto`].
    pub era: EraChoice,
    /// How long one attempt to connect may take: over HTTP greeting included, over a pipe without
    /// it ([`greeting_timeout`](Self::greeting_timeout)). A call waits so long for an instance that
    /// is starting. Default: 30 s.
    pub connect_timeout: Duration,
    /// How long a server over a pipe may take to answer its first greeting. Then its process is
    /// ended and started again. Default: 5 min, since `npx` and `uvx` download on a cold start. One
    /// that has greeted before has at most the [`connect_timeout`](Self::connect_timeout).
    pub greeting_timeout: Duration,
    /// The longest pause between two attempts to connect. The first follows a loss at once, the
    /// second after 100 ms; then the pause doubles. Default: 5 s.
    pub reconnect_cap: Duration,
    /// How long a child may take to end after its input is closed, and again after SIGTERM.
    /// Default: 2 s.
    pub shutdown_grace: Duration,
    /// The longest message accepted from the server, in bytes. A call whose answer is longer fails
    /// with [`ErrorKind::TooLarge`](callward_core::ErrorKind::TooLarge). Default:
    /// [`DEFAULT_MAX_LINE`](crate::wire::DEFAULT_MAX_LINE), 16 MiB.
    pub max_message: usize,
    /// How many connections there are to a server behind HTTP at most, for all of its instances
    /// together; 0 counts as 1. A call that finds no free one within the
    /// [`connect_timeout`](Self::connect_timeout) fails with
    /// [`ErrorKind::Overloaded`](callward_core::ErrorKind::Overloaded). Default: 256.
    pub max_connections: usize,
    /// The command that runs [`supervise`](crate::supervise::supervise), so that all processes that
    /// a child starts end with it, also those that leave its process group. The arguments of
    /// `supervise` are appended. Default: empty, and the child's process group is killed. Only
    /// Linux has supervisors; elsewhere this has no effect.
    ///
    /// This program itself is found as `/proc/self/exe`, also after its file was replaced.
    pub supervisor: Vec<OsString>,
    /// Whether each call carries its idempotency key: in `_meta` as `io.callward/idempotencyKey`,
    /// and over HTTP as `Idempotency-Key` too. Default, `None`: if the server declares the
    /// experimental capability `io.callward/idempotency`.
    ///
    /// A key that came with a caller other than this process goes out as a hash of key and
    /// principal, so that two callers who choose the same one do not get each other's results.
    pub idempotency_keys: Option<bool>,
    /// How many unassigned instances are kept started for the next session, beginning with the
    /// first one. With 0 no instance runs after all have ended, until one is needed. Default: 1.
    pub spare: usize,
    /// How long after its last call an instance ends, and what it holds is lost. Default: 5 min.
    pub idle: Duration,
    /// How many instances there are at most. For a further owner one is ended that has no call in
    /// flight and has run nothing but reads; if there is none, its calls fail. Default: 32; 0
    /// counts as 1.
    pub max_instances: usize,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            observer: None,
            only_client: None,
            rewrite: None,
            era: EraChoice::Auto,
            connect_timeout: Duration::from_secs(30),
            greeting_timeout: Duration::from_secs(5 * 60),
            reconnect_cap: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(2),
            max_message: DEFAULT_MAX_LINE,
            max_connections: 256,
            supervisor: Vec::new(),
            idempotency_keys: None,
            spare: 1,
            idle: Duration::from_secs(5 * 60),
            max_instances: 32,
        }
    }
}

impl UpstreamOptions {
    /// Returns how requests to a server are written.
    pub(super) fn style(&self, info: &ServerInfo) -> Style {
        Style {
            era: info.era,
            keys: self.idempotency_keys.unwrap_or(info.takes_idempotency_keys),
            version: known_version(&info.version),
        }
    }
}
