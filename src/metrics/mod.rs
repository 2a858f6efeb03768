//! The counters of the layers as metrics, read on each collection.
//!
//! `callward.server_set` and `callward.server` are named by the code that adds servers, and
//! `gen_ai.tool.name` is a tool that is offered: the series of one that is gone end. All other
//! attributes are words of bounded sets. The number of callers is unbounded: no metric has them as
//! attributes.

mod audit;
mod breakers;
mod cache;
mod limits;
mod retry;
mod servers;

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use callward_core::{ReplicaSetId, ServerId, ToolName};
use callward_telemetry::metrics::{
    Series, observe_counter, observe_gauge, observe_seconds, overflow,
};
use callward_telemetry::names;
use callward_telemetry::names::metric::Metric;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::stack::{Inner, Stack};

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
        let watched = Watched {
            meter,
            stack: Arc::downgrade(&self.0),
        };
        audit::observe(&watched);
        breakers::observe(&watched);
        cache::observe(&watched);
        limits::observe(&watched);
        retry::observe(&watched);
        servers::observe(&watched);
    }
}

/// A stack, and the meter that reports it.
struct Watched<'a> {
    meter: &'a Meter,
    stack: Weak<Inner>,
}

impl Watched<'_> {
    fn counter(
        &self,
        metric: Metric,
        read: impl Fn(&Stack, &mut Series<u64>) + Send + Sync + 'static,
    ) {
        observe_counter(self.meter, metric, self.while_it_lives(read));
    }

    fn seconds(
        &self,
        metric: Metric,
        read: impl Fn(&Stack, &mut Series<f64>) + Send + Sync + 'static,
    ) {
        observe_seconds(self.meter, metric, self.while_it_lives(read));
    }

    fn gauge(
        &self,
        metric: Metric,
        read: impl Fn(&Stack, &mut Series<f64>) + Send + Sync + 'static,
    ) {
        observe_gauge(self.meter, metric, self.while_it_lives(read));
    }

    fn while_it_lives<N: 'static>(
        &self,
        read: impl Fn(&Stack, &mut Series<N>) + Send + Sync + 'static,
    ) -> impl Fn(&mut Series<N>) + Send + Sync + 'static {
        let stack = self.stack.clone();
        move |series| {
            if let Some(inner) = stack.upgrade() {
                read(&Stack(inner), series);
            }
        }
    }
}

/// The tools that are offered.
struct Offered(HashSet<(ReplicaSetId, ToolName)>);

impl Offered {
    fn by(stack: &Stack) -> Self {
        let catalogue = stack.catalogue();
        let tools = catalogue.entries().iter().map(|entry| entry.tool());
        Self(
            tools
                .map(|tool| (tool.set().clone(), tool.name().clone()))
                .collect(),
        )
    }

    /// Returns the attributes that name a tool, if it is offered.
    fn named(&self, set: &ReplicaSetId, tool: &ToolName) -> Option<[KeyValue; 2]> {
        let is_offered = self.0.contains(&(set.clone(), tool.clone()));
        is_offered.then(|| [of_tool(tool), of_set(set)])
    }
}

fn of_tool(tool: &ToolName) -> KeyValue {
    KeyValue::new(names::TOOL, tool.to_string())
}

fn of_set(set: &ReplicaSetId) -> KeyValue {
    KeyValue::new(names::SERVER_SET, set.to_string())
}

fn of_server(server: &ServerId) -> KeyValue {
    KeyValue::new(names::SERVER, server.to_string())
}

/// Numbers of calls and of bytes are far below where a float would round them.
fn to_gauge(number: impl TryInto<u32>) -> f64 {
    number.try_into().map_or(f64::INFINITY, f64::from)
}
