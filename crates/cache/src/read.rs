//! A read that the cache does not answer: it joins a flight or runs.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CacheStatus, CallClient, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService,
};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::flight::{FlightGuard, Role, SharedAnswer};
use crate::fresh::Gate;
use crate::reason::{BypassReason, RefusalReason};
use crate::route::Lookup;
use crate::scope::{are_current, are_doubtful, epochs};
use crate::shared::{Look, Received, Shared, note, note_scope};
use crate::sync::timeout_at;
use crate::tools::Version;

/// The longest that a read waits for the flight before the one whose answer it may get; or the p99
/// of its tool's reads, if that is shorter.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A read that the cache does not answer.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) shared: Arc<Shared>,
    pub(crate) version: Arc<Version>,
    pub(crate) lookup: Lookup,
    /// A stored result would have answered the call; it is executed to verify the result.
    pub(crate) verifies: bool,
}

impl Read {
    /// Answers the call: with the answer of an identical one in flight, or by running it.
    ///
    /// Nothing happens before the first poll: a future that is held and not polled must not block
    /// others, nor join a flight of an epoch that has ended in the meantime.
    pub(crate) async fn run<S: ToolService>(
        self,
        inner: S,
        call: ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let (shared, version) = (&*self.shared, &*self.version);
        let (record, gate) = (&*version.record, &self.lookup.gate);
        let for_caller = !call.is_background;
        let now = Instant::now();
        let read_set = self.lookup.scopes(shared, version, &call);
        let epochs = match epochs(&read_set, shared.scopes.at(now)) {
            Ok(epochs) => epochs,
            // the next caller after the write fetches a new answer anyway
            Err(_) if !for_caller => return Err(overtaken()),
            Err(conflict) => return self.run_beside_write(conflict, inner, call).await,
        };
        let key = shared.key(&self.lookup.identity, &epochs);
        let flight = if gate.shares() {
            let within = gate.joins_within(shared);
            shared
                .flights
                .join(key, within, gate.session_of(&call), now)
        } else {
            shared.flights.alone(key)
        };
        // Again, now from within a flight: the one before it may have ended since the look-up in
        // `call`, and a flight stores its answer before it ends.
        let mut verifies = self.verifies;
        if !verifies && for_caller {
            match shared.look(key, gate, record, &call, now) {
                Look::Hit(entry) => return Ok(entry.output.clone()),
                Look::Verify => verifies = true,
                Look::Ended(_) | Look::Nothing => {}
            }
        } else if !verifies
            && !matches!(gate, Gate::Learned(_))
            && let Some(entry) = shared.store.get(key).filter(|entry| entry.is_fresh(now))
        {
            return Ok(entry.output.clone());
        }
        let _permit = match role(&flight, &call).await? {
            Role::Follower(answer) => {
                gate.note_received(shared, key);
                if for_caller {
                    self.joined(&call, &answer);
                }
                return Ok(answer.output);
            }
            Role::Leader(permit) => permit,
        };
        if for_caller {
            record.count(|counts| counts.misses += 1);
            note(&call, CacheStatus::Miss);
            note_scope(&call, || version.access.describe_reads());
        }
        let declared = call.plan().limits.estimated_duration;
        let covers_failures = !shared.config.stale_if_error.is_zero() && for_caller;
        let fallback_call = covers_failures.then(|| call.clone());
        let sent = Instant::now();
        // a write that may still land must not be missed by a call that arrives after it landed
        let is_doubtful = are_doubtful(&read_set, shared.scopes.at(sent));
        flight.dispatch(sent, is_doubtful.then_some(shared.config.burst));
        let client = call.client.clone();
        let running = record.observer.begin(call.tool(), true);
        let result = inner.oneshot(flight.released_by(call)).await;
        let place = running.end();
        let took = sent.elapsed();
        let asked = was_asked(client.as_ref());
        let mut expiry = match &result {
            Err(_) => Err(RefusalReason::Failed),
            Ok(output) => shared.expiry(output, &self.lookup, asked),
        };
        if let (Ok(expiry), true) = (&mut expiry, is_doubtful) {
            expiry.ttl = expiry.ttl.min(shared.config.burst);
            expiry.stale = Duration::ZERO;
        }
        // no look-up would find what is kept under other epochs than the current ones
        let undisturbed =
            are_current(&read_set, &epochs) && shared.key(&self.lookup.identity, &epochs) == key;
        // what a person answered says nothing about the tool
        let output = result.as_ref().ok().filter(|_| !asked);
        let received = output.map(|output| Received {
            output,
            sent,
            took,
            declared,
            verifies,
            place: place.as_ref(),
        });
        let is_last = match &received {
            Some(received) if undisturbed => gate.executed(shared, record, key, received),
            _ => true,
        };
        if let (Some(received), Ok(expiry)) = (&received, expiry) {
            record.reads.observe(took);
            if undisturbed && is_last {
                shared.keep(key, record, received, expiry);
            } else {
                record.refuse(RefusalReason::Overtaken);
            }
        }
        match (result, expiry) {
            (Ok(output), Ok(_)) => {
                let answer = output.clone();
                flight.answer(SharedAnswer {
                    output: answer,
                    took,
                });
                Ok(output)
            }
            (result, expiry) => {
                match expiry.err().unwrap_or(RefusalReason::Failed) {
                    // the stored answer is not the current one any more
                    reason @ (RefusalReason::NoStore | RefusalReason::ToolError) if undisturbed => {
                        shared.supersede(key, record, reason);
                    }
                    reason => record.refuse(reason),
                }
                flight.allow_more_leaders();
                result.or_else(|error| {
                    let call = fallback_call.filter(|_| undisturbed);
                    let last = call.and_then(|call| self.in_place_of(&error, key, &call));
                    last.ok_or(error)
                })
            }
        }
    }

