//! What became of audit records, as metrics.

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use tollgate::Stack;

use super::resilience::{counter, gauge};

/// Adds what is read off the log when somebody asks. Without a log there is nothing.
pub(super) fn observe(meter: &Meter, stack: &Stack) {
    if stack.audit().is_none() {
        return;
    }
    let records = (
        "tollgate_audit_records",
        "Audit records, by what became of them",
    );
    counter(meter, stack, records, |stack, observer| {
        let Some(stats) = stack.audit().map(|log| log.stats()) else {
            return;
        };
        for (result, count) in [
            ("written", stats.written),
            ("dropped", stats.dropped),
            ("failed", stats.failed),
            ("suppressed", stats.suppressed),
        ] {
            observer.observe(count, &[KeyValue::new("result", result)]);
        }
    });
    let refused = (
        "tollgate_audit_refused_calls",
        "Calls that were refused because their audit record could not have been written",
    );
    counter(meter, stack, refused, |stack, observer| {
        let refused = stack.audit().map(|log| log.stats().refused_calls);
        observer.observe(refused.unwrap_or_default(), &[]);
    });
    let failing = (
        "tollgate_audit_failing",
        "1 while the audit log cannot be written",
    );
    gauge(meter, stack, failing, |stack, observer| {
        let failing = stack.audit().is_some_and(|log| log.stats().is_failing);
        observer.observe(failing.into(), &[]);
    });
}
