//! Which calls failed, how often, and when.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use callward_core::FingerprintKey;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::LoopGuardConfig;

/// The calls that failed since they last succeeded, by their key.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) config: LoopGuardConfig,
    calls: Mutex<HashMap<u128, Failing>>,
    /// Makes the keys.
    pub(crate) secret: FingerprintKey,
    /// How many calls were answered in their servers' place.
    pub(crate) answered: AtomicU64,
}

#[derive(Debug)]
struct Failing {
    failures: u32,
    last: Instant,
    message: String,
    /// When the last trial began, if it has not ended before its failure.
    trial: Option<Instant>,
}

/// How many failing calls are held, of all sessions together, each in about half a KiB. With more,
/// the one that failed longest ago is dropped.
const CAPACITY: usize = 4096;

/// What to do with a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Send,
    /// Send it as the one trial of this wait.
    Trial,
    /// Answer it here.
    Stop {
        failures: u32,
        message: String,
        wait: Duration,
    },
}

impl Table {
    /// Makes an empty table. `config` is valid.
    pub(crate) fn new(config: LoopGuardConfig) -> Self {
        // std seeds each state from the system's random source
        let random = || RandomState::new().hash_one(0_u8);
        Self {
            config,
            calls: Mutex::default(),
            secret: FingerprintKey::new(random(), random()),
            answered: AtomicU64::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.lock().len()
    }

    /// Decides about a call before it is sent.
    pub(crate) fn admit(&self, key: u128, now: Instant) -> Admission {
        let mut calls = self.calls.lock();
        let call = calls.get_mut(&key);
        let Some(call) = call.filter(|call| call.failures >= self.config.failures) else {
            return Admission::Send;
        };
        let since = call.trial.map_or(call.last, |trial| trial.max(call.last));
        match LoopGuardConfig::WAIT.saturating_sub(now.saturating_duration_since(since)) {
            Duration::ZERO => {
                call.trial = Some(now);
                Admission::Trial
            }
            wait => Admission::Stop {
                failures: call.failures,
                message: call.message.clone(),
                wait,
            },
        }
    }

    /// Adds a failure of a call.
    pub(crate) fn fail(&self, key: u128, now: Instant, message: String) {
        let LoopGuardConfig {
            failures, window, ..
        } = self.config;
        let mut calls = self.calls.lock();
        if calls.len() >= CAPACITY && !calls.contains_key(&key) {
            let oldest = calls.iter().min_by_key(|(_, call)| call.last);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.and_then(|key| calls.remove(&key));
        }
        let call = calls.entry(key).or_insert(Failing {
            failures: 0,
            last: now,
            message: String::new(),
            trial: None,
        });
        let is_apart = now.saturating_duration_since(call.last) > window;
        if call.failures < failures && is_apart {
            call.failures = 0;
        }
        call.failures = call.failures.saturating_add(1);
        call.last = now;
        call.message = message;
    }

    /// Clears all calls, or all but one.
    pub(crate) fn clear(&self, except: Option<u128>) {
        self.calls.lock().retain(|key, _| Some(*key) == except);
    }

    /// Takes back the trial that began at this time, so that the next call may be one.
    pub(crate) fn take_back(&self, key: u128, began: Instant) {
        let mut calls = self.calls.lock();
        if let Some(call) = calls.get_mut(&key).filter(|call| call.trial == Some(began)) {
            call.trial = None;
        }
    }
}

#[cfg(test)]
mod tests;
