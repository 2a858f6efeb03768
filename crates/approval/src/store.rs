//! Where requests are kept.

use std::fmt;
use std::sync::Arc;

use callward_core::BoxFuture;

use crate::{Grant, Key, Request, RequestId, StoreError};

/// How many requests may be pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "each store has to keep both")]
pub struct Bounds {
    /// Of one principal.
    pub of_principal: usize,
    /// In all.
    pub in_all: usize,
}

/// The bound that a request would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "as the bounds")]
pub enum Limit {
    /// That of its principal.
    OfPrincipal,
    /// That of all.
    InAll,
}

/// Whether a new request is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
pub enum Put {
    /// It is stored.
    Added,
    /// It is not: by now the latest request of its key is another one, or its grant has no use
    /// left.
    Changed,
    /// It is not: too many are pending.
    Full(Limit),
}

/// What a store answers, later.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps requests and grants. A change is durable, as far as the store promises, when its future
/// ends.
///
/// Each method is atomic. Futures may be dropped; the change then happens or not, as a whole.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Stores a new request as the latest of its key, if the latest is still `latest` and fewer
    /// than `most` are pending. With a request that a grant approves, a use of the grant is taken;
    /// until it runs, such a request counts among those of all principals.
    fn put(&self, new: Arc<Request>, latest: Option<RequestId>, most: Bounds) -> Stored<'_, Put>;

    /// Returns a request.
    fn get(&self, id: RequestId) -> Stored<'_, Option<Arc<Request>>>;

    /// Returns the latest request of a key.
    fn latest(&self, key: Key) -> Stored<'_, Option<Arc<Request>>>;

    /// Replaces a request by its next revision. Returns `false` if the stored one is not the
    /// revision before.
    fn replace(&self, next: Arc<Request>) -> Stored<'_, bool>;

    /// Lists all requests, the oldest first.
    fn list(&self) -> Stored<'_, Vec<Arc<Request>>>;

    /// Removes requests that ended before this time, and of the others that ended all but the
    /// latest `most`.
    fn remove_ended(&self, before_ms: u64, most: usize) -> Stored<'_, ()>;

    /// Stores a new grant. Returns `false` if there are [`Grant::MOST`].
    fn put_grant(&self, new: Arc<Grant>) -> Stored<'_, bool>;

    /// Returns all grants, in no order.
    fn grants(&self) -> Stored<'_, Vec<Arc<Grant>>>;

    /// Removes a grant. Returns `false` if there is none of this name.
    fn remove_grant(&self, id: RequestId) -> Stored<'_, bool>;

    /// Returns `true` if others may change the requests too. Those who wait then look again each
    /// second. Default: `false`.
    fn is_shared(&self) -> bool {
        false
    }
}
