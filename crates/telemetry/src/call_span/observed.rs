//! A call that somebody observes, from its arrival to its end.

use std::sync::Arc;

use callward_core::refine::Applied;
use callward_core::{CallRecord, ConfirmRule, Effect, Tool, ToolCall, Trail};
use tokio::time::Instant;
use tracing::Span;

use super::{idle, span};
use crate::contents::Contents;
use crate::context;
use crate::error_type::Ending;
use crate::metrics::{Ended, Metrics, Origin};

/// A call under observation. Dropped before [`end`](Self::end), it was cancelled.
///
/// A pointer: the future of each call has room for one, observed or not, and is moved with it.
#[derive(Debug)]
pub(super) struct Observed(Option<Box<Option<Seen>>>);

/// What is known of the call.
#[derive(Debug)]
pub(super) struct Seen {
    span: Span,
    record: Arc<CallRecord>,
    tool: Arc<Tool>,
    applied: Applied,
    origin: Origin,
    effect: Effect,
    confirm: ConfirmRule,
    started: Instant,
    metrics: Option<Arc<Metrics>>,
    /// Whether the call came as an MCP request.
    is_server: bool,
    /// How to show the result, if it is to be shown.
    contents: Option<Contents>,
    /// Whether the record goes back to [`idle`].
    is_lent: bool,
}

impl Observed {
    /// Begins to observe a call, and gives it a record if it has none.
    pub(super) fn begin(
        call: ToolCall,
        span: Span,
        metrics: Option<Arc<Metrics>>,
        contents: &Contents,
    ) -> (ToolCall, Self) {
        let mut is_lent = false;
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
                is_lent = span.is_disabled();
                let record = match is_lent {
                    true => idle::take(),
                    false => Arc::new(CallRecord::new()),
                };
                (call.with_record(record.clone()), record)
            }
        };
        let is_traced = !span.is_disabled();
        if is_traced {
            record.ask_for_decisions();
        }
        let call = match is_traced.then(|| context::of(&span)).flatten() {
            // what the call leads to apart from it, such as a refresh, finds its way back by this
            Some(own) => call.with_trace(Arc::new(own)),
            None => call,
        };
        let shows_result = is_traced && contents.shows_result(&call);
        let mut room = idle::take_room();
        *room = Some(Seen {
            span,
            is_server: call.inbound().is_some(),
            contents: shows_result.then(|| contents.clone()),
            record,
            tool: call.tool().clone(),
            applied: call.applied(),
            origin: Origin::of(&call),
            effect: call.plan().effect,
            confirm: call.plan().confirm,
            started: Instant::now(),
            metrics,
            is_lent,
        });
        (call, Self(Some(room)))
    }

    /// Does something within the span, if the call has one.
    pub(super) fn in_scope<R>(&self, act: impl FnOnce() -> R) -> R {
        match self.0.as_deref() {
            Some(Some(seen)) => seen.span.in_scope(act),
            _ => act(),
        }
    }

    pub(super) fn end(mut self, ending: Ending<'_>) {
        self.finish(ending);
    }

    /// Writes down how the call ended, the first time it is told.
    fn finish(&mut self, ending: Ending<'_>) {
        let Some(mut room) = self.0.take() else {
            return;
        };
        if let Some(seen) = &*room {
            seen.write(ending);
        }
        if let Some(seen) = room.take()
            && seen.is_lent
        {
            idle::give_back(seen.record);
        }
        idle::give_room_back(room);
    }
}

impl Seen {
    fn write(&self, ending: Ending<'_>) {
        let took = self.started.elapsed();
        let error_type = ending.error_type();
        if !self.span.is_disabled() {
            let (tool, result) = (&self.tool, ending.result());
            let decisions = Trail::observed_line(tool, self.applied, &self.record, result);
            let end = span::End {
                is_server: self.is_server,
                record: &self.record,
                ending,
                decisions,
                result: self.shown(ending),
                took,
            };
            span::end(&self.span, &end);
        }
        if let Some(metrics) = &self.metrics {
            metrics.record(&Ended {
                tool: &self.tool,
                origin: self.origin,
                effect: self.effect,
                confirm: self.confirm,
                record: &self.record,
                ending,
                error_type,
                took,
            });
        }
    }

    /// Returns the result as it may be shown, if it may.
    fn shown(&self, ending: Ending<'_>) -> Option<String> {
        match (&self.contents, ending) {
            (Some(contents), Ending::Done(Ok(output))) => Some(contents.result(output)),
            _ => None,
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.finish(Ending::Cancelled);
    }
}
