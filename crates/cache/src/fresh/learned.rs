//! Lifetimes that are learned: when a kept result answers a call, and what an execution shows.
//!
//! *A kept result is served while its age is at most what [evidence](crate::evidence) allows, except for
//! the hits that are executed to verify it; within the burst window it is served to sessions that
//! have not received it.*

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Learned, Lifetime, OutputStatus, ToolCall, ToolOutput};
use tokio::time::Instant;

use crate::evidence::{Subject, ToolEvidence};
use crate::executions::{Execution, Overtaken};
use crate::key::Identity;
use crate::shared::Shared;
use crate::store::Hit;
use crate::tools::Version;

/// What decides whether kept results of one call are served.
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

/// Why a kept result does not answer a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotServed {
    /// It is executed to verify the result.
    Verify,
    /// Neither evidence nor the burst window allow its age.
    TooOld,
}

impl Gate {
    #[inline]
    pub(crate) fn of_read(
        lifetime: Lifetime,
        shared: &Shared,
        version: &Version,
        call: &ToolCall,
        identity: &Identity,
    ) -> Self {
        match lifetime {
            Lifetime::Learned(rule) => Self::learned(rule, shared, version, call, identity),
            Lifetime::Stated => Self::Fixed { stated: true },
            _ => Self::Fixed { stated: false },
        }
    }

    #[inline]
    pub(crate) fn of_write(lifetime: Lifetime, shared: &Shared, call: &ToolCall) -> Self {
        match lifetime {
            Lifetime::Learned(_) => Self::Burst {
                session: shared.session(call),
            },
            lifetime => Self::Fixed {
                stated: lifetime == Lifetime::Stated,
            },
        }
    }

    #[inline(never)]
    fn learned(
        rule: Learned,
        shared: &Shared,
        version: &Version,
        call: &ToolCall,
        identity: &Identity,
    ) -> Self {
        Self::Learned(Evidence {
            rule,
            of_tool: version.evidence(shared, call, identity.principal),
            key: identity.evidence_key(),
            session: shared.session(call),
        })
    }

    /// Returns `true` if concurrent calls share a result. A tool that is volatile by its words shares
    /// none before evidence allows it.
    pub(crate) fn shares(&self) -> bool {
        match self {
            Self::Learned(evidence) => {
                !evidence.rule.volatile || !evidence.of_tool.allowed().is_zero()
            }
            Self::Fixed { .. } | Self::Burst { .. } => true,
        }
    }

    /// Returns how long after its dispatch others may join a running call; `None` for as long as it
    /// runs.
    pub(crate) fn joins_within(&self, shared: &Shared) -> Option<Duration> {
        match self {
            Self::Fixed { .. } => None,
            Self::Learned(_) | Self::Burst { .. } => Some(shared.config.burst),
        }
    }

    /// Takes note that the session receives the answer of another's call.
    pub(crate) fn received(&self, shared: &Shared, key: u128) {
        if let Self::Learned(evidence) = self
            && let Some(last) = shared.executions.last(key)
        {
            last.serve(evidence.session);
        }
    }

    /// Returns the session of a call whose result is learned, if it has one: two such calls of one
    /// session are both meant.
    pub(crate) fn session_of(&self, call: &ToolCall) -> Option<u64> {
        match self {
            Self::Learned(evidence) if call.caller().session.is_some() => Some(evidence.session),
            _ => None,
        }
    }

    pub(crate) const fn is_learned(&self) -> bool {
        matches!(self, Self::Learned(_))
    }

    /// Decides whether a kept result answers the call, and takes note if it does.
    #[inline]
    pub(crate) fn admits(
        &self,
        shared: &Shared,
        key: u128,
        hit: &Hit,
        now: Instant,
    ) -> Result<(), NotServed> {
        match self {
            Self::Fixed { .. } => Ok(()),
            Self::Learned(evidence) => evidence.admits(shared, key, hit, now),
            Self::Burst { session } => shared.bursts(key, hit.made(), *session, now),
        }
    }

    /// Returns `true` if a result of this age would be served, were it not drawn for verification.
    pub(crate) fn would_serve(
        &self,
        shared: &Shared,
        key: u128,
        made: Instant,
        now: Instant,
    ) -> bool {
        let age = now.saturating_duration_since(made);
        let in_burst = |session| {
            let last = shared.executions.last(key);
            age <= shared.config.burst
                && last.is_some_and(|last| last.dispatched == made && last.is_new_to(session))
        };
        match self {
            Self::Fixed { .. } => true,
            Self::Learned(evidence) => {
                age <= evidence.allowed(now)
                    || (!evidence.rule.volatile && in_burst(evidence.session))
            }
            Self::Burst { session } => in_burst(*session),
        }
    }

    /// Returns how long a result is served, if its own lifetime is this.
    pub(crate) fn limit(&self, ttl: Duration, now: Instant) -> Duration {
        match self {
            Self::Learned(evidence) => evidence.allowed(now).min(ttl),
            Self::Fixed { .. } | Self::Burst { .. } => ttl,
        }
    }

