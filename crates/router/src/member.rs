//! One server of a replica set: what the router knows about it, and what it counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_core::{ServerId, ToolCall};

type Health = dyn Fn(&ToolCall) -> bool + Send + Sync;

/// One server of a replica set.
///
/// Clones share the count of calls in flight. So do members of the same server id when a set is
/// updated.
#[derive(Clone)]
pub struct Member<S> {
    server: ServerId,
    weight: u32,
    categories: Vec<String>,
    service: S,
    health: Option<Arc<Health>>,
    in_flight: Arc<AtomicUsize>,
}

impl<S> Member<S> {
    /// The weight of a member that is given none: heavy enough for destructive calls.
    pub const DEFAULT_WEIGHT: u32 = 100;

    /// Names a server and the service that leads to it, guards included.
    ///
    /// Defaults: weight 100, no categories, always healthy.
    #[must_use]
    pub fn new(server: ServerId, service: S) -> Self {
        Self {
            server,
            weight: Self::DEFAULT_WEIGHT,
            categories: Vec::new(),
            service,
            health: None,
            in_flight: Arc::default(),
        }
    }

    /// Sets the weight: the member's share of calls, and how far it is trusted with destructive
    /// ones. Weight 0 is a standby: asked when nobody else can be. Default: 100.
    #[must_use]
    pub fn with_weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Sets the categories, such as `caching` or `high-compute`. Default: none.
    #[must_use]
    pub fn with_categories<C>(mut self, categories: impl IntoIterator<Item = C>) -> Self
    where
        C: Into<String>,
    {
        self.categories = categories.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what says whether the server is fit for a call. Asked while choosing, so it must
    /// neither block nor be slow. Default: always.
    #[must_use]
    pub fn with_health<H>(mut self, health: H) -> Self
    where
        H: Fn(&ToolCall) -> bool + Send + Sync + 'static,
    {
        self.health = Some(Arc::new(health));
        self
    }

    /// Returns the server's id.
    #[must_use]
    pub fn server(&self) -> &ServerId {
        &self.server
    }

    /// Returns the weight.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Returns the categories.
    #[must_use]
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// Returns the service that leads to the server.
    #[must_use]
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Returns how many calls the router has given to this server that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Says whether the server is fit for this call.
    #[must_use]
    pub fn is_healthy(&self, call: &ToolCall) -> bool {
        self.health.as_ref().is_none_or(|health| health(call))
    }

    /// Says whether the member is in one of these categories.
    pub(crate) fn is_in(&self, categories: &[&'static str]) -> bool {
        self.categories
            .iter()
            .any(|own| categories.contains(&own.as_str()))
    }

    /// Counts one call until the guard is dropped.
    pub(crate) fn begin(&self) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.in_flight.clone())
    }

    /// Counts on where another member of the same server stopped.
    pub(crate) fn continue_from(&mut self, previous: &Self) {
        self.in_flight = previous.in_flight.clone();
    }
}

impl<S> fmt::Debug for Member<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("server", &self.server)
            .field("weight", &self.weight)
            .field("categories", &self.categories)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

/// One call in flight: counted until dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
