//! One breaker for a whole server, before those of its tools.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{Breaker, BreakerLayer, BreakerSet, BreakerState, Subject};
use callward_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::advance;
use tower::{ServiceBuilder, ServiceExt};
use tower_layer::Layer;

type Outcome = Result<ToolOutput, ToolError>;
type Service = Breaker<Breaker<MockService>>;

/// A server with scripted answers, behind both breakers.
struct Setting {
    set: BreakerSet,
    server: ServerId,
    mock: MockService,
    service: Service,
    fault: Arc<Mutex<Option<(ErrorKind, Delivery)>>>,
}

impl Setting {
    fn new() -> Self {
        let (set, server) = (BreakerSet::default(), ServerId::new("a").unwrap());
        let fault = Arc::new(Mutex::new(None));
        let script = fault.clone();
        let mock = MockService::new(move |_, _| {
            let fault = *script.lock();
            async move {
                match fault {
                    Some((kind, delivery)) => Err(ToolError::new(kind, delivery, "scripted")),
                    None => Ok(ToolOutput::text("fine")),
                }
            }
        });
        let service = ServiceBuilder::new()
            .layer(BreakerLayer::of_server(set.clone(), server.clone()))
            .layer(BreakerLayer::new(set.clone(), server.clone()))
            .service(mock.clone());
        Self {
            set,
            server,
            mock,
            service,
            fault,
        }
    }

    fn fails_with(&self, kind: ErrorKind, delivery: Delivery) {
        *self.fault.lock() = Some((kind, delivery));
    }

    fn works(&self) {
        *self.fault.lock() = None;
    }

    async fn ask(&self, call: ToolCall) -> Outcome {
        self.service.clone().oneshot(call).await
    }

    /// Reads with as many tools, each once.
    async fn ask_many(&self, tools: usize) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for n in 0..tools {
            outcomes.push(self.ask(read(&format!("get_{n}"))).await);
        }
        outcomes
    }

    fn state(&self) -> BreakerState {
        self.set.circuit(&self.server, Subject::Server).state()
    }

    /// Opens the server's breaker.
    async fn trip(&self) {
        self.fails_with(ErrorKind::ConnectFailed, Delivery::NotSent);
        self.ask_many(5).await;
        assert_eq!(self.state(), BreakerState::Open);
    }
}

fn read(name: &str) -> ToolCall {
    call(&tool(name).read_only().build(), json!({}))
}

