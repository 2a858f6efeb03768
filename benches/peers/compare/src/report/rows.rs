//! The rows of the table: what each shows of a peer, and which end of it is the better one.

use crate::figures::{PeerFigures, Speed};

/// Which peers a row calls best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Low,
    High,
    /// None: the row is there to understand the others.
    Neither,
}

/// A row.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) better: Better,
    /// Whether it is about right and wrong, and not about speed.
    pub(crate) correctness: bool,
    /// What is compared, and what is written; nothing where it was not measured.
    pub(crate) cell: fn(&PeerFigures) -> Option<(f64, String)>,
}

const fn right(name: &'static str, better: Better, cell: Cell) -> Row {
    Row {
        name,
        better,
        correctness: true,
        cell,
    }
}

const fn fast(name: &'static str, better: Better, cell: Cell) -> Row {
    Row {
        name,
        better,
        correctness: false,
        cell,
    }
}

type Cell = fn(&PeerFigures) -> Option<(f64, String)>;

pub(crate) const ROWS: &[Row] = &[
    right(
        "lost replies: writes run again, per 100 calls",
        Better::Low,
        |peer| {
            let again = per_call(peer, true, |lost| lost.extra)? * 100.0;
            Some((again, short(again)))
        },
    ),
    right(
        "lost replies: executions per intended write",
        Better::Neither,
        |peer| {
            let runs = per_call(peer, true, |lost| lost.executed)?;
            Some((runs, format!("{runs:.2}")))
        },
    ),
    right(
        "lost replies: executions per intended read",
        Better::Neither,
        |peer| {
            let runs = per_call(peer, false, |lost| lost.executed)?;
            Some((runs, format!("{runs:.2}")))
        },
    ),
    right(
        "lost replies: reads that failed, per 100 calls",
        Better::Low,
        |peer| {
            let failed = per_call(peer, false, |lost| lost.errors)? * 100.0;
            Some((failed, short(failed)))
        },
    ),
    right(
        "lost replies: writes that failed, per 100 calls",
        Better::Neither,
        |peer| {
            let failed = per_call(peer, true, |lost| lost.errors)? * 100.0;
            Some((failed, short(failed)))
        },
    ),
    right(
        "lost replies: the slowest read, s",
        Better::Neither,
        |peer| {
            let reads = peer.lost.iter().filter(|lost| !lost.writes);
            let slowest = reads.map(|lost| lost.slowest_seconds).reduce(f64::max)?;
            Some((slowest, short(slowest)))
        },
    ),
    right("stale reads after a write, per 100", Better::Low, |peer| {
        let memory = peer.memory.as_ref()?;
        percent(memory.stale, memory.reads)
    }),
    right("writes swallowed, per 100", Better::Low, |peer| {
        let memory = peer.memory.as_ref()?;
        percent(memory.swallowed, memory.writes)
    }),
    right(
        "executions of 64 identical reads at once",
        Better::Low,
        |peer| {
            let runs = peer.stampede.as_ref()?.executed;
            Some((runs as f64, runs.to_string()))
        },
    ),
    right(
        "healthy calls refused beside a tool that fails, per 100: isError",
        Better::Low,
        |peer| blocked(peer, "isError"),
    ),
    right("the same: JSON-RPC error", Better::Low, |peer| {
        blocked(peer, "JSON-RPC -32603")
    }),
    right("the same: HTTP 503", Better::Low, |peer| {
        blocked(peer, "HTTP 503")
    }),
    right("the same: connection dropped", Better::Low, |peer| {
        blocked(peer, "connection dropped")
    }),
    right(
        "hints lost or changed on the hop, per 100",
        Better::Low,
        |peer| {
            let hints = peer.hints.as_ref()?;
            percent(hints.declared - hints.kept + hints.changed, hints.declared)
        },
    ),
    right(
        "upstream back: seconds to the first answer",
        Better::Low,
        |peer| {
            let recovery = peer.recovery.as_ref()?;
            Some(match recovery.first_answer_seconds {
                Some(seconds) => (seconds, format!("{seconds:.2}")),
                None => (f64::INFINITY, format!("> {:.0}", recovery.waited_seconds)),
            })
        },
    ),
    right(
        "upstream back: new callers' calls failing, per 100",
        Better::Low,
        |peer| {
            let recovery = peer.recovery.as_ref()?;
            percent(recovery.errors_afterwards, recovery.afterwards)
        },
    ),
    fast("uncached, 1 caller: calls/s", Better::High, |peer| {
        rate(cell(peer, 1, false)?)
    }),
    fast("— of direct", Better::High, |peer| {
        share(cell(peer, 1, false)?)
    }),
    fast("— added ms, p50", Better::Low, |peer| {
        added(cell(peer, 1, false)?, 0.5)
    }),
    fast("— added ms, p99", Better::Low, |peer| {
        added(cell(peer, 1, false)?, 0.99)
    }),
    fast("— CPU µs a call", Better::Low, |peer| {
        cpu(cell(peer, 1, false)?)
    }),
    fast("uncached, 32 callers: calls/s", Better::High, |peer| {
        rate(cell(peer, 32, false)?)
    }),
    fast("— of direct", Better::High, |peer| {
        share(cell(peer, 32, false)?)
    }),
    fast("— added ms, p50", Better::Low, |peer| {
        added(cell(peer, 32, false)?, 0.5)
    }),
    fast("— added ms, p99", Better::Low, |peer| {
        added(cell(peer, 32, false)?, 0.99)
    }),
    fast("— CPU µs a call", Better::Low, |peer| {
        cpu(cell(peer, 32, false)?)
    }),
    fast("cached, 1 caller: calls/s", Better::High, |peer| {
        rate(cell(peer, 1, true)?)
    }),
    fast("— of direct", Better::High, |peer| {
        share(cell(peer, 1, true)?)
    }),
    fast("— CPU µs a call", Better::Low, |peer| {
        cpu(cell(peer, 1, true)?)
    }),
    fast("cached, 32 callers: calls/s", Better::High, |peer| {
        rate(cell(peer, 32, true)?)
    }),
    fast("— of direct", Better::High, |peer| {
        share(cell(peer, 32, true)?)
    }),
    fast("— answered from the cache", Better::High, |peer| {
        let hits = cell(peer, 32, true)?.hits * 100.0;
        Some((hits, format!("{hits:.0} %")))
    }),
    fast("— CPU µs a call", Better::Low, |peer| {
        cpu(cell(peer, 32, true)?)
    }),
    fast("memory after all that, MiB", Better::Low, |peer| {
        let mib = peer.speed.last()?.summary.rss_mib?;
        Some((mib, format!("{mib:.0}")))
    }),
    fast("start to first listing, s", Better::Low, |peer| {
        let seconds = peer.start_seconds?;
        Some((seconds, format!("{seconds:.2}")))
    }),
];

