//! What the cache counts, as metrics.
//!
//! Counters carry `tool` and `set` as long as the tool is offered; what tools did that are gone comes
//! together in one series without them. `result` and `reason` are words of bounded sets.

use std::collections::HashSet;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use tollgate::Stack;
use tollgate::cache::Counts;
use tollgate::{ReplicaSetId, ToolName};

/// Adds what is read off the cache when somebody asks.
pub(super) fn observe(meter: &Meter, stack: &Stack) {
    counter(meter, stack, LOOKUPS, |counts, tell| {
        tell(counts.hits, Some(("result", "hit")));
        tell(counts.stale, Some(("result", "stale")));
        tell(counts.joined, Some(("result", "joined")));
        tell(counts.misses, Some(("result", "miss")));
    });
    counter(meter, stack, INVALIDATIONS, |counts, tell| {
        tell(counts.invalidations, None);
    });
    counter(meter, stack, RESCUES, |counts, tell| {
        tell(counts.rescued, None);
    });
    counter(meter, stack, REFRESHES, |counts, tell| {
        tell(counts.refreshes, Some(("result", "fetched")));
        tell(counts.failed_refreshes, Some(("result", "failed")));
    });
    counter(meter, stack, CHECKS, |counts, tell| {
        tell(counts.checks, Some(("result", "clear")));
        tell(counts.unclear_checks, Some(("result", "unclear")));
    });
    counter(meter, stack, BYPASSES, |counts, tell| {
        for (reason, count) in counts.bypasses.iter().filter(|(_, count)| *count > 0) {
            tell(count, Some(("reason", reason.as_str())));
        }
    });
    counter(meter, stack, STORED, |counts, tell| {
        tell(counts.stored, None);
    });
    counter(meter, stack, REFUSALS, |counts, tell| {
        for (reason, count) in counts.refusals.iter().filter(|(_, count)| *count > 0) {
            tell(count, Some(("reason", reason.as_str())));
        }
    });
    saved(meter, stack);
    store(meter, stack);
}

/// A name and what it counts.
type Named = (&'static str, &'static str);

const LOOKUPS: Named = (
    "tollgate_cache_lookups",
    "Calls looked up, by what came of it",
);
const INVALIDATIONS: Named = (
    "tollgate_cache_invalidations",
    "Writes that dropped results",
);
const RESCUES: Named = (
    "tollgate_cache_rescues",
    "Failures answered with the last result, stale",
);
const REFRESHES: Named = (
    "tollgate_cache_refreshes",
    "Calls that fetch a new result for a stale one",
);
const CHECKS: Named = (
    "tollgate_cache_checks",
    "Hits checked by a call in the background",
);
const BYPASSES: Named = (
    "tollgate_cache_bypasses",
    "Calls sent without a look-up, by reason",
);
const STORED: Named = ("tollgate_cache_stored", "Results stored");
const REFUSALS: Named = ("tollgate_cache_refusals", "Results not kept, by reason");

/// Takes a count, with the attribute that tells it from its like.
type Tell<'a> = dyn FnMut(u64, Option<(&'static str, &'static str)>) + 'a;

fn counter(
    meter: &Meter,
    stack: &Stack,
    (name, description): Named,
    read: impl Fn(&Counts, &mut Tell<'_>) + Send + Sync + 'static,
) {
    let stack = stack.clone();
    meter
        .u64_observable_counter(name)
        .with_description(description)
        .with_callback(move |observer| {
            for (of, counts) in by_tool(&stack) {
                read(&counts, &mut |count, attribute| {
                    let attribute = attribute.map(|(key, word)| KeyValue::new(key, word));
                    let attributes: Vec<_> = of.iter().cloned().chain(attribute).collect();
                    observer.observe(count, &attributes);
                });
            }
        })
        .build();
}

fn saved(meter: &Meter, stack: &Stack) {
    let stack = stack.clone();
    meter
        .f64_observable_counter("tollgate_cache_saved")
        .with_unit("s")
        .with_description("Upstream time that was not spent")
        .with_callback(move |observer| {
            for (of, counts) in by_tool(&stack) {
                observer.observe(counts.saved.as_secs_f64(), &of);
            }
        })
        .build();
}

/// What the store does is no tool's own.
fn store(meter: &Meter, stack: &Stack) {
    let dropped = stack.clone();
    meter
        .u64_observable_counter("tollgate_cache_evictions")
        .with_description("Results dropped, by cause")
        .with_callback(move |observer| {
            for (cause, count) in dropped.cache_stats().evictions.iter() {
                observer.observe(count, &[KeyValue::new("reason", cause.as_str())]);
            }
        })
        .build();
    let bytes = stack.clone();
    meter
        .u64_observable_gauge("tollgate_cache_bytes")
        .with_description("Size of what the cache holds")
        .with_callback(move |observer| observer.observe(bytes.cache_stats().bytes, &[]))
        .build();
    let entries = stack.clone();
    meter
        .u64_observable_gauge("tollgate_cache_entries")
        .with_description("Results the cache holds")
        .with_callback(move |observer| observer.observe(entries.cache_stats().entries, &[]))
        .build();
}

/// Returns the counts of each tool that is offered, with its attributes, and of the rest together.
fn by_tool(stack: &Stack) -> Vec<(Vec<KeyValue>, Counts)> {
    let catalogue = stack.catalogue();
    let offered: HashSet<(&ReplicaSetId, &ToolName)> = catalogue
        .entries()
        .iter()
        .map(|entry| (entry.tool().set(), entry.tool().name()))
        .collect();
    let mut rest = Counts::default();
    let mut all = Vec::new();
    for stats in stack.cache().tools() {
        if offered.contains(&(&stats.set, &stats.tool)) {
            let attributes = vec![
                KeyValue::new("tool", stats.tool.to_string()),
                KeyValue::new("set", stats.set.to_string()),
            ];
            all.push((attributes, stats.counts));
        } else {
            rest += stats.counts;
        }
    }
    all.push((Vec::new(), rest));
    all
}
