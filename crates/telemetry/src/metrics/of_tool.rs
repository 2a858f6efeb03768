//! What is recorded of one tool's calls and attempts.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use callward_core::{AttemptRecord, CacheStatus, Effect, Lanes, ServerId, Tool};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Histogram;

use super::instruments::{Instruments, Origin};
use super::recorder::Recorder;
use super::tools::{Tell, of};
use crate::names;
use crate::names::metric::label;

/// What is recorded of one tool, each series made when it is first needed.
#[derive(Debug, Default)]
pub(super) struct OfTool {
    /// Calls that were answered, by [`place`](Outcome::place): found without a lock.
    answered: [OnceLock<Box<[OnceLock<Cell>; STATUSES]>>; ORIGINS * EFFECTS],
    /// Calls that were not, and the tool's own errors.
    failed: Mutex<Vec<(Outcome, Arc<Cell>)>>,
    /// Attempts at the first few servers, by how they ended: found without a lock.
    attempts: [OnceLock<Box<Attempts>>; FEW],
    /// Attempts that have no place there.
    more_attempts: Mutex<Vec<Attempts>>,
    /// Calls that a person is to agree to, by what was said.
    confirmed: Mutex<Vec<(&'static str, u64)>>,
    /// Requests to servers over MCP.
    sent: Mutex<Vec<Sent>>,
}

/// What tells the series of a tool's calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) origin: Origin,
    pub(super) effect: Effect,
    pub(super) cache: CacheStatus,
    pub(super) error: Option<&'static str>,
}

/// One series of calls.
#[derive(Debug)]
struct Cell {
    calls: Lanes<1>,
    duration: Recorder,
}

/// One series of requests.
#[derive(Debug)]
struct Sent {
    server: ServerId,
    error: Option<&'static str>,
    duration: Arc<Recorder>,
}

/// One series of attempts.
#[derive(Debug)]
struct Attempts {
    server: Option<ServerId>,
    error: Option<&'static str>,
    count: Lanes<1>,
}

/// Series of attempts of a tool that are found without a lock.
const FEW: usize = 8;

impl OfTool {
    /// Records a call that took so many seconds.
    pub(super) fn record(
        &self,
        tool: &Tool,
        outcome: Outcome,
        instruments: &Instruments,
        seconds: f64,
    ) {
        let make = || Cell::new(tool, outcome, instruments);
        let (kind, status) = outcome.place();
        let answered = self.answered.get(kind).filter(|_| outcome.error.is_none());
        let cell = answered.and_then(|answered| answered.get_or_init(Box::default).get(status));
        match cell {
            Some(cell) => cell.get_or_init(make).record(seconds),
            None => self.failed(outcome, make).record(seconds),
        }
    }

    /// Counts an attempt.
    pub(super) fn count(&self, attempt: &AttemptRecord) {
        let error = attempt.error.map(callward_core::ErrorKind::as_str);
        let same = |one: &Attempts| one.error == error && one.server == attempt.server;
        let make = || Attempts {
            server: attempt.server.clone(),
            error,
            count: Lanes::new(),
        };
        for place in &self.attempts {
            let one = place.get_or_init(|| Box::new(make()));
            if same(one) {
                return one.count.add([1]);
            }
        }
        let mut more = lock(&self.more_attempts);
        if let Some(one) = more.iter().find(|one| same(one)) {
            return one.count.add([1]);
        }
        let one = make();
        one.count.add([1]);
        more.push(one);
    }

    /// Counts what was said to a call.
    pub(super) fn confirmed(&self, said: &'static str) {
        let mut confirmed = lock(&self.confirmed);
        match confirmed.iter_mut().find(|(word, _)| *word == said) {
            Some((_, count)) => *count += 1,
            None => confirmed.push((said, 1)),
        }
    }

    /// Returns where requests to a server that ended so are recorded.
    pub(super) fn sent(
        &self,
        tool: &Tool,
        server: &ServerId,
        error: Option<&'static str>,
        histogram: &Histogram<f64>,
    ) -> Arc<Recorder> {
        let mut sent = lock(&self.sent);
        let same = |one: &&Sent| one.error == error && one.server == *server;
        if let Some(one) = sent.iter().find(same) {
            return one.duration.clone();
        }
        let attributes = [
            KeyValue::new(names::METHOD, names::METHOD_TOOLS_CALL),
            KeyValue::new(names::OPERATION, names::OPERATION_EXECUTE_TOOL),
            KeyValue::new(names::SERVER, server.as_str().to_owned()),
        ];
        let error_type = error.map(|word| KeyValue::new(names::ERROR_TYPE, word));
        let named = of(tool.set(), tool.name());
        let attributes: Vec<_> = attributes
            .into_iter()
            .chain(named)
            .chain(error_type)
            .collect();
        let duration = Arc::new(Recorder::new(histogram, &attributes));
        sent.push(Sent {
            server: server.clone(),
            error,
            duration: duration.clone(),
        });
        duration
    }

    pub(super) fn calls(&self, tell: &mut Tell<'_>) {
        for (kind, answered) in self.answered.iter().enumerate() {
            let cells = answered.get().into_iter().flat_map(|cells| cells.iter());
            for (status, cell) in cells.enumerate() {
                let outcome = Outcome::at(kind, status);
                if let (Some(cell), Some(outcome)) = (cell.get(), outcome) {
                    tell(cell.calls(), &mut outcome.attributes());
                }
            }
        }
        for (outcome, cell) in lock(&self.failed).iter() {
            tell(cell.calls(), &mut outcome.attributes());
        }
    }

