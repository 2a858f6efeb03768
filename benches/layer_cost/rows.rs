//! What is measured beside what.

use std::time::Duration;

use callward::ToolCall;

use crate::calls::Calls;
use crate::measure::Subject;
use crate::{ours, theirs};

/// The service alone: what is taken off every other row.
pub(crate) const ALONE: &str = "the service alone";

/// Calls a second that pass a rate limit: more than any run makes.
pub(crate) const RATE: f64 = 1e8;
/// From when on a call is slow, where that counts.
pub(crate) const SLOW: Duration = Duration::from_secs(5);

/// One row: a layer of ours, and theirs where there is one.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    calls: Calls,
    pub(crate) ours: Subject,
    pub(crate) theirs: Option<Subject>,
    rounds: usize,
}

/// What a row's figures stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A layer around the service, whose own cost is taken off.
    Layer,
    /// Something by itself.
    Bare,
}

impl Row {
    fn layer(name: &'static str, ours: Subject, theirs: Option<Subject>) -> Self {
        Self {
            name,
            kind: Kind::Layer,
            calls: Calls::Same,
            ours,
            theirs,
            rounds: 0,
        }
    }

    fn bare(name: &'static str, ours: Subject) -> Self {
        Self {
            kind: Kind::Bare,
            ..Self::layer(name, ours, None)
        }
    }

    fn with(self, calls: Calls) -> Self {
        Self { calls, ..self }
    }

    /// Says whether the row is there to be compared with.
    pub(crate) fn is_bare(&self) -> bool {
        self.name == ALONE
    }

    /// Measures both sides once more. They take turns at going first.
    pub(crate) fn round(&mut self) {
        let (calls, round) = (self.calls, self.rounds);
        self.rounds += 1;
        if round.is_multiple_of(2) {
            self.ours.round(calls, round);
        }
        if let Some(theirs) = &mut self.theirs {
            theirs.round(calls, round);
        }
        if !round.is_multiple_of(2) {
            self.ours.round(calls, round);
        }
    }
}

/// All rows, the service alone first.
pub(crate) fn all() -> Vec<Row> {
    let alone = Subject::service(crate::calls::AtOnce);
    vec![
        Row::bare(ALONE, alone),
        Row::layer("call span, nobody looks", ours::call_span(), None),
        Row::layer("cache, hit", ours::cache_hit(), Some(theirs::cache_hit())),
        Row::layer(
            "cache, miss",
            ours::cache_miss(),
            Some(theirs::cache_miss()),
        )
        .with(Calls::New),
        Row::layer("cache, a write passes", ours::cache_hit(), None).with(Calls::Writes),
        Row::layer("loop guard", ours::loop_guard(), None),
        Row::layer("retry", ours::retry(), Some(theirs::retry(false))),
        Row::layer(
            "retry, theirs with a budget",
            ours::retry(),
            Some(theirs::retry(true)),
        ),
        Row::layer("hedge, off", ours::hedge_off(), None),
        Row::layer("hedge", ours::hedge(), Some(theirs::hedge())),
        Row::layer("rate limit", ours::rate(), Some(theirs::rate())),
        Row::layer("attempt span, nobody looks", ours::attempt_span(), None),
        Row::layer("router, one server", ours::router(1), None),
        Row::layer("router, ten servers", ours::router(10), None),
        Row::layer("breaker", ours::breaker(), Some(theirs::breaker())),
        Row::layer(
            "breaker, slow calls counted",
            ours::breaker_timed(),
            Some(theirs::breaker_timed()),
        ),
        Row::layer(
            "concurrency limit",
            ours::concurrency(),
            Some(theirs::concurrency()),
        ),
        Row::layer(
            "concurrency limit, of each tool too",
            ours::concurrency_of_tools(),
            None,
        ),
        Row::layer("attempt timeout", ours::timeout(), Some(theirs::timeout())),
        Row::bare("breaker check (borrowed)", ours::breaker_check()),
        Row::bare("breaker check (owned)", ours::breaker_check_owned()),
        Row::bare("breaker check, found in its set", ours::breaker_found()),
    ]
}

/// A key as anybody would make it, for a cache that needs one.
pub(crate) fn key(call: &ToolCall) -> Vec<u8> {
    call.arguments().to_vec()
}
