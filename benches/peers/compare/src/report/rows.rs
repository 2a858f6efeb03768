//! The rows of the table: what each shows of a peer, and which end of it is the better one.

use crate::figures::{Lost, PeerFigures, Speed};

/// Which peers a row calls best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Low,
    High,
    /// None: the row is there to understand the others.
    Neither,
}

/// What stands in a cell: what is compared, and what is written. Nothing where it was not measured.
type Cell = Option<(f64, String)>;

/// A row.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) better: Better,
    pub(crate) cell: fn(&PeerFigures) -> Cell,
}

/// Rows that belong together, and what they are about.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) rows: &'static [Row],
}

const fn low(name: &'static str, cell: fn(&PeerFigures) -> Cell) -> Row {
    let better = Better::Low;
    Row { name, better, cell }
}

const fn high(name: &'static str, cell: fn(&PeerFigures) -> Cell) -> Row {
    let better = Better::High;
    Row { name, better, cell }
}

const fn neither(name: &'static str, cell: fn(&PeerFigures) -> Cell) -> Row {
    let better = Better::Neither;
    Row { name, better, cell }
}

pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "Lost replies, of 100 calls",
        rows: &[
            low("writes run again, connection dropped", |peer| {
                again(peer, "connection dropped")
            }),
            low("writes run again, HTTP 503", |peer| again(peer, "HTTP 503")),
            low("writes run again, JSON-RPC error", |peer| {
                again(peer, "JSON-RPC -32603")
            }),
            neither("executions for each intended write", |peer| {
                executions(peer, true)
            }),
            neither("executions for each intended read", |peer| {
                executions(peer, false)
            }),
            low("calls that never ran", never),
            low("reads that failed", |peer| errors(peer, false)),
            neither("writes that failed", |peer| errors(peer, true)),
            neither("slowest read, s", slowest_read),
        ],
    },
    Group {
        name: "After a write, of 100",
        rows: &[
            low("reads that were stale", |peer| {
                let memory = peer.memory.as_ref()?;
                percent(memory.stale, memory.reads)
            }),
            low("writes that were swallowed", |peer| {
                let memory = peer.memory.as_ref()?;
                percent(memory.swallowed, memory.writes)
            }),
        ],
    },
    Group {
        name: "64 identical reads at once",
        rows: &[
            low("executions", |peer| {
                let runs = peer.stampede.as_ref()?.executed;
                Some((runs as f64, runs.to_string()))
            }),
            low("slowest answer, s", |peer| {
                let slowest = peer.stampede.as_ref()?.slowest_seconds;
                Some((slowest, format!("{slowest:.2}")))
            }),
        ],
    },
    Group {
        name: "Another tool fails: healthy calls refused, of 100",
        rows: &[
            low("it answers isError", |peer| blocked(peer, "isError")),
            low("it answers JSON-RPC errors", |peer| {
                blocked(peer, "JSON-RPC -32603")
            }),
            low("it answers HTTP 503", |peer| blocked(peer, "HTTP 503")),
            low("it drops the connection", |peer| {
                blocked(peer, "connection dropped")
            }),
        ],
    },
    Group {
        name: "Hints",
        rows: &[low("lost or changed on the hop, of 100", |peer| {
            let hints = peer.hints.as_ref()?;
            percent(hints.declared - hints.kept + hints.changed, hints.declared)
        })],
    },
    Group {
        name: "Upstream killed and back",
        rows: &[
            low("first answer, s", |peer| {
                let recovery = peer.recovery.as_ref()?;
                Some(match recovery.first_answer_seconds {
                    Some(seconds) => (seconds, format!("{seconds:.2}")),
                    None => (f64::INFINITY, format!("> {:.0}", recovery.waited_seconds)),
                })
            }),
            low("new callers' calls failing, of 100", |peer| {
                let recovery = peer.recovery.as_ref()?;
                percent(recovery.errors_afterwards, recovery.afterwards)
            }),
        ],
    },
    Group {
        name: "Uncached, 1 caller",
        rows: &uncached::<1>(),
    },
    Group {
        name: "Uncached, 32 callers",
        rows: &uncached::<32>(),
    },
    Group {
        name: "Repeated calls, 1 caller",
        rows: &[
            high("calls/s", rate::<1, true>),
            high("calls/s, % of direct", share::<1, true>),
            low("CPU, µs a call", cpu::<1, true>),
        ],
    },
    Group {
        name: "Repeated calls, 32 callers",
        rows: &[
            high("calls/s", rate::<32, true>),
            high("calls/s, % of direct", share::<32, true>),
            neither("answered from the cache, %", |peer| {
                let hits = cell(peer, 32, true)?.hits * 100.0;
                Some((hits, short(hits)))
            }),
            low("CPU, µs a call", cpu::<32, true>),
        ],
    },
    Group {
        name: "Process",
        rows: &[
            low("memory after all calls, MiB", |peer| {
                let mib = peer.speed.last()?.summary.rss_mib?;
                Some((mib, short(mib)))
            }),
            low("start to first listing, s", |peer| {
                let seconds = peer.start_seconds?;
                Some((seconds, format!("{seconds:.2}")))
            }),
        ],
    },
];

const fn uncached<const CALLERS: usize>() -> [Row; 5] {
    [
        high("calls/s", rate::<CALLERS, false>),
        high("calls/s, % of direct", share::<CALLERS, false>),
        low("added at p50, ms", |peer| {
            ms(cell(peer, CALLERS, false)?.summary.added_p50_ms)
        }),
        low("added at p99, ms", |peer| {
            ms(cell(peer, CALLERS, false)?.summary.added_p99_ms)
        }),
        low("CPU, µs a call", cpu::<CALLERS, false>),
    ]
}