    pub(super) fn attempts(&self, tell: &mut Tell<'_>) {
        let more = lock(&self.more_attempts);
        let all = self.attempts.iter().filter_map(OnceLock::get);
        for one in all.map(|one| &**one).chain(more.iter()) {
            let [count] = one.count.sum();
            let server = one.server.as_ref();
            let server = server.map(|id| KeyValue::new(names::SERVER, id.as_str().to_owned()));
            let error = one.error.map(|word| KeyValue::new(names::ERROR_TYPE, word));
            tell(count, &mut server.into_iter().chain(error));
        }
    }

    pub(super) fn confirmations(&self, tell: &mut Tell<'_>) {
        for (said, count) in lock(&self.confirmed).iter() {
            let said = KeyValue::new(label::OUTCOME, *said);
            tell(*count, &mut std::iter::once(said));
        }
    }

    fn failed(&self, outcome: Outcome, make: impl FnOnce() -> Cell) -> Arc<Cell> {
        let mut failed = lock(&self.failed);
        if let Some((_, cell)) = failed.iter().find(|(known, _)| *known == outcome) {
            return cell.clone();
        }
        let cell = Arc::new(make());
        failed.push((outcome, cell.clone()));
        cell
    }
}

impl Cell {
    fn new(tool: &Tool, outcome: Outcome, instruments: &Instruments) -> Self {
        let (histogram, method) = instruments.of_calls(outcome.origin);
        let [tool, set] = of(tool.set(), tool.name());
        let attributes = method.into_iter().chain([tool, set]);
        let attributes: Vec<_> = attributes.chain(outcome.seen_by_caller()).collect();
        Self {
            calls: Lanes::new(),
            duration: Recorder::new(histogram, &attributes),
        }
    }

    fn calls(&self) -> u64 {
        let [calls] = self.calls.sum();
        calls
    }

    fn record(&self, seconds: f64) {
        self.calls.add([1]);
        self.duration.record(seconds);
    }
}

impl Outcome {
    /// Returns the place of such an outcome among those without an error.
    fn place(self) -> (usize, usize) {
        let kind = self.origin as usize * EFFECTS + effect_place(self.effect);
        (kind, self.cache as usize)
    }

    /// Returns the outcome that has a place.
    fn at(kind: usize, status: usize) -> Option<Self> {
        Some(Self {
            origin: *[Origin::Mcp, Origin::Local].get(kind / EFFECTS)?,
            effect: *ALL_EFFECTS.get(kind % EFFECTS)?,
            cache: *CacheStatus::ALL.get(status)?,
            error: None,
        })
    }

    fn attributes(self) -> impl Iterator<Item = KeyValue> {
        let effect = KeyValue::new(names::EFFECT, self.effect.as_str());
        [effect].into_iter().chain(self.seen_by_caller())
    }

    fn seen_by_caller(self) -> impl Iterator<Item = KeyValue> {
        let cache = KeyValue::new(names::CACHE, self.cache.as_str());
        let error = self
            .error
            .map(|word| KeyValue::new(names::ERROR_TYPE, word));
        [cache].into_iter().chain(error)
    }
}

const ORIGINS: usize = 2;
const ALL_EFFECTS: [Effect; 4] = [
    Effect::ReadOnly,
    Effect::Idempotent,
    Effect::Mutating,
    Effect::Destructive,
];
const EFFECTS: usize = ALL_EFFECTS.len();
const STATUSES: usize = CacheStatus::ALL.len();

const fn effect_place(effect: Effect) -> usize {
    match effect {
        Effect::ReadOnly => 0,
        Effect::Idempotent => 1,
        Effect::Mutating => 2,
        Effect::Destructive => 3,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_without_an_error_has_a_place_of_its_own() {
        let mut places = std::collections::HashSet::new();
        for origin in [Origin::Mcp, Origin::Local] {
            for effect in ALL_EFFECTS {
                for &cache in CacheStatus::ALL {
                    let outcome = Outcome {
                        origin,
                        effect,
                        cache,
                        error: None,
                    };
                    let (kind, status) = outcome.place();
                    assert!(kind < ORIGINS * EFFECTS && status < STATUSES);
                    assert_eq!(Outcome::at(kind, status), Some(outcome));
                    places.insert((kind, status));
                }
            }
        }
        assert_eq!(places.len(), ORIGINS * EFFECTS * STATUSES);
    }

    #[test]
    fn attempts_are_counted_at_however_many_servers() {
        let of = OfTool::default();
        let servers: Vec<_> = (0..3 * FEW)
            .map(|number| ServerId::new(format!("s{number}")).unwrap())
            .collect();
        for _ in 0..2 {
            for server in &servers {
                let took = std::time::Duration::ZERO;
                of.count(&AttemptRecord::new(Some(server.clone()), None, took));
            }
        }
        let mut told = std::collections::HashMap::new();
        of.attempts(&mut |count, named| {
            let named: Vec<_> = named.map(|one| one.value.to_string()).collect();
            assert_eq!(told.insert(named, count), None);
        });
        assert_eq!(told.len(), servers.len());
        assert!(told.values().all(|count| *count == 2), "{told:?}");
    }
}
