//! What the tests share: calls, decisions, and a store that can fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callward_approval::{
    APPROVAL_META, Approval, ApprovalConfig, ApprovalLayer, Approvals, Bounds, Decision, Grant,
    Key, LocalStore, Put, Request, RequestId, State, Store, StoreError,
};
use callward_core::{BoxFuture, Caller, Principal, Tool, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, tool};
use serde_json::Value;
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

pub(crate) type Output = Result<ToolOutput, ToolError>;

pub(crate) fn wipe() -> Arc<Tool> {
    tool("wipe").destructive().build()
}

pub(crate) fn by(principal: &str) -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new(principal)))
}

pub(crate) fn call(arguments: &str) -> ToolCall {
    ToolCall::new(wipe(), arguments.to_owned()).with_caller(by("ada"))
}

pub(crate) fn decision(approves: bool, note: Option<&str>) -> Decision {
    Decision {
        approves,
        by: Principal::new("ops"),
        roles: Vec::new(),
        channel: "cli".to_owned(),
        note: note.map(ToOwned::to_owned),
    }
}

/// Lets everything run that can.
pub(crate) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// What the `_meta` of the answer says of the request.
pub(crate) fn approval(output: &Output) -> Value {
    let output = output.as_ref().unwrap();
    assert!(output.is_error());
    let body: Value = serde_json::from_slice(output.body()).unwrap();
    body["_meta"][APPROVAL_META].clone()
}

/// A service under the layer, its server, and the requests.
pub(crate) struct Bed {
    pub(crate) approvals: Approvals,
    pub(crate) server: MockService,
    pub(crate) service: Approval<MockService>,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        Self::with(LocalStore::default(), MockService::counting()).await
    }

    pub(crate) async fn with(store: impl Store, server: MockService) -> Self {
        let approvals = Approvals::open(store, ApprovalConfig::default())
            .await
            .unwrap();
        let service = ApprovalLayer::from(approvals.clone()).layer(server.clone());
        Self {
            approvals,
            server,
            service,
        }
    }

    pub(crate) async fn run(&self, call: ToolCall) -> Output {
        self.service.clone().oneshot(call).await
    }

    /// Sends a call that waits.
    pub(crate) async fn start(&self, call: ToolCall) -> JoinHandle<Output> {
        let running = tokio::spawn(self.service.clone().oneshot(call));
        settle().await;
        running
    }

    /// Returns the request that is pending.
    pub(crate) async fn pending(&self) -> Arc<Request> {
        let all = self.approvals.list().await.unwrap();
        let pending = all
            .into_iter()
            .find(|request| request.state == State::Pending);
        pending.unwrap()
    }

    pub(crate) async fn states(&self) -> Vec<State> {
        let all = self.approvals.list().await.unwrap();
        all.iter().map(|request| request.state).collect()
    }

    /// Decides the pending request.
    pub(crate) async fn decide(&self, approves: bool) {
        let id = self.pending().await.id.clone();
        let decision = decision(approves, Some("use the archive"));
        self.approvals.decide(&id, decision).await.unwrap();
    }
}

/// A store that fails while it is down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flaky {
    pub(crate) inner: LocalStore,
    pub(crate) is_down: Arc<AtomicBool>,
}

impl Flaky {
    pub(crate) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    fn check<'a, T: Send + 'a>(
        &self,
        ask: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let is_down = self.is_down.clone();
        Box::pin(async move {
            // others come between a look and a change
            tokio::task::yield_now().await;
            match is_down.load(Ordering::SeqCst) {
                true => Err(StoreError::failed("disk full")),
                false => ask().await,
            }
        })
    }
}

impl Store for Flaky {
    fn put(
        &self,
        request: Arc<Request>,
        latest: Option<RequestId>,
        bounds: Bounds,
    ) -> BoxFuture<'_, Result<Put, StoreError>> {
        self.check(move || self.inner.put(request, latest, bounds))
    }

    fn get(&self, id: RequestId) -> BoxFuture<'_, Result<Option<Arc<Request>>, StoreError>> {
        self.check(move || self.inner.get(id))
    }

    fn latest(&self, key: Key) -> BoxFuture<'_, Result<Option<Arc<Request>>, StoreError>> {
        self.check(move || self.inner.latest(key))
    }

    fn replace(&self, request: Arc<Request>) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.check(move || self.inner.replace(request))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Arc<Request>>, StoreError>> {
        self.check(move || self.inner.list())
    }

    fn remove_ended(&self, before_ms: u64, most: usize) -> BoxFuture<'_, Result<(), StoreError>> {
        self.check(move || self.inner.remove_ended(before_ms, most))
    }

    fn put_grant(&self, new: Arc<Grant>) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.check(move || self.inner.put_grant(new))
    }

    fn grants(&self) -> BoxFuture<'_, Result<Vec<Arc<Grant>>, StoreError>> {
        self.check(move || self.inner.grants())
    }

    fn remove_grant(&self, id: RequestId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.check(move || self.inner.remove_grant(id))
    }

    fn is_shared(&self) -> bool {
        true
    }
}
