//! An observed call, from its arrival to its end.

use std::sync::Arc;

use callward_core::refine::Applied;
use callward_core::{CallRecord, ConfirmRule, Effect, Tool, ToolCall, Trail};
use tokio::time::Instant;
use tracing::Span;

use super::{CallSpanLayer, span};
use crate::contents::Contents;
use crate::context;
use crate::error_type::Ending;
use crate::metrics::{EndedCall, Metrics};
use crate::span_future::Observed;

/// A call whose end is written into its span and metrics.
#[derive(Debug)]
pub(super) struct ObservedCall {
    span: Span,
    record: Arc<CallRecord>,
    tool: Arc<Tool>,
    applied: Applied,
    effect: Effect,
    confirm: ConfirmRule,
    started: Instant,
    metrics: Option<Arc<Metrics>>,
    /// The call came as an MCP request.
    is_served: bool,
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
        let record = match call.record() {
            Some(record) => record.clone(),
            None => {
                let record = Arc::new(CallRecord::for_counting());
                call = call.with_record(record.clone());
                record
            }
        };
        let is_traced = !span.is_disabled();
        if is_traced {
            record.ask_for_decisions();
            // work that the call starts apart from it, such as a refresh, finds its trace by this
            if let Some(own) = context::of(&span) {
                call = call.with_trace(Arc::new(own));
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
            is_served: call.inbound().is_some(),
            contents: shows_result.then(|| settings.contents.clone()),
        };
        (call, observed)
    }

    /// Returns the result as it may be shown, if it may.
    fn shown(&self, ending: Ending<'_>) -> Option<String> {
        match (&self.contents, ending) {
            (Some(contents), Ending::Done(Ok(output))) => Some(contents.result(output)),
            _ => None,
        }
    }
}

impl Observed for ObservedCall {
    fn span(&self) -> &Span {
        &self.span
    }

    fn ended(&self, ending: Ending<'_>) {
        let took = self.started.elapsed();
        if !self.span.is_disabled() {
            let (tool, result) = (&self.tool, ending.result());
            let decisions = Trail::observed_line(tool, self.applied, &self.record, result);
            let end = span::End {
                is_served: self.is_served,
                record: &self.record,
                ending,
                decisions,
                result: self.shown(ending),
                took,
            };
            span::end(&self.span, &end);
        }
        if let Some(metrics) = &self.metrics {
            metrics.record(&EndedCall {
                tool: &self.tool,
                is_served: self.is_served,
                effect: self.effect,
                confirm: self.confirm,
                record: &self.record,
                ending,
                took,
            });
        }
    }
}
