//! The service.

use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_service::Service;

use crate::call::Watch;
use crate::table::Table;

/// Answers in a server's place when one session sends the same failing call over and over.
#[derive(Debug, Clone)]
pub struct LoopGuard<S> {
    inner: S,
    table: Option<Arc<Table>>,
}

impl<S> LoopGuard<S> {
    pub(crate) const fn new(inner: S, table: Option<Arc<Table>>) -> Self {
        Self { inner, table }
    }
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
