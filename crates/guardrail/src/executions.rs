//! How many calls ran, and when.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, FingerprintKey, OutputStatus, ToolCall, ToolError, ToolOutput};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::MaxCalls;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const HOUR: Duration = Duration::from_secs(60 * 60);
/// How many sessions are counted apart, and then as many principals. What comes beyond shares one
/// count with all else of its principal, and at last with all, as dropping a count would let its
/// owner begin again.
const CAPACITY: usize = if cfg!(test) { 8 } else { 4096 };

/// One limit of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// The number of its rule.
    rule: usize,
    key: u128,
    /// What those beyond the capacity have in its place: one for their principal, and one for all.
    others: [u128; 2],
    max: usize,
    window: Duration,
    whose: &'static str,
}

/// A limit that is reached, and when the next call is free.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) rule: usize,
    pub(crate) max: usize,
    pub(crate) whose: &'static str,
    pub(crate) wait: Duration,
}

impl Limit {
    /// Returns the limits of a rule that apply to a call.
    pub(crate) fn of(
        secret: &FingerprintKey,
        rule: usize,
        max: MaxCalls,
        call: &ToolCall,
    ) -> impl Iterator<Item = Self> {
        let caller = call.caller();
        let session = caller.session.as_ref().map(|session| session.as_str());
        let hash = |text: &str| secret.bytes(text.as_bytes());
        let principal = hash(caller.principal.as_str());
        let of_session = [
            u128::from(session.is_some()),
            hash(session.unwrap_or_default()),
        ];
        let limits = [
            (max.session, DAY, "a session", of_session),
            (max.hour, HOUR, "an hour of a principal", [2, 0]),
        ];
        let secret = *secret;
        limits
            .into_iter()
            .filter_map(move |(max, window, whose, [kind, session])| {
                let limit = secret.combine(&[rule as u128, u128::from(window.as_secs())]);
                let others = secret.combine(&[limit, principal]);
                Some(Self {
                    rule,
                    key: secret.combine(&[others, kind, session]),
                    others: [others, limit],
                    max: usize::try_from(max?.get()).ok()?,
                    window,
                    whose,
                })
            })
    }
}

/// The times of calls, by the key of their limit.
#[derive(Debug, Default)]
pub(crate) struct Executions(Mutex<HashMap<u128, Times>>);

#[derive(Debug)]
struct Times {
    window: Duration,
    /// The earliest first.
    at: VecDeque<Instant>,
}

impl Times {
    fn forget(&mut self, now: Instant) {
        let is_over = |at: &mut Instant| now.saturating_duration_since(*at) >= self.window;
        while self.at.pop_front_if(is_over).is_some() {}
    }
}

impl Executions {
    /// Counts a call against all of its limits, or against none.
    pub(crate) fn admit(self: &Arc<Self>, limits: &[Limit]) -> Result<Execution, Reached> {
        let now = Instant::now();
        let mut counted = self.0.lock();
        let mut keys = Vec::with_capacity(limits.len());
        for limit in limits {
            if counted.len() >= CAPACITY && !counted.contains_key(&limit.key) {
                counted.retain(|_, times| {
                    times.forget(now);
                    !times.at.is_empty()
                });
            }
            let has_place = |key: &u128, most| counted.len() < most || counted.contains_key(key);
            let key = match limit.others {
                _ if has_place(&limit.key, CAPACITY) => limit.key,
                [others, _] if has_place(&others, 2 * CAPACITY) => others,
                [_, all] => all,
            };
            let times = counted.entry(key).or_insert_with(|| Times {
                window: limit.window,
                at: VecDeque::new(),
            });
            times.forget(now);
            if times.at.len() >= limit.max {
                // the one that has to be over for the next to be free
                let last = times.at.iter().nth_back(limit.max - 1);
                let ends = last.map_or(now, |at| *at + limit.window);
                return Err(Reached {
                    rule: limit.rule,
                    max: limit.max,
                    whose: limit.whose,
                    wait: ends.saturating_duration_since(now),
                });
            }
            keys.push(key);
        }
        for key in &keys {
            if let Some(times) = counted.get_mut(key) {
                times.at.push_back(now);
            }
        }
        let executions = self.clone();
        Ok(Execution {
            executions,
            keys,
            at: now,
        })
    }
}

/// A call that is counted.
#[derive(Debug)]
pub(crate) struct Execution {
    executions: Arc<Executions>,
    keys: Vec<u128>,
    at: Instant,
}

impl Execution {
    /// Takes the count back if the call certainly was not sent, or goes on with a further round,
    /// which is counted then.
    pub(crate) fn end(self, result: &Result<ToolOutput, ToolError>) {
        let counts = match result {
            Ok(output) => output.status() != OutputStatus::InputRequired,
            Err(error) => {
                let attempts = error.history.iter().map(|attempt| attempt.delivery);
                let mut all = attempts.chain([error.delivery]);
                all.any(|delivery| delivery != Delivery::NotSent)
            }
        };
        if counts {
            return;
        }
        let mut counted = self.executions.0.lock();
        for key in &self.keys {
            if let Some(times) = counted.get_mut(key)
                && let Some(place) = times.at.iter().rposition(|at| *at == self.at)
            {
                times.at.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use callward_core::{Caller, Principal, SessionId};
    use callward_testkit::tool;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn beyond_the_capacity_a_principal_shares_only_with_itself() {
        let executions = Arc::<Executions>::default();
        let secret = FingerprintKey::new(1, 2);
        let max = MaxCalls {
            session: NonZeroU32::new(2),
            hour: None,
        };
        let admits = |principal: &str, session: usize| {
            let caller = Caller::new(Principal::new(principal));
            let caller = caller.with_session(SessionId::new(session.to_string()));
            let call = ToolCall::new(tool("x").build(), "{}").with_caller(Arc::new(caller));
            let limits: Vec<_> = Limit::of(&secret, 1, max, &call).collect();
            executions.admit(&limits).is_ok()
        };
        assert!((0..CAPACITY).all(|session| admits("ada", session)));
        // one count for all that come now, of 2
        let further = CAPACITY..CAPACITY + 3;
        let admitted: Vec<_> = further.map(|session| admits("ada", session)).collect();
        assert_eq!(admitted, [true, true, false]);
        assert!(admits("bob", 0) && admits("bob", 1) && !admits("bob", 2));
        // and those of before keep their own
        assert!(admits("ada", 0) && !admits("ada", 0));
    }
}
