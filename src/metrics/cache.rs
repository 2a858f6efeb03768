//! The values of the cache.

use callward_cache::Counts;
use callward_telemetry::metrics::{Series, overflow};
use callward_telemetry::names::metric;
use opentelemetry::KeyValue;

use super::{Visit, of_set, of_tool, offered};
use crate::stack::Stack;

/// The counts of each tool and of the store.
pub(super) fn counts(stack: &Stack, visit: &mut Visit<'_>) {
    store(stack, visit);
    each(stack, |of, counts| {
        let values = [
            (metric::CACHE_LOOKUPS, "hit", counts.hits),
            (metric::CACHE_LOOKUPS, "stale", counts.stale),
            (metric::CACHE_LOOKUPS, "joined", counts.joined),
            (metric::CACHE_LOOKUPS, "miss", counts.misses),
            (metric::CACHE_INVALIDATIONS, "", counts.invalidations),
            (metric::CACHE_RESCUES, "", counts.rescued),
            (metric::CACHE_REFRESHES, "fetched", counts.refreshes),
            (metric::CACHE_REFRESHES, "failed", counts.failed_refreshes),
            (metric::CACHE_CHECKS, "same", counts.verified),
            (metric::CACHE_CHECKS, "different", counts.differed),
            (metric::CACHE_STORED, "", counts.stored),
        ];
        visit(of, &values);
        // of a tool, only the reasons it met: most meet one or two of many
        let is_shown = |count| count > 0 || of.contains(&overflow());
        for (reason, count) in counts.bypasses.iter().filter(|(_, count)| is_shown(*count)) {
            visit(of, &[(metric::CACHE_BYPASSES, reason.as_str(), count)]);
        }
        for (reason, count) in counts.refusals.iter().filter(|(_, count)| is_shown(*count)) {
            visit(of, &[(metric::CACHE_REFUSALS, reason.as_str(), count)]);
        }
    });
}

/// Reports the counts of each tool, with the attributes that name it, and of none, so that each
/// word is there from the start.
fn each(stack: &Stack, mut report: impl FnMut(&[KeyValue], &Counts)) {
    let catalogue = stack.catalogue();
    report(&[overflow()], &Counts::default());
    for stats in stack.cache().tools() {
        if let Some(of) = offered(&catalogue, &stats.set, &stats.tool) {
            report(&of, &stats.counts);
        }
    }
}

pub(super) fn saved(stack: &Stack, series: &mut Series<f64>) {
    each(stack, |of, counts| {
        series.add(counts.saved.as_secs_f64(), of.iter().cloned());
    });
}

pub(super) fn lifetimes(stack: &Stack, series: &mut Series<f64>) {
    for ((set, tool), lifetime) in stack.learned_lifetimes() {
        let of = [of_tool(&tool), of_set(&set)];
        series.add(lifetime.served.as_secs_f64(), of);
    }
}

/// Repeated executions of the tools whose lifetime is learned.
pub(super) fn repeats(stack: &Stack, visit: &mut Visit<'_>) {
    let values = |same, different| {
        [
            (metric::CACHE_REPEATS, "same", same),
            (metric::CACHE_REPEATS, "different", different),
        ]
    };
    visit(&[overflow()], &values(0, 0));
    let learned = stack.learned_lifetimes();
    // all partitions together: the sum does not go back when another one has the most
    for (set, tool, seen) in stack.cache().evidence_by_partition() {
        let of = [of_tool(&tool), of_set(&set)];
        if learned.contains_key(&(set, tool)) {
            let same = seen.repeats.saturating_sub(seen.different);
            visit(&of, &values(same, seen.different));
        }
    }
}

/// The store's counts belong to no tool.
fn store(stack: &Stack, visit: &mut Visit<'_>) {
    let stats = stack.cache().stats();
    let unsettled = stack.cache().unsettled().len();
    let values = [
        (metric::CACHE_SIZE, "", stats.bytes),
        (metric::CACHE_ENTRIES, "", stats.entries),
        (metric::CACHE_UNSETTLED, "", unsettled as u64),
    ];
    visit(&[], &values);
    for (cause, count) in stats.evictions.iter() {
        visit(&[], &[(metric::CACHE_EVICTIONS, cause.as_str(), count)]);
    }
}
