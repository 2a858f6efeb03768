//! A server to be added to a replica set, with the service that leads to it.

use std::sync::Arc;

use callward_core::{ServerId, ToolCall, Weight};

use crate::endpoint::Endpoint;
use crate::rule::ExclusionReason;

/// One server of a replica set, and the service that leads to it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Member<S> {
    /// The router's state for the server.
    pub endpoint: Endpoint,
    pub(crate) service: S,
}

impl<S> Member<S> {
    /// Names a server and the service that leads to it, guards included.
    ///
    /// Defaults: weight 50, no categories or capabilities, no zone, a cost factor of 1, always
    /// available.
    pub fn new(server: ServerId, service: S) -> Self {
        Self {
            endpoint: Endpoint::new(server),
            service,
        }
    }

    /// Sets the weight: the server's share of calls, and how far it is trusted with destructive
    /// ones. Weight 0 is a standby: asked when no other server is available. Default: 50.
    pub fn with_weight(mut self, weight: Weight) -> Self {
        self.endpoint.weight = weight;
        self
    }

    /// Sets the categories, such as `caching` or `high-compute`. Default: none.
    pub fn with_categories(mut self, categories: impl IntoIterator<Item: Into<String>>) -> Self {
        self.endpoint.categories = boxed(categories);
        self
    }

    /// Sets what the server can do that others of its set cannot. Default: nothing.
    pub fn with_capabilities(
        mut self,
        capabilities: impl IntoIterator<Item: Into<String>>,
    ) -> Self {
        self.endpoint.capabilities = boxed(capabilities);
        self
    }

    /// Sets the zone, for strategies that look at it. Default: none.
    pub fn with_zone(mut self, zone: impl Into<Arc<str>>) -> Self {
        self.endpoint.zone = Some(zone.into());
        self
    }

    /// Sets what a call costs here, per unit of the tool's `costHint`. Default: 1.
    pub fn with_cost_factor(mut self, factor: f64) -> Self {
        self.endpoint.cost_factor = factor;
        self
    }

    /// Sets the function that decides whether the server is available for a call. The router calls
    /// it while it chooses, so it must neither block nor be slow. Default: it always is.
    pub fn with_gate<G>(mut self, gate: G) -> Self
    where
        G: Fn(&ToolCall) -> Result<(), ExclusionReason> + Send + Sync + 'static,
    {
        self.endpoint.gate = Some(Arc::new(gate));
        self
    }

    /// Returns the server's id.
    #[must_use]
    pub fn server(&self) -> &ServerId {
        self.endpoint.server()
    }
}

fn boxed(words: impl IntoIterator<Item: Into<String>>) -> Arc<[Box<str>]> {
    let words = words.into_iter().map(|word| word.into().into_boxed_str());
    words.collect()
}