fn write(name: &str) -> ToolCall {
    call(&tool(name).destructive().build(), json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_asked_for_none_of_its_tools() {
    let setting = Setting::new();
    setting.trip().await;
    assert_eq!(setting.mock.started(), 5);
    advance(Duration::from_secs(4)).await;
    let error = setting.ask(read("another")).await.unwrap_err();
    assert_eq!(setting.mock.started(), 5);
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(6)));
    let reported = error.message();
    for part in ["server `a`", "`another`", "5 failures in a row", "6.0 s"] {
        assert!(reported.contains(part), "{part:?} in {reported:?}");
    }
    let another = read("another");
    assert_eq!(
        setting.set.availability(&setting.server, &another),
        Err(BreakerState::Open)
    );
    // the tool's own breaker has nothing against it
    let of_tool = setting.set.circuit(&setting.server, another.tool().name());
    assert!(of_tool.is_available());
    // and is back with the first read that gets through
    setting.works();
    advance(Duration::from_secs(6)).await;
    assert!(setting.set.availability(&setting.server, &another).is_ok());
    setting.ask(another).await.unwrap();
    assert_eq!(setting.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_is_one_tools_trouble_never_opens_it() {
    for (kind, delivery) in [
        (ErrorKind::ServerFault, Delivery::Answered),
        (ErrorKind::Protocol, Delivery::Answered),
        (ErrorKind::Timeout, Delivery::Unknown),
        (ErrorKind::RateLimited, Delivery::Answered),
        (ErrorKind::InvalidCall, Delivery::Answered),
        (ErrorKind::Cancelled, Delivery::Unknown),
        (ErrorKind::Overloaded, Delivery::NotSent),
    ] {
        let setting = Setting::new();
        setting.fails_with(kind, delivery);
        for _ in 0..20 {
            setting.ask_many(3).await;
        }
        assert_eq!(setting.state(), BreakerState::Closed, "{kind}");
        setting.works();
        setting.ask(read("another")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_loses_its_connections_takes_no_other_tool_with_it() {
    let setting = Setting::new();
    // without the breaker of the tool, which would refuse all but the first few
    let of_server = BreakerLayer::of_server(setting.set.clone(), setting.server.clone());
    let losing = |delivery| {
        let mock = MockService::new(move |_, _| async move {
            tokio::task::yield_now().await;
            let kind = ErrorKind::ConnectionLost;
            Err(ToolError::new(kind, delivery, "scripted"))
        });
        of_server.layer(mock)
    };
    let sick = losing(Delivery::Unknown);
    for _ in 0..2 {
        let calls = (0..8).map(|_| sick.clone().oneshot(read("sick")));
        let outcomes = futures_util::future::join_all(calls).await;
        assert!(outcomes.iter().all(|outcome| {
            let error = outcome.as_ref().unwrap_err();
            error.kind() == ErrorKind::ConnectionLost
        }));
        assert_eq!(setting.state(), BreakerState::Closed);
    }
    setting.ask(read("well")).await.unwrap();
    // none of these calls overlaps any more
    advance(Duration::from_secs(1)).await;

    // a call that did not get as far as to be sent says the same whichever tool it is of
    let gone = losing(Delivery::NotSent);
    for _ in 0..5 {
        gone.clone().oneshot(read("sick")).await.unwrap_err();
    }
    assert_eq!(setting.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loses_the_connections_of_all_its_tools_is_left_alone() {
    let setting = Setting::new();
    setting.fails_with(ErrorKind::ConnectionLost, Delivery::Unknown);
    setting.ask_many(4).await;
    setting.ask_many(4).await;
    assert_eq!(setting.state(), BreakerState::Closed, "four tools");
    setting.ask_many(5).await;
    assert_eq!(setting.state(), BreakerState::Open);
    let error = setting.ask(read("another")).await.unwrap_err();
    assert!(error.message().contains("5 failures in a row"), "{error}");
    // one tool's lost probe leaves the place to the next call, and another's opens it for longer
    advance(Duration::from_secs(10)).await;
    setting.ask(read("get_7")).await.unwrap_err();
    assert_eq!(setting.state(), BreakerState::HalfOpen);
    setting.ask(read("get_8")).await.unwrap_err();
    assert_eq!(setting.state(), BreakerState::Open);
    advance(Duration::from_secs(20)).await;
    setting.ask(read("get_7")).await.unwrap_err();
    setting.works();
    setting.ask(read("get_9")).await.unwrap();
    assert_eq!(setting.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_tools_open_breaker_is_no_probe_of_the_server() {
    let setting = Setting::new();
    setting.fails_with(ErrorKind::ConnectFailed, Delivery::NotSent);
    for _ in 0..3 {
        setting.ask(read("sick")).await.unwrap_err();
    }
    setting.ask_many(2).await;
    assert_eq!(setting.state(), BreakerState::Open);
    setting.works();
    advance(Duration::from_secs(10)).await;
    // refused by its own breaker for 20 s more; the server's place is given back each time
    for _ in 0..5 {
        let error = setting.ask(read("sick")).await.unwrap_err();
        assert!(error.message().starts_with("`sick`"), "{error}");
    }
    setting.ask(read("well")).await.unwrap();
    assert_eq!(setting.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_no_probe_as_long_as_a_read_may_come() {
    let setting = Setting::new();
    setting.trip().await;
    setting.works();
    advance(Duration::from_secs(10)).await;
    let put = write("put");
    assert!(setting.set.availability(&setting.server, &put).is_err());
    let error = setting.ask(put.clone()).await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
    assert!(error.message().contains("this call is a write"), "{error}");
    // an idempotent one may be sent into the unknown
    let set = call(&tool("set").idempotent().build(), json!({}));
    assert!(setting.set.availability(&setting.server, &set).is_ok());
    setting.ask(read("get")).await.unwrap();
    setting.ask(put.clone()).await.unwrap();
    // where no read comes, the write is the probe
    setting.trip().await;
    setting.works();
    advance(Duration::from_secs(20)).await;
    setting.ask(put).await.unwrap();
    assert_eq!(setting.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_back_closes_it_and_an_operator_holds_it() {
    let setting = Setting::new();
    setting.trip().await;
    setting.works();
    setting.set.reset_server(&setting.server);
    setting.ask(read("get_0")).await.unwrap();

    setting.set.force_open(&setting.server, Subject::Server);
    let error = setting.ask(read("get_0")).await.unwrap_err();
    assert_eq!(error.retry_after(), None);
    let reason = "an operator holds its breaker open";
    assert!(error.message().contains(reason), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_probe_hears_when_it_is_due() {
    let setting = Setting::new();
    let circuit = setting.set.circuit(&setting.server, Subject::Server);
    let start = tokio::time::Instant::now();
    let waiting = tokio::spawn({
        let circuit = circuit.clone();
        async move {
            circuit.probe_due().await;
            start.elapsed()
        }
    });
    tokio::time::sleep(Duration::from_secs(7)).await;
    setting.trip().await;
    assert_eq!(waiting.await.unwrap(), Duration::from_secs(17));
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_time_a_call_leaves_no_place_taken() {
    let setting = Setting::new();
    let (mock, gate) = MockService::gated();
    let service = ServiceBuilder::new()
        .layer(BreakerLayer::of_server(
            setting.set.clone(),
            setting.server.clone(),
        ))
        .layer(BreakerLayer::new(
            setting.set.clone(),
            setting.server.clone(),
        ))
        .service(mock.clone());
    setting.trip().await;
    advance(Duration::from_secs(30)).await;
    for _ in 0..5 {
        // the probe of both, dropped before it is polled, and after
        let mut unpolled = service.clone();
        let unpolled = unpolled.ready().await.unwrap();
        drop(tower::Service::call(unpolled, read("get_0")));
        let mut probe = Box::pin(service.clone().oneshot(read("get_0")));
        assert!(futures_util::poll!(&mut probe).is_pending());
        assert!(service.clone().oneshot(read("get_0")).await.is_err());
    }
    gate.open(1);
    service.oneshot(read("get_0")).await.unwrap();
    assert_eq!(setting.state(), BreakerState::Closed);
}
