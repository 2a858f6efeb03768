//! An observed call, from its arrival to its end.

use std::sync::Arc;
use std::time::Duration;

use callward_core::refine::Applied;
use callward_core::{
    CallFacts, CallRecord, ConfirmRule, Effect, HedgeStatus, Tool, ToolCall, Trail,
};
use tokio::time::Instant;
use tracing::Span;

use super::CallSpanLayer;
use crate::contents::Contents;
use crate::error_type::{Ending, Status, error};
use crate::metrics::Metrics;
use crate::span_future::Observed;
use crate::{context, names};

/// A call whose end is written into its span and metrics.
#[derive(Debug)]
pub(crate) struct ObservedCall {
    span: Span,
    record: Arc<CallRecord>,
    pub(crate) tool: Arc<Tool>,
    applied: Applied,
    /// Of the call's plan, which is not always the tool's own.
    pub(crate) effect: Effect,
    pub(crate) confirm: ConfirmRule,
    started: Instant,
    metrics: Option<Arc<Metrics>>,
    /// The call came as an MCP request.
    pub(crate) is_served: bool,
    /// How to write the result, if it is written.
    contents: Option<Contents>,
}

impl ObservedCall {
    /// Begins to observe a call, and gives it a record if it has none.
    pub(super) fn begin(
        mut call: ToolCall,
        span: Span,
        settings: &CallSpanLayer,
    ) -> (ToolCall, Self) {
        let record = call.ensure_record(CallRecord::for_counting);
        let is_traced = !span.is_disabled();
        if is_traced {
            record.ask_for_decisions();
            // work that the call starts apart from it, such as a refresh, finds its trace by this
            if let Some(own) = context::of(&span) {
                call.context_mut().trace = Some(Arc::new(own));
            }
        }
        let shows_result = is_traced && settings.contents.shows_result(&call);
        let observed = Self {
            span,
            record,
            tool: call.tool().clone(),
            applied: call.applied(),
            effect: call.plan().effect,
            confirm: call.plan().confirm,
            started: Instant::now(),
            metrics: settings.metrics.clone(),
            is_served: call.inbound.is_some(),
            contents: shows_result.then(|| settings.contents.clone()),
        };
        (call, observed)
    }

    /// Writes the outcome into the span.
    fn write_span(&self, facts: &CallFacts, ending: Ending<'_>, took: Duration) {
        let hedge = facts.hedge;
        let (server, reason) = facts.server.as_ref().map(|(a, b)| (a, *b)).unzip();
        let server = server.or_else(|| error(ending)?.server.as_ref());
        let status = match self.is_served {
            true => Status::of_server(ending),
            false => Status::of_client(ending),
        };
        let result = match (&self.contents, ending) {
            (Some(contents), Some(Ok(output))) => Some(contents.result(output)),
            _ => None,
        };
        tracing::record_all!(
            self.span,
            { names::CACHE } = facts.cache.as_str(),
            { names::CACHE_BYPASS_REASON } = facts.cache_bypass,
            { names::ATTEMPTS } = facts.started_attempts,
            { names::HEDGE } = (hedge != HedgeStatus::None).then(|| hedge.as_str()),
            { names::GUARDED } = facts.is_guarded.then_some(true),
            { names::SERVER } = server.map(|server| server.as_str()),
            { names::ROUTE_REASON } = reason,
            { names::STATUS_CODE } = status.code,
            { names::ERROR_TYPE } = status.error_type,
            { names::OTEL_STATUS } = status.status,
            { names::DECISIONS } = Trail::observed_line(&self.tool, self.applied, facts, ending),
            { names::RESULT } = result,
            { names::DURATION_MS } = took.as_secs_f64() * 1e3,
        );
    }
}

impl Observed for ObservedCall {
    fn span(&self) -> &Span {
        &self.span
    }

    fn ended(&self, ending: Ending<'_>) {
        let took = self.started.elapsed();
        self.record.with(|facts| {
            if !self.span.is_disabled() {
                self.write_span(facts, ending, took);
            }
            if let Some(metrics) = &self.metrics {
                metrics.record(self, facts, ending, took);
            }
        });
    }
}
