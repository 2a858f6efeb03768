//! What the tests of this crate share: a cache around a scripted service, and a few calls.

use std::sync::Arc;

use callward_cache::{Cache, CacheConfig, CacheHandle, CacheLayer, CacheStats};
use callward_core::{Delivery, ErrorKind, Tool, ToolCall, ToolError, ToolOutput, ToolService};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Layer, ServiceExt};

/// A cache around a service.
#[derive(Debug, Clone)]
pub(crate) struct Bench<S = MockService> {
    pub(crate) mock: S,
    pub(crate) cache: Cache<S>,
    pub(crate) handle: CacheHandle,
}

impl<S: ToolService + Sync> Bench<S> {
    pub(crate) fn new(mock: S) -> Self {
        Self::with(CacheConfig::default(), mock)
    }

    pub(crate) fn with(config: CacheConfig, mock: S) -> Self {
        let layer = CacheLayer::new(config);
        Self {
            cache: layer.layer(mock.clone()),
            handle: layer.handle(),
            mock,
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.handle.stats()
    }

    /// Makes a call and waits for its answer.
    pub(crate) async fn ask(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        self.cache.clone().oneshot(call).await
    }

    /// Makes a call and returns the text of its answer, or of its failure.
    pub(crate) async fn text(&self, call: ToolCall) -> String {
        match self.ask(call).await {
            Ok(output) => output.to_text(),
            Err(error) => error.message.to_string(),
        }
    }

    /// Makes a call on a task of its own, and lets it run as far as it can.
    pub(crate) async fn start(&self, call: ToolCall) -> Running {
        let cache = self.cache.clone();
        let running = tokio::spawn(async move { cache.oneshot(call).await });
        settle().await;
        running
    }
}

pub(crate) type Running = tokio::task::JoinHandle<Result<ToolOutput, ToolError>>;

/// Lets all tasks run as far as they can.
pub(crate) async fn settle() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

/// A read-only tool, kept 300 s.
pub(crate) fn get() -> Arc<Tool> {
    tool("get").read_only().build()
}

/// A call of [`get`] with the same arguments each time.
pub(crate) fn read() -> ToolCall {
    call(&get(), json!({"id": 1}))
}

/// A mutating call.
pub(crate) fn write() -> ToolCall {
    call(&tool("add").build(), json!({"id": 1}))
}

/// A failure of this delivery.
pub(crate) fn failure(delivery: Delivery) -> ToolError {
    let kind = match delivery {
        Delivery::Answered => ErrorKind::ServerFault,
        Delivery::NotSent => ErrorKind::ConnectFailed,
        Delivery::Unknown => ErrorKind::ConnectionLost,
    };
    ToolError::new(kind, delivery, delivery.as_str())
}
