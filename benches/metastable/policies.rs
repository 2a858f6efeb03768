//! What stands between the clients and the servers.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use callward::cache::CacheConfig;
use callward::core::BoxFuture;
use callward::retry::RetryConfig;
use callward::router::{Member, Pool, Router};
use callward::{
    Delivery, ErrorKind, ReplicaSetId, Server, Stack, Tool, ToolCall, ToolError, ToolOutput,
    ToolServer,
};
use tokio::time::timeout;
use tower::retry::Retry;
use tower::{Service, ServiceExt};

use crate::world::{QueueingServer, TOOL, World};

/// What is done about failures. All three choose servers alike and give up an attempt after the
/// same time; no policy has a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Each call is tried once.
    NoRetry,
    /// Each call is tried up to three times, at once: no pause, no budget, no breaker, no limit.
    Naive,
    /// The stack of this workspace with its defaults.
    Ours,
}

impl Policy {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NoRetry => "no retry",
            Self::Naive => "naive retry",
            Self::Ours => "ours",
        }
    }
}

/// What clients call.
#[derive(Clone)]
pub(crate) struct Runtime {
    stack: Stack,
    path: Path,
    /// The tool of each set.
    pub(crate) tools: Vec<Arc<Tool>>,
}

#[derive(Clone)]
enum Path {
    Once(Router<Direct>),
    Thrice(Retry<Thrice, Router<Direct>>),
    Stack,
}

impl Runtime {
    /// Puts the policy before the servers of the world.
    pub(crate) async fn new(policy: Policy, world: &World, seed: u64) -> Self {
        let mut cache = CacheConfig::default();
        cache.enabled = false;
        let mut retry = RetryConfig::default();
        retry.seed = Some(seed);
        let mut builder = Stack::builder().cache(cache).retry(retry);
        let pool = Arc::new(Pool::new());
        for set in 0..world.size.sets {
            let id = ReplicaSetId::new(format!("set-{set}")).expect("a valid id");
            let servers = || world.servers.iter().filter(|server| server.set == set);
            for server in servers() {
                builder = builder.server(Server::shared(server.clone()).in_set(id.clone()));
            }
            let direct = |server: &Arc<QueueingServer>| {
                Member::new(server.id().clone(), Direct(server.clone()))
            };
            pool.set_members(id, servers().map(direct).collect());
        }
        let stack = builder.build().await.expect("servers that agree");
        let tool = |set| {
            let call = stack.prepare(&format!("set-{set}.{TOOL}"), "{}");
            call.expect("a tool that was listed").tool().clone()
        };
        let tools = (0..world.size.sets).map(tool).collect();
        let router = Router::new(pool);
        let path = match policy {
            Policy::NoRetry => Path::Once(router),
            Policy::Naive => Path::Thrice(Retry::new(Thrice, router)),
            Policy::Ours => Path::Stack,
        };
        Self { stack, path, tools }
    }

    pub(crate) async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        match &self.path {
            Path::Once(router) => router.clone().oneshot(call).await,
            Path::Thrice(retry) => retry.clone().oneshot(call).await,
            Path::Stack => self.stack.run(call).await,
        }
    }

    /// The longest time until a breaker lets a probe through, as of now.
    pub(crate) fn longest_open(&self) -> Option<std::time::Duration> {
        let breakers = self.stack.breakers();
        breakers
            .iter()
            .filter_map(|breaker| breaker.time_to_probe)
            .max()
    }
}

/// A server, and an attempt timeout as the plan says it.
#[derive(Clone)]
struct Direct(Arc<QueueingServer>);

impl Service<ToolCall> for Direct {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let limit = call.plan().limits.attempt_timeout;
        let answer = timeout(limit, self.0.call(call));
        Box::pin(async move {
            let late = |_| ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer");
            answer.await.map_err(late)?
        })
    }
}

/// Repeats whatever failed, twice.
#[derive(Debug, Clone)]
struct Thrice;

impl tower::retry::Policy<ToolCall, ToolOutput, ToolError> for Thrice {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        call: &mut ToolCall,
        result: &mut Result<ToolOutput, ToolError>,
    ) -> Option<Ready<()>> {
        let again = result.is_err() && call.attempt().number < 3;
        call.attempt_mut().advance(None);
        again.then(|| ready(()))
    }

    fn clone_request(&mut self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }
}
