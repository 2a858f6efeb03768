//! Plugins of discovery: code that sees each list of tools before clients do.

mod run;
mod shipped;

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

pub use callward_core::ToolOverlay;
use callward_core::{BoxFuture, ReplicaSetId, ServerId, ToolDefinition};
pub use tower::BoxError;

pub(crate) use self::run::{after, around};
use crate::discovery::Discovery;

/// Changes what clients see of tools when a server's list is read. Each method does nothing by
/// default.
///
/// A plugin may rename, describe, hide, tag and refuse a tool, and make its hints stricter. It
/// cannot make them looser: of the [hints](ToolOverlay::hints) that it states, the others have no
/// effect. What the operator configures for a tool wins over plugins, a later plugin over an
/// earlier one. A plugin's change is never held for [review](crate::StackBuilder::review), which
/// compares what servers list.
///
/// Plugins run in the order in which they are [added](crate::StackBuilder::plugin). What happens to
/// one that fails, panics or takes too long is decided where it is added: see [`Plugin`].
///
/// ```
/// use callward::core::{BoxFuture, ReplicaSetId, ServerId, ToolDefinition};
/// use callward::plugin::{BoxError, Plugin, ToolOverlay, ToolPlugin};
/// use callward::{Stack, ToolSpec, Tools};
///
/// /// Asks a person before each call of a tool that touches production.
/// struct Production;
///
/// impl ToolPlugin for Production {
///     fn name(&self) -> &str {
///         "production"
///     }
///
///     fn transform_tool<'a>(
///         &'a self,
///         _: &'a ReplicaSetId,
///         _: &'a ServerId,
///         tool: &'a ToolDefinition,
///     ) -> BoxFuture<'a, Result<ToolOverlay, BoxError>> {
///         Box::pin(async move {
///             let mut overlay = ToolOverlay::default();
///             if tool.name.as_str().ends_with("_prod") {
///                 overlay.hints.requires_confirmation = Some(true);
///             }
///             Ok(overlay)
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let run = |_: serde_json::Value| std::future::ready(Ok::<_, String>("done"));
/// # let tools = Tools::new("ops")?.tool(ToolSpec::new("restart_prod"), run)?;
/// let stack = Stack::builder().server(tools).plugin(Plugin::new(Production)).build().await?;
/// # let catalogue = stack.catalogue();
/// # let plan = catalogue.find("ops.restart_prod").unwrap().tool().plan().clone();
/// # assert_eq!(plan.confirm, callward::core::ConfirmRule::Ask);
/// # Ok(())
/// # }
/// ```
pub trait ToolPlugin: Send + Sync + 'static {
    /// Returns the name that reasons and logs give the plugin; read once.
    fn name(&self) -> &str;

    /// Runs before a server is asked for its list.
    ///
    /// # Errors
    ///
    /// Why the server is not listed now. The listing has failed, and is tried again later.
    fn before_discovery<'a>(
        &'a self,
        set: &'a ReplicaSetId,
        server: &'a ServerId,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        let _ = (set, server);
        Box::pin(ready(Ok(())))
    }

    /// Returns what to change of a tool. The definition is the server's, with the
    /// [overlays](ToolDefinition::overlays) of the plugins before this one. Tools that
    /// cannot be used are left out.
    ///
    /// # Errors
    ///
    /// Why the plugin cannot decide.
    fn transform_tool<'a>(
        &'a self,
        set: &'a ReplicaSetId,
        server: &'a ServerId,
        tool: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<ToolOverlay, BoxError>> {
        let _ = (set, server, tool);
        Box::pin(ready(Ok(ToolOverlay::default())))
    }

    /// Runs after a list is registered, in the background: nothing waits for it, and with it a
    /// later listing may begin.
    fn after_discovery<'a>(&'a self, discovery: &'a Discovery) -> BoxFuture<'a, ()> {
        let _ = discovery;
        Box::pin(ready(()))
    }
}

/// A plugin with its time box and failure policy.
///
/// A plugin fails if it returns an error, panics or exceeds its time box. It fails *closed*, or
/// [open](Self::fail_open) where that is set: a failure before a listing fails the listing, and a
/// tool that cannot be transformed is refused, with the reason among the
/// [refused](crate::Discovery::refused) ones.
///
/// The time box holds for each of the three steps of one listing: all tools of a server are
/// transformed within one. Tools that are transformed when it ends stay so; the others have failed.
/// A plugin that blocks its thread is not interrupted.
#[derive(Clone)]
#[must_use]
pub struct Plugin {
    plugin: Arc<dyn ToolPlugin>,
    name: Arc<str>,
    timeout: Duration,
    fails_open: bool,
}

impl Plugin {
    /// Takes a plugin that fails closed, with a time box of 5 s.
    pub fn new(plugin: impl ToolPlugin) -> Self {
        Self {
            name: plugin.name().into(),
            plugin: Arc::new(plugin),
            timeout: Duration::from_secs(5),
            fails_open: false,
        }
    }

    /// Sets the time box. Default: 5 s.
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Goes on where the plugin fails as if it were not there. Default: a failure is closed.
    pub const fn fail_open(mut self) -> Self {
        self.fails_open = true;
        self
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin({})", self.name)
    }
}
