//! A scripted server behind its breakers, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerLayer, BreakerSet, BreakerState, Subject};
use callward_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex;
use serde_json::json;
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt};

pub(crate) type Outcome = Result<ToolOutput, ToolError>;
type Service = BoxCloneService<ToolCall, ToolOutput, ToolError>;

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

/// A call of a tool: `put` must not run twice, `set` is idempotent, and all others read.
pub(crate) fn of(name: &str) -> ToolCall {
    let tool = match name {
        "put" => tool(name).destructive(),
        "set" => tool(name).idempotent(),
        _ => tool(name).read_only(),
    };
    call(&tool.build(), json!({}))
}

pub(crate) fn fault(kind: ErrorKind, delivery: Delivery) -> Outcome {
    Err(ToolError::new(kind, delivery, "scripted"))
}

pub(crate) fn down() -> Outcome {
    fault(ErrorKind::ConnectFailed, Delivery::NotSent)
}

pub(crate) fn fine() -> Outcome {
    Ok(ToolOutput::text("fine"))
}

/// The server `a`, which answers as it is set to.
pub(crate) struct Scene {
    pub(crate) set: BreakerSet,
    pub(crate) mock: MockService,
    pub(crate) answer: Arc<Mutex<Outcome>>,
    service: Service,
}

impl Scene {
    /// Behind the breaker of the server, and those of its tools.
    pub(crate) fn new() -> Self {
        Self::with(BreakerConfig::default(), |set, tools| {
            let of_server = BreakerLayer::of_server(set, server("a"));
            of_server.layer(tools).boxed_clone()
        })
    }

    /// Behind the breakers of its tools alone.
    pub(crate) fn of_tools(config: BreakerConfig) -> Self {
        Self::with(config, |_, tools| tools.boxed_clone())
    }

    fn with(
        config: BreakerConfig,
        service: impl FnOnce(BreakerSet, Breaker<MockService>) -> Service,
    ) -> Self {
        let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
        let answer = Arc::new(Mutex::new(fine()));
        let answers = answer.clone();
        let mock = MockService::new(move |_, _| {
            let answer = answers.lock().clone();
            async move {
                // so that calls may overlap
                tokio::task::yield_now().await;
                answer
            }
        });
        let tools = BreakerLayer::new(set.clone(), server("a")).layer(mock.clone());
        Self {
            service: service(set.clone(), tools),
            set,
            mock,
            answer,
        }
    }

    pub(crate) async fn send(&self, call: ToolCall) -> Outcome {
        self.service.clone().oneshot(call).await
    }

    /// Calls tools, one after the other. Returns how the last call ended: `ok`, the kind of its
    /// error, or for how long a breaker refuses it.
    pub(crate) async fn call(&self, names: &str) -> String {
        let mut last = String::new();
        for name in names.split_whitespace() {
            last = match self.send(of(name)).await {
                Ok(_) => "ok".to_owned(),
                Err(error) if error.kind == ErrorKind::BreakerOpen => {
                    assert_eq!(error.delivery, Delivery::NotSent);
                    let wait = error.retry_after;
                    wait.map_or_else(|| "open".to_owned(), |wait| format!("open for {wait:?}"))
                }
                Err(error) => error.kind.to_string(),
            };
        }
        last
    }

    pub(crate) fn server_state(&self) -> BreakerState {
        self.set.circuit(&server("a"), Subject::Server).state()
    }

    pub(crate) fn state(&self, tool: &str) -> BreakerState {
        let tool = of(tool).tool().name().clone();
        self.set.circuit(&server("a"), &tool).state()
    }
}
