//! The outcome of audit records.

use callward_telemetry::names::metric::{self, label};
use opentelemetry::KeyValue;

use super::Watched;

/// Without a log there are no figures.
pub(super) fn observe(watched: &Watched<'_>) {
    watched.counter(metric::AUDIT_RECORDS, |stack, series| {
        let Some(stats) = stack.audit().map(|log| log.stats()) else {
            return;
        };
        for (result, count) in [
            ("written", stats.written),
            ("dropped", stats.dropped),
            ("failed", stats.failed),
            ("suppressed", stats.suppressed),
        ] {
            series.add(count, [KeyValue::new(label::RESULT, result)]);
        }
    });
    watched.counter(metric::AUDIT_REFUSED_CALLS, |stack, series| {
        if let Some(log) = stack.audit() {
            series.add(log.stats().refused_calls, []);
        }
    });
    watched.gauge(metric::AUDIT_FAILING, |stack, series| {
        if let Some(log) = stack.audit() {
            let failing = u8::from(log.stats().is_failing);
            series.add(f64::from(failing), []);
        }
    });
}