fn per_call(peer: &PeerFigures, writes: bool, of: fn(&crate::figures::Lost) -> u64) -> Option<f64> {
    let rows = || peer.lost.iter().filter(|lost| lost.writes == writes);
    let intended: u64 = rows().map(|lost| lost.intended).sum();
    (intended > 0).then(|| rows().map(of).sum::<u64>() as f64 / intended as f64)
}

fn percent(part: u64, whole: u64) -> Option<(f64, String)> {
    let share = (whole > 0).then(|| part as f64 / whole as f64 * 100.0)?;
    Some((share, short(share)))
}

fn blocked(peer: &PeerFigures, way: &str) -> Option<(f64, String)> {
    let found = peer.neighbours.iter().find(|found| found.way == way)?;
    percent(found.blocked, found.healthy_calls)
}

pub(crate) fn cell(peer: &PeerFigures, callers: usize, cached: bool) -> Option<&Speed> {
    let same = |speed: &&Speed| speed.callers == callers && speed.cached == cached;
    peer.speed.iter().find(same)
}

fn rate(speed: &Speed) -> Option<(f64, String)> {
    let rate = speed.summary.calls_per_second;
    Some((rate, thousands(rate)))
}

fn share(speed: &Speed) -> Option<(f64, String)> {
    let share = speed.summary.share_of_direct * 100.0;
    Some((share, format!("{} %", short(share))))
}

fn added(speed: &Speed, share: f64) -> Option<(f64, String)> {
    let summary = &speed.summary;
    let added = if share < 0.9 {
        summary.added_p50_ms
    } else {
        summary.added_p99_ms
    };
    Some((
        added,
        if added.abs() < 10.0 {
            format!("{added:.2}")
        } else {
            thousands(added)
        },
    ))
}

fn cpu(speed: &Speed) -> Option<(f64, String)> {
    let cpu = speed.summary.cpu_us_per_call?;
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
    use crate::figures::Lost;

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
            way: String::new(),
            tool: String::new(),
            writes,
            intended,
            executed: intended + extra,
            extra,
            never: 0,
            errors: 0,
            slowest_seconds: 0.0,
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
    }
}