    /// Answers the call while its read set is being written or may still change: with the answer of
    /// a run that began after the call arrived. Nothing is looked up, and nothing kept.
    ///
    /// That answer may replace the call's own: it, too, was computed between the arrival of the
    /// call and its answer.
    async fn run_beside_write<S: ToolService>(
        &self,
        conflict: BypassReason,
        inner: S,
        call: ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let (shared, record) = (&*self.shared, &*self.version.record);
        let (key, gate) = (shared.key(&self.lookup.identity, &[]), &self.lookup.gate);
        let flight = if gate.shares() {
            shared.flights.next(key, gate.session_of(&call))
        } else {
            shared.flights.alone(key)
        };
        let _permit = match role(&flight, &call).await? {
            Role::Follower(answer) => {
                self.joined(&call, &answer);
                return Ok(answer.output);
            }
            Role::Leader(permit) => permit,
        };
        let longest = record.reads.p99().map_or(MAX_WAIT, |p99| p99.min(MAX_WAIT));
        let until = Instant::now() + longest;
        let deadline = call.deadline.map(Instant::from_std);
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let _ended_or_too_slow = timeout_at(until, flight.wait_for_previous()).await;
        record.bypass(&call, conflict);
        let sent = Instant::now();
        flight.dispatch(sent, None);
        let client = call.client.clone();
        let running = record.observer.begin(call.tool(), true);
        let result = inner.oneshot(flight.released_by(call)).await;
        drop(running);
        let took = sent.elapsed();
        let asked = was_asked(client.as_ref());
        match &result {
            Ok(output) if shared.expiry(output, &self.lookup, asked).is_ok() => {
                record.reads.observe(took);
                let output = output.clone();
                flight.answer(SharedAnswer { output, took });
            }
            _ => flight.allow_more_leaders(),
        }
        result
    }

    /// Counts and records a call that got the answer of another.
    fn joined(&self, call: &ToolCall, answer: &SharedAnswer) {
        self.version.record.count(|counts| {
            counts.joined += 1;
            counts.saved += answer.took;
        });
        if let Some(stats) = &call.tool().stats {
            stats.count_cached();
        }
        note(call, CacheStatus::Joined);
    }
}

/// Returns `true` if the client of a call was asked something for it.
pub(crate) fn was_asked(client: Option<&CallClient>) -> bool {
    client.is_some_and(CallClient::was_asked)
}

/// No caller needs a refresh that finds a write in flight.
fn overtaken() -> ToolError {
    ToolError::new(
        ErrorKind::Cancelled,
        Delivery::NotSent,
        "a write came before the refresh of a cached answer",
    )
}

/// Waits for the role of a call, but not beyond its deadline.
async fn role<'a>(flight: &'a FlightGuard<'_>, call: &ToolCall) -> Result<Role<'a>, ToolError> {
    let Some(deadline) = call.deadline else {
        return Ok(flight.role().await);
    };
    let role = timeout_at(deadline.into(), flight.role()).await;
    role.map_err(|_| {
        ToolError::new(
            ErrorKind::DeadlineExceeded,
            Delivery::NotSent,
            "the deadline passed while waiting for the answer of an identical call",
        )
    })
}
