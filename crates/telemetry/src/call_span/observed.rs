//! A call that somebody observes, from its arrival to its end.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate_core::{CallRecord, ConfirmRule, Effect, Tool, ToolCall};
use tracing::Span;

use super::span;
use crate::contents::Contents;
use crate::error_type::Ending;
use crate::metrics::{Ended, Metrics};
use crate::{context, names};

/// A call under observation. Dropped before [`end`](Self::end), it was cancelled.
#[derive(Debug)]
pub(super) struct Observed {
    span: Span,
    record: Arc<CallRecord>,
    tool: Arc<Tool>,
    effect: Effect,
    confirm: ConfirmRule,
    started: Instant,
    metrics: Option<Arc<Metrics>>,
    /// Whether the call came as an MCP request.
    is_server: bool,
    /// How to show the result, if it is to be shown.
    contents: Option<Contents>,
    ended: bool,
}

impl Observed {
    /// Begins to observe a call, and gives it a record if it has none.
    pub(super) fn begin(
        call: ToolCall,
        span: Span,
        metrics: Option<Arc<Metrics>>,
        contents: &Contents,
    ) -> (ToolCall, Self) {
        let (call, record) = match call.record().cloned() {
            Some(record) => (call, record),
            None => {
                // metrics alone need no more than which server it was
                let record = Arc::new(match span.is_disabled() {
                    true => CallRecord::for_counting(),
                    false => CallRecord::new(),
                });
                (call.with_record(record.clone()), record)
            }
        };
        let is_traced = !span.is_disabled();
        let call = match is_traced.then(|| context::of(&span)).flatten() {
            // what the call leads to apart from it, such as a refresh, finds its way back by this
            Some(own) => call.with_trace(Arc::new(own)),
            None => call,
        };
        let shows_result = is_traced && contents.shows_result(&call);
        let observed = Self {
            span,
            is_server: call.inbound().is_some(),
            contents: shows_result.then(|| contents.clone()),
            record,
            tool: call.tool().clone(),
            effect: call.plan().effect,
            confirm: call.plan().confirm,
            started: Instant::now(),
            metrics,
            ended: false,
        };
        (call, observed)
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn end(mut self, ending: Ending<'_>) {
        self.write(ending);
    }

    fn write(&mut self, ending: Ending<'_>) {
        self.ended = true;
        let took = self.started.elapsed();
        let error_type = ending.error_type();
        if !self.span.is_disabled() {
            span::end(&self.span, self.is_server, &self.record, ending, took);
            if let (Some(contents), Ending::Done(Ok(output))) = (&self.contents, ending) {
                self.span.record(names::RESULT, contents.result(output));
            }
        }
        if let Some(metrics) = &self.metrics {
            metrics.record(&Ended {
                tool: &self.tool,
                effect: self.effect,
                confirm: self.confirm,
                record: &self.record,
                ending,
                error_type,
                took,
            });
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Ending::Cancelled);
        }
    }
}
