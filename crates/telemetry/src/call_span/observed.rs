//! A call that somebody observes, from its arrival to its end.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate_core::{CallRecord, ConfirmRule, Effect, HedgeStatus, Tool, ToolCall};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::error_type::Ending;
use crate::metrics::{Ended, Metrics};
use crate::names;

/// Makes the span of a call, with all that is known before it runs. If the span is disabled,
/// nothing here is computed.
pub(super) fn span(call: &ToolCall) -> Span {
    tracing::info_span!(
        target: names::TARGET,
        names::CALL_SPAN,
        { names::OTEL_NAME } =
            %format_args!("{} {}", names::METHOD_TOOLS_CALL, call.tool().name()),
        { names::METHOD } = names::METHOD_TOOLS_CALL,
        { names::OPERATION } = names::OPERATION_EXECUTE_TOOL,
        { names::TOOL } = call.tool().name().as_str(),
        { names::SERVER_SET } = call.tool().set().as_str(),
        { names::EFFECT } = call.plan().effect.as_str(),
        { names::CONFIRM } = confirm_word(call.plan().confirm),
        { names::PLAN_REASON } = &*call.plan().reason,
        { names::CACHE } = Empty,
        { names::CACHE_BYPASS_REASON } = Empty,
        { names::ATTEMPTS } = Empty,
        { names::HEDGE } = Empty,
        { names::GUARDED } = Empty,
        { names::SERVER } = Empty,
        { names::ROUTE_REASON } = Empty,
        { names::ERROR_TYPE } = Empty,
        { names::DURATION_MS } = Empty,
    )
}

fn confirm_word(rule: ConfirmRule) -> &'static str {
    match rule {
        ConfirmRule::Skip => "skip",
        // a rule this crate does not know yet is shown as the stricter one
        _ => "ask",
    }
}

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
    ended: bool,
}

impl Observed {
    /// Begins to observe a call, and gives it a record if it has none.
    pub(super) fn begin(
        call: ToolCall,
        span: Span,
        metrics: Option<Arc<Metrics>>,
    ) -> (ToolCall, Self) {
        let (call, record) = match call.record().cloned() {
            Some(record) => {
                if !span.is_disabled() {
                    // its maker may only have wanted to count
                    record.ask_for_decisions();
                }
                (call, record)
            }
            None => {
                // metrics alone need no more than which server it was
                let record = Arc::new(match span.is_disabled() {
                    true => CallRecord::for_counting(),
                    false => CallRecord::new(),
                });
                (call.with_record(record.clone()), record)
            }
        };
        let observed = Self {
            span,
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
            let span = &self.span;
            span.record(names::CACHE, self.record.cache().as_str());
            if let Some(reason) = self.record.cache_bypass() {
                span.record(names::CACHE_BYPASS_REASON, reason);
            }
            span.record(names::ATTEMPTS, self.record.started_attempts());
            let hedge = self.record.hedge();
            if hedge != HedgeStatus::None {
                span.record(names::HEDGE, hedge.as_str());
            }
            if self.record.was_guarded() {
                span.record(names::GUARDED, true);
            }
            let (server, reason) = self.record.server().unzip();
            if let Some(server) = server
                .as_ref()
                .or_else(|| ending.error().and_then(|error| error.server()))
            {
                span.record(names::SERVER, display(server));
            }
            if let Some(reason) = reason {
                span.record(names::ROUTE_REASON, reason);
            }
            if let Some(error_type) = &error_type {
                span.record(names::ERROR_TYPE, &**error_type);
            }
            span.record(names::DURATION_MS, took.as_secs_f64() * 1e3);
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