fn executions(peer: &PeerFigures, writes: bool) -> Cell {
    let runs = per_call(peer, writes, |lost| lost.executed)?;
    Some((runs, format!("{runs:.2}")))
}

fn errors(peer: &PeerFigures, writes: bool) -> Cell {
    let failed = per_call(peer, writes, |lost| lost.errors)? * 100.0;
    Some((failed, short(failed)))
}

fn never(peer: &PeerFigures) -> Cell {
    let sum = |of: fn(&Lost) -> u64| peer.lost.iter().map(of).sum();
    percent(sum(|lost| lost.never), sum(|lost| lost.intended))
}

fn slowest_read(peer: &PeerFigures) -> Cell {
    let reads = peer.lost.iter().filter(|lost| !lost.writes);
    let slowest = reads.map(|lost| lost.slowest_seconds).reduce(f64::max)?;
    Some((slowest, format!("{slowest:.1}")))
}

/// Writes that ran more than once. A peer that let most of them never run has not run them once,
/// either.
fn again(peer: &PeerFigures, way: &str) -> Cell {
    let writes = || {
        peer.lost
            .iter()
            .filter(|lost| lost.writes && lost.way == way)
    };
    let sum = |of: fn(&Lost) -> u64| writes().map(of).sum::<u64>();
    let intended = sum(|lost| lost.intended);
    if sum(|lost| lost.never) * 2 > intended {
        return Some((f64::INFINITY, "dead".to_owned()));
    }
    percent(sum(|lost| lost.extra), intended)
}

fn per_call(peer: &PeerFigures, writes: bool, of: fn(&Lost) -> u64) -> Option<f64> {
    let rows = || peer.lost.iter().filter(|lost| lost.writes == writes);
    let intended: u64 = rows().map(|lost| lost.intended).sum();
    (intended > 0).then(|| rows().map(of).sum::<u64>() as f64 / intended as f64)
}

fn percent(part: u64, whole: u64) -> Cell {
    let share = (whole > 0).then(|| part as f64 / whole as f64 * 100.0)?;
    Some((share, short(share)))
}

fn blocked(peer: &PeerFigures, way: &str) -> Cell {
    let found = peer.neighbours.iter().find(|found| found.way == way)?;
    percent(found.blocked, found.healthy_calls)
}

pub(crate) fn cell(peer: &PeerFigures, callers: usize, cached: bool) -> Option<&Speed> {
    let same = |speed: &&Speed| speed.callers == callers && speed.cached == cached;
    peer.speed.iter().find(same)
}

fn rate<const CALLERS: usize, const CACHED: bool>(peer: &PeerFigures) -> Cell {
    let rate = cell(peer, CALLERS, CACHED)?.summary.calls_per_second;
    Some((rate, thousands(rate)))
}

fn share<const CALLERS: usize, const CACHED: bool>(peer: &PeerFigures) -> Cell {
    let share = cell(peer, CALLERS, CACHED)?.summary.share_of_direct * 100.0;
    Some((share, short(share)))
}

fn ms(added: f64) -> Cell {
    let text = if added.abs() < 10.0 {
        format!("{added:.2}")
    } else {
        thousands(added)
    };
    Some((added, text))
}

fn cpu<const CALLERS: usize, const CACHED: bool>(peer: &PeerFigures) -> Cell {
    let cpu = cell(peer, CALLERS, CACHED)?.summary.cpu_us_per_call?;
    Some((cpu, thousands(cpu)))
}

/// With as many digits as say something.
fn short(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 1.0 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A whole number, in groups of three digits.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let start = digits.len() % 3;
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && place % 3 == start && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        let cases = [(0.0, "0"), (0.123, "0.12"), (1.26, "1.3"), (99.6, "100")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        for (value, text) in [
            (1.0, "1"),
            (1234.5, "1,234"),
            (1e6, "1,000,000"),
            (-123.0, "-123"),
        ] {
            assert_eq!(thousands(value), text);
        }
    }

    #[test]
    fn ways_and_tools_are_added_up_and_reads_kept_apart_from_writes() {
        let lost = |writes, intended, extra| Lost {
            way: "w".to_owned(),
            writes,
            intended,
            executed: intended + extra,
            extra,
            ..Lost::default()
        };
        let peer = PeerFigures {
            lost: vec![lost(true, 10, 1), lost(true, 30, 3), lost(false, 10, 9)],
            ..PeerFigures::default()
        };
        assert_eq!(per_call(&peer, true, |lost| lost.extra), Some(0.1));
        assert_eq!(per_call(&peer, false, |lost| lost.executed), Some(1.9));
        assert_eq!(
            per_call(&PeerFigures::default(), true, |lost| lost.extra),
            None
        );
        assert_eq!(again(&peer, "w"), Some((10.0, "10".to_owned())));
        assert_eq!(again(&peer, "another"), None);
    }

    #[test]
    fn who_runs_nothing_is_not_the_one_who_repeats_nothing() {
        let dead = Lost {
            way: "w".to_owned(),
            writes: true,
            intended: 10,
            executed: 4,
            never: 6,
            errors: 10,
            ..Lost::default()
        };
        let peer = PeerFigures {
            lost: vec![dead],
            ..PeerFigures::default()
        };
        assert_eq!(again(&peer, "w"), Some((f64::INFINITY, "dead".to_owned())));
    }
}
