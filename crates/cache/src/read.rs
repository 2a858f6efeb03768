//! The way of a read that was not found.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tollgate_core::{
    CacheStatus, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use tower::ServiceExt;

use crate::flight::{Seat, Turn};
use crate::key::Identity;
use crate::scope::Scope;
use crate::shared::{Shared, is_shareable, note};

/// A read that was not found.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) shared: Arc<Shared>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) identity: Identity,
    pub(crate) ttl: Duration,
}

impl Read {
    /// Answers the call: with what an identical one that runs already gets, or by running it.
    ///
    /// Nothing happens before the first poll: a future that is held and not polled must not hold
    /// anybody back, nor join a flight of an epoch that has ended in the meantime.
    pub(crate) async fn run<S: ToolService>(
        self,
        inner: S,
        call: ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let shared = &*self.shared;
        let now = Instant::now();
        let Some(epoch) = self.scope.quiet_epoch(now) else {
            shared.bypass(&call);
            return inner.oneshot(call).await;
        };
        let key = shared.keys.key(&self.identity, epoch);
        let seat = shared.flights.join(key);
        // Once more, now from within a flight: the one before it may have ended since the look-up
        // in `call`, and whoever ends a flight stores first.
        if let Some(output) = shared.find(key, &call, now) {
            return Ok(output);
        }
        let _permit = match turn(&seat, &call).await? {
            Turn::Take(output) => {
                shared.counters.joined.add_one();
                note(&call, CacheStatus::Joined);
                return Ok(output);
            }
            Turn::Run(permit) => permit,
        };
        shared.counters.misses.add_one();
        note(&call, CacheStatus::Miss);
        let result = inner.oneshot(call).await;
        if let Ok(output) = &result
            && is_shareable(output)
        {
            // stored under another epoch than the current one, nobody would ever find it
            if self.scope.is_current(epoch) {
                shared.keep(key, output, self.ttl, Instant::now());
            }
            seat.answer(output.clone());
        } else {
            seat.widen();
        }
        result
    }
}

/// Waits for the turn of a call, but not beyond its own deadline.
async fn turn<'a>(seat: &'a Seat<'_>, call: &ToolCall) -> Result<Turn<'a>, ToolError> {
    let Some(deadline) = call.deadline() else {
        return Ok(seat.turn().await);
    };
    timeout_at(deadline.into(), seat.turn()).await.map_err(|_| {
        ToolError::new(
            ErrorKind::DeadlineExceeded,
            Delivery::NotSent,
            "the deadline passed while waiting for the answer of an identical call",
        )
    })
}
