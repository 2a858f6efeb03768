//! The counts of the cache.

use callward_cache::Counts;
use callward_telemetry::metrics::{Series, overflow};
use callward_telemetry::names::metric::{self, Metric, label};
use opentelemetry::KeyValue;

use super::{Offered, Watched, of_set, of_tool};
use crate::stack::Stack;

pub(super) fn observe(watched: &Watched<'_>) {
    by_tool(watched, metric::CACHE_LOOKUPS, |counts, tell| {
        tell(counts.hits, Some((label::RESULT, "hit")));
        tell(counts.stale, Some((label::RESULT, "stale")));
        tell(counts.joined, Some((label::RESULT, "joined")));
        tell(counts.misses, Some((label::RESULT, "miss")));
    });
    by_tool(watched, metric::CACHE_INVALIDATIONS, |counts, tell| {
        tell(counts.invalidations, None);
    });
    by_tool(watched, metric::CACHE_RESCUES, |counts, tell| {
        tell(counts.rescued, None);
    });
    by_tool(watched, metric::CACHE_REFRESHES, |counts, tell| {
        tell(counts.refreshes, Some((label::RESULT, "fetched")));
        tell(counts.failed_refreshes, Some((label::RESULT, "failed")));
    });
    by_tool(watched, metric::CACHE_CHECKS, |counts, tell| {
        tell(counts.verified, Some((label::RESULT, "same")));
        tell(counts.differed, Some((label::RESULT, "different")));
    });
    by_tool(watched, metric::CACHE_BYPASSES, |counts, tell| {
        for (reason, count) in counts.bypasses.iter() {
            tell(count, Some((label::REASON, reason.as_str())));
        }
    });
    by_tool(watched, metric::CACHE_STORED, |counts, tell| {
        tell(counts.stored, None);
    });
    by_tool(watched, metric::CACHE_REFUSALS, |counts, tell| {
        for (reason, count) in counts.refusals.iter() {
            tell(count, Some((label::REASON, reason.as_str())));
        }
    });
    watched.seconds(metric::CACHE_SAVED, |stack, series| {
        each(stack, |of, counts| {
            series.add(counts.saved.as_secs_f64(), of.iter().cloned());
        });
    });
    learned(watched);
    store(watched);
}

/// Tools whose lifetime is learned.
fn learned(watched: &Watched<'_>) {
    watched.gauge(metric::CACHE_LIFETIME, |stack, series| {
        for ((set, tool), lifetime) in stack.learned_lifetimes() {
            series.add(
                lifetime.served.as_secs_f64(),
                [of_tool(&tool), of_set(&set)],
            );
        }
    });
    watched.counter(metric::CACHE_REPEATS, |stack, series| {
        let result = |word| KeyValue::new(label::RESULT, word);
        for word in ["same", "different"] {
            series.add(0, [overflow(), result(word)]);
        }
        let learned = stack.learned_lifetimes();
        // all partitions together: the sum does not go back when another one has the most
        for (set, tool, seen) in stack.cache().evidence_by_partition() {
            let of = [of_tool(&tool), of_set(&set)];
            if learned.contains_key(&(set, tool)) {
                let same = seen.repeats.saturating_sub(seen.different);
                for (word, count) in [("same", same), ("different", seen.different)] {
                    series.add(count, of.iter().cloned().chain([result(word)]));
                }
            }
        }
    });
}

/// Receives a count, with its attribute.
type Tell<'a> = dyn FnMut(u64, Option<(&'static str, &'static str)>) + 'a;

fn by_tool(
    watched: &Watched<'_>,
    metric: Metric,
    read: impl Fn(&Counts, &mut Tell<'_>) + Send + Sync + 'static,
) {
    watched.counter(metric, move |stack, series: &mut Series<u64>| {
        each(stack, |of, counts| {
            // of a tool, only the reasons it met: most meet one or two of many
            let is_rest = of.contains(&overflow());
            read(counts, &mut |count, word| {
                let is_reason = word.is_some_and(|(key, _)| key == label::REASON);
                if count > 0 || is_rest || !is_reason {
                    let word = word.map(|(key, word)| KeyValue::new(key, word));
                    series.add(count, of.iter().cloned().chain(word));
                }
            });
        });
    });
}

/// Reports the counts of each tool, with the attributes that name it, and of none, so that each
/// word is there from the start.
fn each(stack: &Stack, mut tell: impl FnMut(&[KeyValue], &Counts)) {
    let offered = Offered::by(stack);
    tell(&[overflow()], &Counts::default());
    for stats in stack.cache().tools() {
        if let Some(of) = offered.named(&stats.set, &stats.tool) {
            tell(&of, &stats.counts);
        }
    }
}

/// The store's counts belong to no tool.
fn store(watched: &Watched<'_>) {
    watched.counter(metric::CACHE_EVICTIONS, |stack, series| {
        for (cause, count) in stack.cache_stats().evictions.iter() {
            series.add(count, [KeyValue::new(label::REASON, cause.as_str())]);
        }
    });
    watched.gauge(metric::CACHE_SIZE, |stack, series| {
        series.add(stack.cache_stats().bytes as f64, []);
    });
    watched.gauge(metric::CACHE_ENTRIES, |stack, series| {
        series.add(stack.cache_stats().entries as f64, []);
    });
    watched.gauge(metric::CACHE_UNSETTLED, |stack, series| {
        series.add(stack.cache().unsettled().len() as f64, []);
    });
}
