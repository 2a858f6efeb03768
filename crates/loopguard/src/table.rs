//! Which calls failed, how often, and when.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::LoopGuardConfig;

/// The calls that failed since they last succeeded, by their key.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) config: LoopGuardConfig,
    calls: Mutex<HashMap<u128, Failing>>,
}

#[derive(Debug)]
struct Failing {
    failures: u32,
    last: Instant,
    message: String,
    /// When the last trial began, if it has not ended before its failure.
    trial: Option<Instant>,
}

/// How many failing calls are held, of all sessions together. Each takes about half a KiB.
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
        Self {
            config,
            calls: Mutex::default(),
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
        if !calls.contains_key(&key) {
            self.make_room(&mut calls, now);
        }
        let call = calls.entry(key).or_insert(Failing {
            failures: 0,
            last: now,
            message: String::new(),
            trial: None,
        });
        let in_a_row =
            call.failures >= failures || now.saturating_duration_since(call.last) <= window;
        call.failures = if in_a_row {
            call.failures.saturating_add(1)
        } else {
            1
        };
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

    /// Drops the calls whose failures are over, and of a full table the one that failed first.
    fn make_room(&self, calls: &mut HashMap<u128, Failing>, now: Instant) {
        if calls.len() < CAPACITY {
            return;
        }
        // a call that is held back is remembered for a second window, for its trial
        let over = self.config.window.saturating_mul(2);
        calls.retain(|_, call| now.saturating_duration_since(call.last) <= over);
        if calls.len() >= CAPACITY {
            let oldest = calls.iter().min_by_key(|(_, call)| call.last);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.and_then(|key| calls.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests;
