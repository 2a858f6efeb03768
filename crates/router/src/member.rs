//! One server of a replica set, and the service that leads to it.

use std::fmt;
use std::sync::Arc;

use callward_core::{ServerId, ToolCall, Weight};

use crate::endpoint::Endpoint;
use crate::unfit::Unfit;

/// One server of a replica set, and the service that leads to it.
#[derive(Clone)]
pub struct Member<S> {
    endpoint: Endpoint,
    service: S,
}

impl<S> Member<S> {
    /// Names a server and the service that leads to it, guards included.
    ///
    /// Defaults: weight 50, no categories or capabilities, no zone, a cost factor of 1, always fit.
    #[must_use]
    pub fn new(server: ServerId, service: S) -> Self {
        Self {
            endpoint: Endpoint::new(server),
            service,
        }
    }

    /// Sets the weight: the member's share of calls, and how far it is trusted with destructive
    /// ones. Weight 0 is a standby: asked when nobody else can be. Default: 50.
    #[must_use]
    pub fn with_weight(mut self, weight: Weight) -> Self {
        self.endpoint.set_weight(weight);
        self
    }

    /// Sets the categories, such as `caching` or `high-compute`. Default: none.
    #[must_use]
    pub fn with_categories<C>(mut self, categories: impl IntoIterator<Item = C>) -> Self
    where
        C: Into<String>,
    {
        let categories = categories.into_iter().map(Into::into);
        self.endpoint.set_categories(categories);
        self
    }

    /// Sets what the server can do that others of its set cannot. Default: nothing.
    #[must_use]
    pub fn with_capabilities<C>(mut self, capabilities: impl IntoIterator<Item = C>) -> Self
    where
        C: Into<String>,
    {
        let capabilities = capabilities.into_iter().map(Into::into);
        self.endpoint.set_capabilities(capabilities);
        self
    }

    /// Says where the server stands. Default: nowhere.
    #[must_use]
    pub fn with_zone(mut self, zone: impl Into<Arc<str>>) -> Self {
        self.endpoint.set_zone(zone.into());
        self
    }

    /// Sets what a call costs here, for each unit of the tool's `costHint`. Default: 1.
    #[must_use]
    pub fn with_cost_factor(mut self, factor: f64) -> Self {
        self.endpoint.set_cost_factor(factor);
        self
    }

    /// Sets what says whether the server may get a call. Asked while choosing, so it must neither
    /// block nor be slow. Default: it always may.
    #[must_use]
    pub fn with_gate<G>(mut self, gate: G) -> Self
    where
        G: Fn(&ToolCall) -> Result<(), Unfit> + Send + Sync + 'static,
    {
        self.endpoint.set_gate(Arc::new(gate));
        self
    }

    /// Sets what says whether the server is healthy: a [gate](Self::with_gate) that knows no other
    /// reason. Default: it always is.
    #[must_use]
    pub fn with_health<H>(self, health: H) -> Self
    where
        H: Fn(&ToolCall) -> bool + Send + Sync + 'static,
    {
        self.with_gate(move |call| match health(call) {
            true => Ok(()),
            false => Err(Unfit::Unhealthy),
        })
    }

    /// Returns the server's id.
    #[must_use]
    pub fn server(&self) -> &ServerId {
        self.endpoint.server()
    }

    /// Returns what the router knows of the server.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the service that leads to the server.
    #[must_use]
    pub fn service(&self) -> &S {
        &self.service
    }

    pub(crate) fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    pub(crate) const fn from_parts(endpoint: Endpoint, service: S) -> Self {
        Self { endpoint, service }
    }

    pub(crate) fn into_parts(self) -> (Endpoint, S) {
        (self.endpoint, self.service)
    }
}

impl<S> fmt::Debug for Member<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.endpoint, f)
    }
}
