//! The layer, with the limits that all of its services share, and the service.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{Principal, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;

use super::PrincipalLimitConfig;
use super::config::{Counted, LIST, UNKNOWN, of_call};
use super::table::{Permit, Table};
use crate::permitted::Permitted;

/// Puts a [`PrincipalLimit`] around a service. Its clones, and all services it makes, share its
/// limits.
///
/// ```
/// use std::num::NonZeroU32;
///
/// use callward_limit::{PrincipalLimitConfig, PrincipalLimitLayer};
/// use callward_testkit::MockService;
/// use tower::ServiceBuilder;
///
/// let mut limits = PrincipalLimitConfig::default();
/// limits.calls_per_minute = NonZeroU32::new(600);
/// limits.destructive_per_minute = NonZeroU32::new(10);
/// let service = ServiceBuilder::new()
///     .layer(PrincipalLimitLayer::new(limits))
///     .service(MockService::counting());
/// ```
#[derive(Debug, Clone, Default)]
pub struct PrincipalLimitLayer(Option<Arc<Table>>);

impl PrincipalLimitLayer {
    /// Makes the layer.
    #[must_use]
    pub fn new(config: PrincipalLimitConfig) -> Self {
        let is_off = config == PrincipalLimitConfig::default();
        Self((!is_off).then(|| Arc::new(Table::new(&config))))
    }

    /// Counts a list for a principal: a request that asks what the server is or offers. Code that
    /// answers it asks here first.
    ///
    /// # Errors
    ///
    /// [`RateLimited`](callward_core::ErrorKind::RateLimited) if the limit is reached.
    pub fn admit_list(&self, principal: &Principal) -> Result<(), ToolError> {
        self.admit(principal, LIST)
    }

    /// Counts a call of a principal that is refused before it has a plan, such as one of an unknown
    /// tool. Code that refuses it asks here first.
    ///
    /// # Errors
    ///
    /// [`RateLimited`](callward_core::ErrorKind::RateLimited) if the limit of all calls is reached.
    pub fn admit_unknown(&self, principal: &Principal) -> Result<(), ToolError> {
        self.admit(principal, UNKNOWN)
    }

    fn admit(&self, principal: &Principal, counted: Counted) -> Result<(), ToolError> {
        let table = self.0.as_ref();
        table.map_or(Ok(()), |table| table.admit(principal, counted).map(drop))
    }

    /// Returns how many requests each limit refused, by the limit's name. Empty without limits.
    #[must_use]
    pub fn refusals(&self) -> Vec<(&'static str, u64)> {
        let limits = self.0.iter().flat_map(|table| &table.limits);
        limits
            .map(|limit| (limit.name, limit.refused.load(Ordering::Relaxed)))
            .collect()
    }
}

impl<S> Layer<S> for PrincipalLimitLayer {
    type Service = PrincipalLimit<S>;

    fn layer(&self, inner: S) -> PrincipalLimit<S> {
        PrincipalLimit {
            inner,
            table: self.0.clone(),
        }
    }
}

/// Refuses calls of a principal that has reached one of its limits.
#[derive(Debug, Clone)]
pub struct PrincipalLimit<S> {
    inner: S,
    table: Option<Arc<Table>>,
}

impl<S: ToolService> Service<ToolCall> for PrincipalLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<Permitted<S::Future, Permit>, Ready<Result<ToolOutput, ToolError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let admit = |table: &Arc<Table>| {
            let counted = of_call(call.plan().effect);
            table.admit(&call.caller().principal, counted)
        };
        // lists are metered where a client asks for them: one may be a call for each server
        let is_list = call.tool().definition.method.is_list();
        let table = self.table.as_ref().filter(|_| !is_list);
        match table.map(admit).transpose() {
            Ok(permit) => Either::Left(Permitted::new(self.inner.call(call), permit)),
            Err(error) => {
                if let Some(record) = &call.record {
                    let why = || error.message.clone();
                    record.decided(|| Decision::new(Stage::Limit, Verdict::Refused, why()));
                }
                Either::Right(ready(Err(error)))
            }
        }
    }
}
