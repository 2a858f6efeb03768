//! The counters of the layers as metrics, read on each collection.
//!
//! `callward.server_set` and `callward.server` are named by the code that adds servers, and
//! `gen_ai.tool.name` is a tool that is offered: the series of one that is gone end. All other
//! attributes are words of bounded sets. The number of callers is unbounded: no metric has them as
//! attributes.

mod cache;
mod layers;

use std::sync::Arc;

use callward_core::{ReplicaSetId, ToolName};
use callward_registry::Catalogue;
use callward_telemetry::metrics::{Series, observe_counter, observe_gauge, observe_seconds};
use callward_telemetry::metrics::{of_server, of_set, of_tool};
use callward_telemetry::names::metric::{self, Kind, Metric};
use callward_telemetry::{Contents, Metrics, Sampling};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::builder::StackBuilder;
use crate::stack::Stack;

/// A value of a metric, with the word of the metric's last label; no word, no label.
type Value = (Metric, &'static str, u64);

/// Takes values, with the attributes of what they are about.
type Visit<'a> = dyn FnMut(&[KeyValue], &[Value]) + 'a;

type Read = fn(&Stack, &mut Visit<'_>);

/// What reads the values of a metric, by how its name begins: the first that fits.
const SOURCES: &[(&str, Read)] = &[
    #[cfg(feature = "audit")]
    ("callward.audit.", layers::audit),
    ("callward.breaker.", layers::breakers),
    ("callward.cache.repeats", cache::repeats),
    ("callward.cache.", cache::counts),
    ("callward.discovery.", layers::servers),
    ("callward.hedges.", layers::failures),
    ("callward.loop_guard.", layers::failures),
    ("callward.rate_limit.", layers::rates),
    ("callward.retry.", layers::failures),
    ("callward.router.", layers::servers),
    ("callward.server.", layers::servers),
];

impl StackBuilder {
    /// Adds metrics. Default: none are taken.
    pub fn metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.call_span = self.call_span.with_metrics(metrics);
        self
    }

    /// Sets which calls are traced. It is decided before a span is built. Default:
    /// [`Sampling::always`], so that the subscriber of `tracing` decides.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.call_span = self.call_span.with_sampling(sampling);
        self
    }

    /// Sets which contents of calls are written into their spans. Default: none.
    pub fn span_contents(mut self, contents: Contents) -> Self {
        self.call_span = self.call_span.with_contents(contents);
        self
    }
}

impl Stack {
    /// Adds all that the layers count to a meter: cache, retry, hedges, loop guard, limits,
    /// breakers, router, discovery, audit log. What is measured of each call comes from the
    /// [`Metrics`](crate::telemetry::Metrics) that the builder was given; the two are disjoint.
    ///
    /// It adds no work to calls: the layers count anyway, and the meter's reader reads the
    /// counters. Call it once for each stack and meter. The meter does not keep the stack alive,
    /// and reports nothing once the stack is dropped.
    ///
    /// All names are in [`names::metric`](crate::telemetry::names::metric).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use opentelemetry::metrics::Meter;
    /// use callward::Stack;
    /// use callward::telemetry::Metrics;
    ///
    /// async fn start(meter: &Meter) -> Result<Stack, callward::BuildError> {
    ///     let metrics = Arc::new(Metrics::new(meter));
    ///     let stack = Stack::builder().metrics(metrics).build().await?;
    ///     stack.observe(meter);
    ///     Ok(stack)
    /// }
    /// ```
    pub fn observe(&self, meter: &Meter) {
        for metric in metric::ALL {
            let begins = |(name, _): &&(&str, Read)| metric.name.starts_with(name);
            let Some((_, read)) = SOURCES.iter().find(begins) else {
                continue;
            };
            match (metric.kind, metric.unit) {
                // values below are numbers
                (_, "s") => {}
                (Kind::Counter, _) => {
                    let read = self.while_it_lives(|stack, series| {
                        visit(stack, *read, metric, |value, of| series.add(value, of));
                    });
                    observe_counter(meter, *metric, read);
                }
                _ => {
                    let read = self.while_it_lives(|stack, series| {
                        let mut add = |value, of| series.add(value as f64, of);
                        visit(stack, *read, metric, &mut add);
                    });
                    observe_gauge(meter, *metric, read);
                }
            }
        }
        let lifetimes = self.while_it_lives(cache::lifetimes);
        observe_gauge(meter, metric::CACHE_LIFETIME, lifetimes);
        let saved = self.while_it_lives(cache::saved);
        observe_seconds(meter, metric::CACHE_SAVED, saved);
    }

    fn while_it_lives<N: 'static>(
        &self,
        read: impl Fn(&Self, &mut Series<N>) + Send + Sync + 'static,
    ) -> impl Fn(&mut Series<N>) + Send + Sync + 'static {
        let stack = Arc::downgrade(&self.0);
        move |series| {
            if let Some(inner) = stack.upgrade() {
                read(&Self(inner), series);
            }
        }
    }
}

/// Reads the values of one metric.
fn visit(stack: &Stack, read: Read, metric: &Metric, mut add: impl FnMut(u64, Vec<KeyValue>)) {
    read(stack, &mut |of, values| {
        for (_, word, value) in values.iter().filter(|(of, ..)| of == metric) {
            let label = metric.labels.last().filter(|_| !word.is_empty());
            let word = label.map(|label| KeyValue::new(*label, *word));
            add(*value, of.iter().cloned().chain(word).collect());
        }
    });
}

/// Returns the attributes that name a tool, if it is offered.
fn offered(catalogue: &Catalogue, set: &ReplicaSetId, tool: &ToolName) -> Option<[KeyValue; 2]> {
    catalogue.find_any(&format!("{set}.{tool}"))?;
    Some([of_tool(tool), of_set(set)])
}
