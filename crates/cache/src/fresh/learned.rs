//! Learned lifetimes: when a stored result answers a call, and what an execution shows.
//!
//! *A stored result is served while its age is at most what [evidence](crate::evidence) allows,
//! except for the hits that are executed to verify it; within the burst window it is served to
//! sessions that have not received it.*

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Learned, Lifetime, OutputStatus, ToolCall};
use tokio::time::Instant;

use crate::evidence::{Subject, ToolEvidence};
use crate::executions::Execution;
use crate::key::{EntryKind, Identity};
use crate::shared::{Look, Received, Shared};
use crate::store::Entry;
use crate::tools::Record;

/// What decides whether stored results of one call are served.
#[derive(Debug, Clone)]
pub(crate) enum Gate {
    /// Their own lifetime.
    Fixed { stated: bool },
    /// Evidence, and the burst window.
    Learned(Evidence),
    /// The burst window alone: an idempotent write.
    Burst { session: u64 },
}

/// The evidence about one call.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    rule: Learned,
    of_tool: Arc<ToolEvidence>,
    /// The call in the evidence, whatever the epochs.
    key: u128,
    session: u64,
}

/// Why a stored result answers a call.
pub(crate) enum Basis {
    Lifetime,
    Evidence,
    Burst,
}

impl Gate {
    pub(crate) fn new(
        kind: EntryKind,
        lifetime: Lifetime,
        identity: &Identity,
        shared: &Shared,
        call: &ToolCall,
    ) -> Self {
        match (lifetime, kind) {
            (Lifetime::Learned(rule), EntryKind::Read) => Self::Learned(Evidence {
                rule,
                of_tool: shared.evidence_of(call, identity),
                key: identity.digest,
                session: shared.session(call),
            }),
            (Lifetime::Learned(_), EntryKind::Write) => Self::Burst {
                session: shared.session(call),
            },
            (lifetime, _) => Self::Fixed {
                stated: lifetime == Lifetime::Stated,
            },
        }
    }

    /// Returns `true` if concurrent calls share a result. A tool whose words call it volatile
    /// shares none before evidence allows it.
    pub(crate) fn shares(&self) -> bool {
        match self {
            Self::Learned(evidence) => {
                !evidence.rule.volatile || !evidence.of_tool.allowed().is_zero()
            }
            Self::Fixed { .. } | Self::Burst { .. } => true,
        }
    }

    /// Returns how long after its dispatch others may join a call in flight; `None` for as long as
    /// it runs.
    pub(crate) fn joins_within(&self, shared: &Shared) -> Option<Duration> {
        let is_fixed = matches!(self, Self::Fixed { .. });
        (!is_fixed).then_some(shared.config.burst)
    }

    /// Notes that the session receives the answer of another call. Returns `true` if the answer is
    /// new to it.
    pub(crate) fn note_received(&self, shared: &Shared, key: u128) -> bool {
        let session = match self {
            Self::Fixed { .. } => return true,
            Self::Learned(evidence) => evidence.session,
            Self::Burst { session } => *session,
        };
        let last = shared.executions.last(key);
        last.is_some_and(|last| last.serve(session))
    }

    /// Returns the session of a call whose lifetime is learned, if it has one: two such calls of
    /// one session are both meant.
    pub(crate) fn session_of(&self, call: &ToolCall) -> Option<u64> {
        match self {
            Self::Learned(evidence) if call.caller().session.is_some() => Some(evidence.session),
            _ => None,
        }
    }

    /// Decides whether a stored result answers the call, and notes that the session receives it.
    pub(crate) fn admit(
        &self,
        shared: &Shared,
        key: u128,
        entry: Arc<Entry>,
        now: Instant,
    ) -> Look {
        let Some(basis) = self.basis(shared, key, &entry, now) else {
            return Look::Ended(entry);
        };
        if let (Self::Learned(evidence), Basis::Evidence) = (self, &basis)
            && evidence.verifies(entry.age(now), now)
        {
            return Look::Verify;
        }
        let is_new = self.note_received(shared, key);
        match basis {
            // of two concurrent calls of a session, one receives it
            Basis::Burst if !is_new => Look::Ended(entry),
            _ => Look::Hit(entry),
        }
    }

