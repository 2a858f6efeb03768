//! The way of a read that was not found.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CacheStatus, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::event::Happened;
use crate::flight::{Answer, Seat, Turn};
use crate::fresh::{Executed, Gate, NotServed};
use crate::key::Identity;
use crate::reason::RefusalReason;
use crate::scope::{Unquiet, are_current, are_doubtful, epochs};
use crate::shared::{Kept, Look, Shared, note};
use crate::sync::timeout_at;
use crate::tools::Version;

/// A read waits so long at most for the run before the one whose answer it may get; or for the p99 of its
/// tool's reads, if that is shorter.
const PATIENCE: Duration = Duration::from_secs(2);

/// A read that was not found.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) shared: Arc<Shared>,
    pub(crate) version: Arc<Version>,
    pub(crate) identity: Identity,
    pub(crate) ttl: Duration,
    pub(crate) gate: Gate,
    /// A kept result would have answered the call; it is executed to verify it.
    pub(crate) verifies: bool,
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
        let for_caller = !call.purpose().is_background();
        let now = Instant::now();
        let watched = version.footprint.read(&shared.scopes, &call);
        let epochs = match epochs(&watched, shared.scopes.at(now)) {
            Ok(epochs) => epochs,
            // whoever asks after the write fetches a new answer anyway
            Err(_) if !for_caller => return Err(overtaken()),
            Err(unquiet) => return self.beside_a_write(unquiet, inner, call).await,
        };
        let key = shared.key(&self.identity, &epochs);
        let gate = &self.gate;
        let seat = match gate.shares() {
            true => {
                let within = gate.joins_within(shared);
                shared
                    .flights
                    .join(key, within, gate.session_of(&call), now)
            }
            false => shared.flights.alone(key),
        };
        // Once more, now from within a flight: the one before it may have ended since the look-up
        // in `call`, and whoever ends a flight stores first.
        let mut verifies = self.verifies;
        if verifies {
        } else if for_caller {
            match shared.look(key, gate, record, &call, now) {
                Look::Hit(hit) => return Ok(hit.output),
                Look::NotServed(reason) => verifies = reason == NotServed::Verify,
                Look::Ended(_) | Look::Nothing => {}
            }
        } else if !gate.is_learned()
            && let Some(output) = shared.peek(key, now)
        {
            return Ok(output);
        }
        let _permit = match turn(&seat, &call).await? {
            Turn::Take(answer) => {
                gate.received(shared, key);
                if for_caller {
                    self.joined(&call, &answer);
                }
                return Ok(answer.output);
            }
            Turn::Run(permit) => permit,
        };
        if for_caller {
            record.counters.misses.add_one();
            shared.tell(record, || Happened::Miss);
            note(&call, CacheStatus::Miss);
            if let Some(told) = call.record() {
                told.set_cache_scope(|| version.footprint.reads());
            }
        }
        let usual = call.plan().limits.estimated_duration;
        let in_need = shared.covers_failures(&call).then(|| call.clone());
        let sent = Instant::now();
        // what may land still must not be missed by a call that arrives after it landed
        let is_doubtful = are_doubtful(&watched, shared.scopes.at(sent));
        seat.dispatch(sent, is_doubtful.then_some(shared.config.burst));
        let result = inner.oneshot(call).await;
        let took = sent.elapsed();
        let lifetime = match &result {
            Err(_) => Err(RefusalReason::Failed),
            Ok(output) => shared
                .lifetime(output, self.ttl, gate, &self.identity)
                .map(|lifetime| match is_doubtful {
                    true => lifetime.within(shared.config.burst),
                    false => lifetime,
                }),
        };
        // kept under other epochs than the current ones, nobody would ever find it
        let undisturbed =
            are_current(&watched, &epochs) && shared.key(&self.identity, &epochs) == key;
        let is_last = match &result {
            Ok(output) if undisturbed => gate.executed(
                shared,
                version,
                &Executed {
                    key,
                    sent,
                    output,
                    verifies,
                },
            ),
            _ => true,
        };
        match (result, lifetime) {
            (Ok(output), Ok(lifetime)) => {
                record.took(took);
                record.reads.observe(took);
                if undisturbed && is_last {
                    let kept = Kept {
                        lifetime,
                        sent,
                        took,
                        usual,
                    };
                    shared.keep(key, record, &output, kept);
                } else {
                    shared.refuse(record, RefusalReason::Overtaken);
                }
                let answer = output.clone();
                seat.answer(Answer {
                    output: answer,
                    took,
                });
                Ok(output)
            }
            (result, lifetime) => {
                match lifetime.err().unwrap_or(RefusalReason::Failed) {
                    // what is kept is not the answer any more
                    reason @ (RefusalReason::NoStore | RefusalReason::ToolError) if undisturbed => {
                        shared.supersede(key, record, reason);
                    }
                    reason => shared.refuse(record, reason),
                }
                seat.widen();
                result.or_else(|error| {
                    let call = in_need.filter(|_| undisturbed);
                    let last = call.and_then(|call| self.in_place_of(&error, key, &call));
                    last.ok_or(error)
                })
            }
        }
    }
}

impl Read {
    /// Answers the call while what it reads is being written or may still change: with the answer of a
    /// run that began after the call arrived. Nothing is looked up, and nothing kept.
    ///
    /// That answer may stand in for the call's own: it, too, was computed between the arrival of the call
    /// and its answer.
    async fn beside_a_write<S: ToolService>(
        &self,
        unquiet: Unquiet,
        inner: S,
        call: ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let (shared, record) = (&*self.shared, &*self.version.record);
        let key = shared.key(&self.identity, &[]);
        let seat = match self.gate.shares() {
            true => shared.flights.next(key, self.gate.session_of(&call)),
            false => shared.flights.alone(key),
        };
        let _permit = match turn(&seat, &call).await? {
            Turn::Take(answer) => {
                self.joined(&call, &answer);
                return Ok(answer.output);
            }
            Turn::Run(permit) => permit,
        };
        let patience = record.reads.p99().map_or(PATIENCE, |p99| p99.min(PATIENCE));
        let until = Instant::now() + patience;
        let deadline = call.deadline().map(Instant::from_std);
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let _ended_or_too_slow = timeout_at(until, seat.wait_for_the_one_before()).await;
        shared.bypass(record, &call, unquiet.into());
        let sent = Instant::now();
        seat.dispatch(sent, None);
        let result = inner.oneshot(call).await;
        let took = sent.elapsed();
        let lifetime =
            |output: &ToolOutput| shared.lifetime(output, self.ttl, &self.gate, &self.identity);
        match &result {
            Ok(output) if lifetime(output).is_ok() => {
                record.reads.observe(took);
                let output = output.clone();
                seat.answer(Answer { output, took });
            }
            _ => seat.widen(),
        }
        result
    }

    /// Counts and notes a call that got the answer of another.
    fn joined(&self, call: &ToolCall, answer: &Answer) {
        let record = &*self.version.record;
        record.counters.joined.add_one();
        record.counters.save(answer.took);
        self.shared.tell(record, || Happened::Joined);
        note(call, CacheStatus::Joined);
    }
}

/// A refresh that finds a write in flight is of no use to anybody.
fn overtaken() -> ToolError {
    ToolError::new(
        ErrorKind::Cancelled,
        Delivery::NotSent,
        "a write came before the refresh of a kept answer",
    )
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
