//! Metrics that are read when a reader collects.

use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrumentBuilder, Meter};

use crate::names;
use crate::names::metric::{Metric, label};

/// Adds a counter whose values `fill` reads when a reader collects.
///
/// ```
/// use opentelemetry::KeyValue;
/// use opentelemetry::metrics::Meter;
/// use callward_telemetry::metrics::observe_counter;
/// use callward_telemetry::names::metric::{Kind, Metric};
///
/// const LINES: Metric = Metric {
///     name: "mine.lines",
///     kind: Kind::Counter,
///     unit: "{line}",
///     description: "Lines written",
///     labels: &["mine.file"],
/// };
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
    observed(meter.u64_observable_counter(metric.name), metric, fill).build();
}

/// Adds a counter of seconds, as [`observe_counter`] does.
pub fn observe_seconds(
    meter: &Meter,
    metric: Metric,
    fill: impl Fn(&mut Series<f64>) + Send + Sync + 'static,
) {
    observed(meter.f64_observable_counter(metric.name), metric, fill).build();
}

/// Adds a gauge whose values `fill` reads when a reader collects.
pub fn observe_gauge(
    meter: &Meter,
    metric: Metric,
    fill: impl Fn(&mut Series<f64>) + Send + Sync + 'static,
) {
    observed(meter.f64_observable_gauge(metric.name), metric, fill).build();
}

fn observed<'a, I, N: AddAssign + Copy + Default + 'static>(
    builder: AsyncInstrumentBuilder<'a, I, N>,
    metric: Metric,
    fill: impl Fn(&mut Series<N>) + Send + Sync + 'static,
) -> AsyncInstrumentBuilder<'a, I, N> {
    builder
        .with_unit(metric.unit)
        .with_description(metric.description)
        .with_callback(move |observer| {
            let mut series = Series::new();
            fill(&mut series);
            for (attributes, value) in series.0 {
                observer.observe(value, &attributes);
            }
        })
}

/// The values of one metric: what a callback of [`observe_counter`] and its like fills.
///
/// Values with the same attributes are one series, their sum. Beyond [`MAX`](Self::MAX) series,
/// values are summed in series that have `otel.metric.overflow` in place of tool, set and server.
/// Which series those are may change as tools come and go.
pub struct Series<N>(HashMap<Vec<KeyValue>, N>);

impl<N> Series<N> {
    /// How many series a metric may have. The SDK's own limit is 2,000; it is never reached, as the
    /// SDK would keep the last value beyond it, not the sum.
    pub const MAX: usize = 1_900;
}

impl<N: AddAssign + Copy + Default> Series<N> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    /// Adds a value. The attributes of one series must always come in the same order.
    pub fn add(&mut self, value: N, attributes: impl IntoIterator<Item = KeyValue>) {
        let mut attributes = Vec::from_iter(attributes);
        if self.0.len() >= Self::MAX && !self.0.contains_key(&attributes) {
            attributes = without_names(attributes);
        }
        *self.0.entry(attributes).or_default() += value;
    }
}

impl<N> fmt::Debug for Series<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series")
            .field("series", &self.0.len())
            .finish_non_exhaustive()
    }
}

/// Returns the attribute of the series that sums what exceeds a limit.
///
/// A counter that adds 0 to it at the start exists before its first increment.
#[must_use]
pub fn overflow() -> KeyValue {
    KeyValue::new(label::OVERFLOW, true)
}

/// Keeps the attributes whose values are few, so that the overflow is bounded too.
fn without_names(attributes: Vec<KeyValue>) -> Vec<KeyValue> {
    let is_name = |attribute: &KeyValue| {
        let names = [names::TOOL, names::SERVER_SET, names::SERVER];
        names.contains(&attribute.key.as_str()) || attribute.key.as_str() == label::OVERFLOW
    };
    let others = attributes.into_iter().filter(|one| !is_name(one));
    [overflow()].into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_beyond_the_limit_are_summed_by_their_other_attributes() {
        let result = || KeyValue::new(label::RESULT, "hit");
        let mut series = Series::<u64>::new();
        series.add(0, [overflow(), result()]);
        for tool in 0..10_000 {
            let tool = KeyValue::new(names::TOOL, format!("tool_{tool}"));
            series.add(2, [tool.clone(), result()]);
            series.add(1, [tool, result()]);
        }
        assert_eq!(series.0.len(), Series::<u64>::MAX);
        let beyond = 10_000 - (Series::<u64>::MAX as u64 - 1);
        assert_eq!(
            series.0.remove(&vec![overflow(), result()]),
            Some(3 * beyond)
        );
        assert!(series.0.values().all(|value| *value == 3));
    }
}