    /// Returns why a stored result would be served, were it not drawn for verification.
    pub(crate) fn basis(
        &self,
        shared: &Shared,
        key: u128,
        entry: &Entry,
        now: Instant,
    ) -> Option<Basis> {
        let age = entry.age(now);
        let in_burst = |session| {
            let last = shared.executions.last(key);
            let is_new =
                |last: &Execution| last.dispatched == entry.made && last.is_new_to(session);
            age <= shared.config.burst && last.is_some_and(|last| is_new(&last))
        };
        match self {
            Self::Fixed { .. } => Some(Basis::Lifetime),
            // where the server's statement may be longer than what evidence allows
            Self::Learned(evidence) if entry.expiry.stated && evidence.rule.extends => {
                Some(Basis::Lifetime)
            }
            Self::Learned(evidence) if evidence.allows(age, now) => Some(Basis::Evidence),
            Self::Learned(evidence) => {
                (!evidence.rule.volatile && in_burst(evidence.session)).then_some(Basis::Burst)
            }
            Self::Burst { session } => in_burst(*session).then_some(Basis::Burst),
        }
    }

    /// Returns how long a result is served, if its own lifetime is this.
    pub(crate) fn limit(&self, ttl: Duration, now: Instant) -> Duration {
        match self {
            Self::Learned(evidence) => evidence.allowed(now).min(ttl),
            Self::Fixed { .. } | Self::Burst { .. } => ttl,
        }
    }

    /// Takes an execution during which nothing was written. Returns `false` if its result must not
    /// be kept: a later one has ended already.
    pub(crate) fn executed(
        &self,
        shared: &Shared,
        record: &Record,
        key: u128,
        received: &Received<'_>,
    ) -> bool {
        let Received {
            sent,
            output,
            place,
            ..
        } = *received;
        let (session, evidence) = match self {
            Self::Fixed { .. } => return true,
            Self::Burst { session } => (*session, None),
            Self::Learned(evidence) => (evidence.session, Some(evidence)),
        };
        if output.status() != OutputStatus::Complete {
            return true;
        }
        // what is never kept need not be compared, and the digest of a large answer takes long
        let is_compared = !output.is_error() && !shared.is_too_large(output);
        let digest = is_compared.then(|| output.answer_digest()).flatten();
        let last = shared.executions.last(key);
        if last.as_ref().is_some_and(|last| last.dispatched > sent) {
            return false;
        }
        let execution = Execution::new(sent, digest, place.map(|at| at.number), session);
        shared.executions.put(key, execution);
        let last = last.and_then(|last| Some((last.dispatched, last.digest?, last.number)));
        if let (Some(evidence), Some((dispatched, last, number))) = (evidence, last) {
            let equal = digest == Some(last);
            if digest.is_some() || output.is_error() {
                let gap = sent.saturating_duration_since(dispatched);
                let (key, tool, now) = (evidence.key, &evidence.of_tool, Instant::now());
                tool.observe(key, session, gap, equal, now);
                if let (Some(number), Some(at), Some(_)) = (number, place, digest) {
                    record.observer.repeat(key, gap, !equal, number, at);
                }
            }
            if received.verifies {
                record.count(|counts| match equal {
                    true => counts.verified += 1,
                    false => counts.differed += 1,
                });
            }
        }
        true
    }
}

impl Evidence {
    fn allowed(&self, now: Instant) -> Duration {
        self.of_tool.allowed_for(self.key, now)
    }

    fn allows(&self, age: Duration, now: Instant) -> bool {
        let allowed = self.allowed(now);
        !allowed.is_zero() && age <= allowed
    }

    /// Returns `true` if a hit on a result of this age is to be executed instead.
    fn verifies(&self, age: Duration, now: Instant) -> bool {
        self.of_tool.verifies(self.key, age, fastrand::f64(), now)
    }
}

impl Shared {
    /// Returns the evidence about the call's tool in the partition of its principal.
    fn evidence_of(&self, call: &ToolCall, identity: &Identity) -> Arc<ToolEvidence> {
        let tool = call.tool();
        self.evidence.of(&Subject {
            set: tool.set().clone(),
            tool: tool.name().clone(),
            definition: tool.digest(),
            partition: identity.principal.unwrap_or(0),
        })
    }

    /// Returns the hash of a call's session; without one, of its principal.
    pub(crate) fn session(&self, call: &ToolCall) -> u64 {
        let caller = call.caller();
        self.sessions.hash_one((&caller.principal, &caller.session))
    }
}
