//! Runs the plugins of a stack around a listing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use callward_core::{
    Delivery, ErrorKind, Method, ReplicaSetId, ServerId, ToolDefinition, ToolError, ToolOverlay,
    one_line,
};
use futures_util::FutureExt;
use tokio::task::coop::consume_budget;
use tokio::time::timeout;

use super::{BoxError, Plugin};
use crate::discovery::Discovery;

/// Runs a listing between the first and second step of plugins, in their order.
pub(crate) async fn around(
    plugins: &[Plugin],
    listing: impl Future<Output = Result<Vec<ToolDefinition>, ToolError>>,
    set: &ReplicaSetId,
    server: &ServerId,
) -> Result<Vec<ToolDefinition>, ToolError> {
    for plugin in plugins {
        let before = async { plugin.plugin.before_discovery(set, server).await };
        let Err(why) = plugin.run(before).await else {
            continue;
        };
        let why = plugin.says(&why);
        if !plugin.fails_open {
            return Err(ToolError::new(ErrorKind::Internal, Delivery::NotSent, why));
        }
        tracing::warn!(%server, why, "plugin ignored");
    }
    let mut definitions = listing.await?;
    for plugin in plugins {
        plugin.transform(set, server, &mut definitions).await;
    }
    Ok(definitions)
}

/// Runs the last step of plugins.
pub(crate) async fn after(plugins: Arc<[Plugin]>, discovery: Arc<Discovery>) {
    for plugin in &*plugins {
        let after = async { plugin.plugin.after_discovery(&discovery).map(Ok).await };
        if let Err(why) = plugin.run(after).await {
            tracing::warn!(server = %discovery.server, why = plugin.says(&why), "plugin ignored");
        }
    }
}

impl Plugin {
    /// Transforms all tools of a list, in one time box.
    async fn transform(
        &self,
        set: &ReplicaSetId,
        server: &ServerId,
        definitions: &mut [ToolDefinition],
    ) {
        let tools = definitions
            .iter_mut()
            .filter(|tool| tool.method == Method::CallTool && tool.fault.is_none());
        let tools: Vec<_> = tools.collect();
        let mut outcomes = Vec::with_capacity(tools.len());
        let all = async {
            for tool in &tools {
                // a plugin that never waits leaves time for calls, too
                consume_budget().await;
                let one = async { self.plugin.transform_tool(set, server, tool).await };
                outcomes.push(caught(one).await);
            }
            Ok(())
        };
        let late = self.run(all).await.err().unwrap_or_default();
        outcomes.resize(tools.len(), Err(late));
        let mut ignored = None;
        for (tool, outcome) in tools.into_iter().zip(outcomes) {
            let mut overlay = ToolOverlay::default();
            match outcome {
                Ok(given) => overlay = given,
                Err(why) if self.fails_open => ignored = Some(self.says(&why)),
                Err(why) => overlay.refused = Some(why),
            }
            overlay.refused = overlay.refused.map(|why| self.says(&why));
            if overlay != ToolOverlay::default() {
                tool.overlays.push(overlay);
            }
        }
        if let Some(why) = ignored {
            tracing::warn!(%server, why, "plugin ignored for some tools");
        }
    }

    /// Runs a step in the time box. Returns why it failed.
    async fn run<T>(&self, step: impl Future<Output = Result<T, BoxError>>) -> Result<T, String> {
        let late = |_| Err(format!("took longer than {} s", self.timeout.as_secs_f64()));
        timeout(self.timeout, caught(step))
            .await
            .unwrap_or_else(late)
    }

    fn says(&self, why: &str) -> String {
        one_line(&format!("plugin `{}`: {why}", self.name), 300)
    }
}

/// Returns the error of a step as a text; a panic is one.
async fn caught<T>(step: impl Future<Output = Result<T, BoxError>>) -> Result<T, String> {
    let done = AssertUnwindSafe(step).catch_unwind().await;
    let done = done.unwrap_or_else(|_| Err("panicked".into()));
    done.map_err(|error| error.to_string())
}
