//! From the description of a metric to an instrument.

use std::sync::Mutex;
use std::sync::PoisonError;

use opentelemetry::metrics::{AsyncInstrumentBuilder, Histogram, Meter};

use super::series::{Number, Series, Shown};
use crate::names::metric::Metric;

/// Adds a counter that is read off whatever counts, when somebody asks.
///
/// ```
/// use opentelemetry::KeyValue;
/// use opentelemetry::metrics::Meter;
/// use callward_telemetry::metrics::observe_counter;
/// use callward_telemetry::names::metric::{Kind, Metric};
///
/// const LINES: Metric = Metric::new("mine.lines", Kind::Counter, "{line}", "Lines written");
///
/// fn observe(meter: &Meter, written: impl Fn() -> u64 + Send + Sync + 'static) {
///     observe_counter(meter, LINES, move |lines| {
///         lines.add(written(), [KeyValue::new("mine.file", "a")]);
///     });
/// }
/// ```
pub fn observe_counter(
    meter: &Meter,
    metric: Metric,
    fill: impl Fn(&mut Series<u64>) + Send + Sync + 'static,
) {
    let builder = meter.u64_observable_counter(metric.name);
    observed(builder, metric, Shown::counter(), fill).build();
}

/// Does as [`observe_counter`] does, for a counter of seconds.
pub fn observe_seconds(
    meter: &Meter,
    metric: Metric,
    fill: impl Fn(&mut Series<f64>) + Send + Sync + 'static,
) {
    let builder = meter.f64_observable_counter(metric.name);
    observed(builder, metric, Shown::counter(), fill).build();
}

/// Adds a gauge that is read off whatever it is about, when somebody asks.
pub fn observe_gauge(
    meter: &Meter,
    metric: Metric,
    fill: impl Fn(&mut Series<f64>) + Send + Sync + 'static,
) {
    let builder = meter.f64_observable_gauge(metric.name);
    observed(builder, metric, Shown::gauge(), fill).build();
}

/// Describes an instrument, and has what `fill` says told of it, as much of that as is to be shown.
fn observed<'a, I, N: Number>(
    builder: AsyncInstrumentBuilder<'a, I, N>,
    metric: Metric,
    shown: Shown<N>,
    fill: impl Fn(&mut Series<N>) + Send + Sync + 'static,
) -> AsyncInstrumentBuilder<'a, I, N> {
    let shown = Mutex::new(shown);
    builder
        .with_unit(metric.unit)
        .with_description(metric.description)
        .with_callback(move |observer| {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.tell(&fill, observer);
        })
}

/// Makes a histogram with these upper bounds.
pub(crate) fn histogram(meter: &Meter, metric: Metric, bounds: &[f64]) -> Histogram<f64> {
    meter
        .f64_histogram(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .with_boundaries(bounds.to_vec())
        .build()
}