    /// Takes note of an execution. Returns `false` if its result must not be kept: a later one has
    /// ended already.
    ///
    /// `undisturbed` says that nothing was written meanwhile, `verifies` that a kept result would have
    /// answered the call.
    pub(crate) fn executed(
        &self,
        shared: &Shared,
        version: &Version,
        executed: &Executed<'_>,
    ) -> bool {
        let Executed {
            key, sent, output, ..
        } = *executed;
        let (session, evidence) = match self {
            Self::Fixed { .. } => return true,
            Self::Burst { session } => (*session, None),
            Self::Learned(evidence) => (evidence.session, Some(evidence)),
        };
        if output.status() != OutputStatus::Complete {
            return true;
        }
        let digest = output.answer_digest().filter(|_| !output.is_error());
        let execution = Execution::new(sent, digest, session);
        let last = match shared.executions.put(key, execution) {
            Ok(last) => last,
            Err(Overtaken) => return false,
        };
        let last = last.and_then(|last| Some((last.dispatched, last.digest?)));
        if let (Some(evidence), Some((dispatched, last))) = (evidence, last) {
            let equal = digest == Some(last);
            if digest.is_some() || output.is_error() {
                let gap = sent.saturating_duration_since(dispatched);
                let now = Instant::now();
                evidence
                    .of_tool
                    .observe(evidence.key, session, gap, equal, now);
            }
            if executed.verifies {
                let counters = &version.record.counters;
                if equal {
                    &counters.verified
                } else {
                    &counters.differed
                }
                .add_one();
            }
        }
        true
    }
}

/// One execution that has been answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Executed<'a> {
    /// The key of its result.
    pub(crate) key: u128,
    pub(crate) sent: Instant,
    pub(crate) output: &'a ToolOutput,
    /// A kept result would have answered the call.
    pub(crate) verifies: bool,
}

impl Evidence {
    fn allowed(&self, now: Instant) -> Duration {
        self.of_tool.allowed_for(self.key, now)
    }

    /// Returns `true` if evidence allows an answer of this age to be served.
    #[inline]
    fn allows(&self, age: Duration, now: Instant) -> bool {
        let is_within = |allowed: Duration| !allowed.is_zero() && age <= allowed;
        (is_within(self.of_tool.allowed()) && !self.of_tool.stands_alone(self.key))
            || is_within(self.allowed(now))
    }

    fn admits(&self, shared: &Shared, key: u128, hit: &Hit, now: Instant) -> Result<(), NotServed> {
        let (made, session) = (hit.made(), self.session);
        let age = now.saturating_duration_since(made);
        // the server's own word, where it may be longer than what evidence allows
        let by_server = hit.stated && self.rule.extends;
        if !by_server && !self.allows(age, now) {
            if self.rule.volatile {
                return Err(NotServed::TooOld);
            }
            return shared.bursts(key, made, session, now);
        }
        if !by_server && self.of_tool.verifies(self.key, age, fastrand::f64(), now) {
            return Err(NotServed::Verify);
        }
        if age <= shared.config.burst
            && let Some(last) = shared.executions.last(key)
        {
            last.serve(session);
        }
        Ok(())
    }
}

impl Shared {
    /// Decides whether a result is served within the burst window: to a session that has not received
    /// it.
    fn bursts(
        &self,
        key: u128,
        made: Instant,
        session: u64,
        now: Instant,
    ) -> Result<(), NotServed> {
        let age = now.saturating_duration_since(made);
        let last = self
            .executions
            .last(key)
            .filter(|last| age <= self.config.burst && last.dispatched == made);
        match last {
            Some(last) if last.serve(session) => Ok(()),
            _ => Err(NotServed::TooOld),
        }
    }

    /// Returns what stands for the session of a call; without one, for its principal.
    pub(crate) fn session(&self, call: &ToolCall) -> u64 {
        use std::hash::BuildHasher;
        let caller = call.caller();
        self.sessions.hash_one((&caller.principal, &caller.session))
    }
}

impl Version {
    /// Returns the evidence about the tool in the partition of a principal; `None` is everybody.
    pub(crate) fn evidence(
        &self,
        shared: &Shared,
        call: &ToolCall,
        principal: Option<u128>,
    ) -> Arc<ToolEvidence> {
        let partition = principal.unwrap_or(0);
        let mut last = self.evidence.lock();
        if let Some((known, evidence)) = &*last
            && *known == partition
        {
            return evidence.clone();
        }
        let tool = call.tool();
        let evidence = shared.evidence.of(&Subject {
            set: tool.set().clone(),
            tool: tool.name().clone(),
            definition: tool.digest().as_u128(),
            partition,
        });
        *last = Some((partition, evidence.clone()));
        evidence
    }
}
