//! The way of a read that was not found.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tollgate_core::{
    CacheStatus, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use tower::ServiceExt;

use crate::event::Happened;
use crate::flight::{Answer, Seat, Turn};
use crate::key::Identity;
use crate::reason::RefusalReason;
use crate::scope::{are_current, epochs};
use crate::shared::{Kept, Shared, note, unshareable};
use crate::tools::Version;

/// A read that was not found.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) shared: Arc<Shared>,
    pub(crate) version: Arc<Version>,
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
        let (shared, version) = (&*self.shared, &*self.version);
        let record = &*version.record;
        let now = Instant::now();
        let watched = version.footprint.read(&shared.scopes, &call);
        let epochs = match epochs(&watched, shared.scopes.at(now)) {
            Ok(epochs) => epochs,
            Err(unquiet) => {
                shared.bypass(record, &call, unquiet.into());
                return inner.oneshot(call).await;
            }
        };
        let key = shared.key(&self.identity, &epochs);
        let seat = shared.flights.join(key);
        // Once more, now from within a flight: the one before it may have ended since the look-up
        // in `call`, and whoever ends a flight stores first.
        if let Some(output) = shared.find(key, record, &call, now) {
            return Ok(output);
        }
        let _permit = match turn(&seat, &call).await? {
            Turn::Take(answer) => {
                record.counters.joined.add_one();
                record.counters.save(answer.took);
                shared.tell(record, || Happened::Joined);
                note(&call, CacheStatus::Joined);
                return Ok(answer.output);
            }
            Turn::Run(permit) => permit,
        };
        record.counters.misses.add_one();
        shared.tell(record, || Happened::Miss);
        note(&call, CacheStatus::Miss);
        let (ttl, usual) = (self.ttl, call.plan().limits.estimated_duration);
        let sent = Instant::now();
        let result = inner.oneshot(call).await;
        let took = sent.elapsed();
        let refusal = match &result {
            Err(_) => Some(RefusalReason::Failed),
            Ok(output) => unshareable(output),
        };
        match (&result, refusal) {
            (Ok(output), None) => {
                record.took(took);
                // stored under other epochs than the current ones, nobody would ever find it
                if are_current(&watched, &epochs) {
                    shared.keep(key, record, output, Kept { ttl, took, usual });
                } else {
                    shared.refuse(record, RefusalReason::Overtaken);
                }
                seat.answer(Answer {
                    output: output.clone(),
                    took,
                });
            }
            (_, reason) => {
                shared.refuse(record, reason.unwrap_or(RefusalReason::Failed));
                seat.widen();
            }
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
