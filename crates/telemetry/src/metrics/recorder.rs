//! A histogram with its attributes.

use opentelemetry::KeyValue;
use opentelemetry::metrics::Histogram;

/// Records values of one series.
///
/// With the feature `bound` the SDK looks the series up once, and a value costs a short lock. Without,
/// it is looked up for each: whoever installs an SDK without bound instruments would lose all values.
pub(super) struct Recorder {
    #[cfg(feature = "bound")]
    bound: opentelemetry::metrics::BoundHistogram<f64>,
    #[cfg(not(feature = "bound"))]
    histogram: Histogram<f64>,
    #[cfg(not(feature = "bound"))]
    attributes: Box<[KeyValue]>,
}

impl Recorder {
    #[cfg(feature = "bound")]
    pub(super) fn new(histogram: &Histogram<f64>, attributes: &[KeyValue]) -> Self {
        Self {
            bound: histogram.bind(attributes),
        }
    }

    #[cfg(not(feature = "bound"))]
    pub(super) fn new(histogram: &Histogram<f64>, attributes: &[KeyValue]) -> Self {
        Self {
            histogram: histogram.clone(),
            attributes: attributes.into(),
        }
    }

    #[cfg(feature = "bound")]
    pub(super) fn record(&self, seconds: f64) {
        self.bound.record(seconds);
    }

    #[cfg(not(feature = "bound"))]
    pub(super) fn record(&self, seconds: f64) {
        self.histogram.record(seconds, &self.attributes);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
