//! The layer and its service.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, InvalidConfig, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;

use crate::LoopGuardConfig;
use crate::call::Watch;
use crate::table::Table;

/// Puts a [`LoopGuard`] around a service. All services of one layer share their state.
///
/// ```
/// use std::sync::Arc;
///
/// use callward_core::{Caller, Principal, SessionId, ToolError, ToolOutput};
/// use callward_loopguard::LoopGuardLayer;
/// use callward_testkit::{MockService, call, tool};
/// use serde_json::json;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), ToolError> {
/// let server = MockService::new(|_, _| async { Ok(ToolOutput::error_text("no such order: 7")) });
/// let service = ServiceBuilder::new()
///     .layer(LoopGuardLayer::default())
///     .service(server.clone());
/// let ada = Caller::new(Principal::new("ada")).with_session(SessionId::new("1"));
/// let order = call(&tool("cancel_order").build(), json!({"id": 7})).with_caller(Arc::new(ada));
/// for _ in 0..6 {
///     assert!(service.clone().oneshot(order.clone()).await?.is_error());
/// }
/// assert_eq!(server.started(), 5, "the guard answers the sixth call");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LoopGuardLayer {
    table: Option<Arc<Table>>,
}

/// What a guard holds, and what it did since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoopGuardStats {
    /// How many calls it answered in their servers' place.
    pub answered: u64,
    /// How many failing calls it holds now.
    pub held: usize,
}

impl LoopGuardLayer {
    /// Makes a layer.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(config: LoopGuardConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        let table = Some(Arc::new(Table::new(config)));
        Ok(Self { table })
    }

    /// Makes a layer that passes every call.
    #[must_use]
    pub const fn off() -> Self {
        Self { table: None }
    }

    /// Returns what the guard holds and did.
    #[must_use]
    pub fn stats(&self) -> LoopGuardStats {
        let table = self.table.as_ref();
        table.map_or_else(LoopGuardStats::default, |table| LoopGuardStats {
            answered: table.answered.load(Ordering::Relaxed),
            held: table.len(),
        })
    }
}

impl Default for LoopGuardLayer {
    fn default() -> Self {
        let table = Some(Arc::new(Table::new(LoopGuardConfig::default())));
        Self { table }
    }
}

impl<S> Layer<S> for LoopGuardLayer {
    type Service = LoopGuard<S>;

    fn layer(&self, inner: S) -> LoopGuard<S> {
        let table = self.table.clone();
        LoopGuard { inner, table }
    }
}

/// Answers in a server's place when one session sends the same failing call over and over.
#[derive(Debug, Clone)]
pub struct LoopGuard<S> {
    inner: S,
    table: Option<Arc<Table>>,
}

impl<S: ToolService> Service<ToolCall> for LoopGuard<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<S::Future, BoxFuture<'static, Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let table = self.table.as_ref();
        match table.map_or(Ok(None), |table| Watch::begin(table, &call)) {
            Ok(None) => Either::Left(self.inner.call(call)),
            Ok(Some(watch)) => {
                let sent = self.inner.call(call);
                Either::Right(Box::pin(async move {
                    let result = sent.await;
                    watch.end(&result);
                    result
                }))
            }
            Err(answer) => Either::Right(Box::pin(ready(Ok(answer)))),
        }
    }
}
