//! The limits of a whole stack, on a paused clock.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::sync::Arc;
use std::time::Duration;

use callward::core::ServerEvent;
use callward::limit::{Cap, Shed};
use callward::{
    BuildError, Delivery, ErrorKind, LimitsConfig, Server, Stack, ToolError, ToolOutput, Trust,
};
use callward_testkit::{MockServer, MockService};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

fn listed(name: &str, hints: &Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
}

/// A server with a tool that supports twelve calls a minute, and one that says nothing.
fn server(service: &MockService) -> Arc<MockServer> {
    let tools = vec![
        listed("rare", &json!({"rateLimitHint": 12})),
        listed("plain", &json!({})),
    ];
    MockServer::new("a", tools, service.clone())
}

/// Builds a stack, and says that its server is there.
async fn built(
    server: Arc<MockServer>,
    limits: LimitsConfig,
    set: impl FnOnce(Server) -> Server,
) -> Result<Stack, BuildError> {
    let builder = Stack::builder().server(set(Server::shared(server.clone())));
    let building = tokio::spawn(builder.limits(limits).build());
    tokio::task::yield_now().await;
    server.emit(&ServerEvent::Up);
    building.await.unwrap()
}

async fn stack(server: Arc<MockServer>, set: impl FnOnce(Server) -> Server) -> Stack {
    built(server, LimitsConfig::default(), set).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_hint_is_held_to_without_any_setting() {
    for trust in [Trust::Trusted, Trust::Standard, Trust::Untrusted] {
        let service = MockService::counting();
        let stack = stack(server(&service), |server| server.trust(trust)).await;
        let start = Instant::now();
        let calls = (0..4).map(|_| stack.call("a.rare", json!({})));
        assert!(join_all(calls).await.iter().all(Result::is_ok));
        assert_eq!(start.elapsed().as_secs(), 10, "two at once, then each 5 s");
        let status = stack.limits();
        let [rate] = &status.rates[..] else {
            panic!("{status:?}")
        };
        assert_eq!((rate.calls_per_minute, rate.waited), (12.0, 2));
        for _ in 0..100 {
            stack.call("a.plain", json!({})).await.unwrap();
        }
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_counts_against_the_rate() {
    let service = MockService::new(|_, n| async move {
        match n % 2 {
            1 => Err(ToolError::new(
                ErrorKind::ServerFault,
                Delivery::Answered,
                "no",
            )),
            _ => Ok(ToolOutput::text(n.to_string())),
        }
    });
    let hints = json!({"rateLimitHint": 12, "readOnlyHint": true});
    let tools = vec![listed("get_rare", &hints)];
    let server = MockServer::new("a", tools, service.clone());
    let stack = stack(server, |server| server).await;
    // the first call takes both cells of the burst
    stack.call("a.get_rare", json!({"q": 1})).await.unwrap();
    let start = Instant::now();
    let second = stack.call("a.get_rare", json!({"q": 2})).await;
    assert!(
        second.is_ok() && start.elapsed().as_secs() >= 9,
        "{second:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_operator_limits_principals_and_servers() {
    let mut limits = LimitsConfig::default();
    limits.rate = limits
        .rate
        .with_per_principal(Some(60.0))
        .with_max_wait(Duration::ZERO);
    let service = MockService::counting();
    let server = server(&service);
    let stack = built(server, limits, |server| server.calls_per_minute(30.0));
    let stack = stack.await.unwrap();
    for _ in 0..5 {
        stack.call("a.plain", json!({})).await.unwrap();
    }
    let error = stack.call("a.plain", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
    assert!(
        error.server().is_some(),
        "it was the server's limit: {error}"
    );
    let status = stack.limits();
    let rate = status.servers[0].rate.as_ref().unwrap();
    assert_eq!((rate.calls_per_minute, rate.refused), (30.0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_has_places_and_so_has_each_of_its_tools() {
    let (service, gate) = MockService::gated();
    let stack = stack(server(&service), |server| {
        server
            .max_concurrent(3)
            .max_concurrent_per_tool(2)
            .max_concurrent_of("rare".parse().unwrap(), 1)
            .max_waiting(1)
            .shed(Shed::Oldest)
    });
    let stack = stack.await;
    let begin = |tool: &str| {
        let mut call = Box::pin(stack.run(stack.prepare(tool, "").unwrap()));
        assert!(call.as_mut().now_or_never().is_none());
        call
    };
    let mut plain: Vec<_> = (0..3).map(|_| begin("a.plain")).collect();
    let rare: Vec<_> = (0..2).map(|_| begin("a.rare")).collect();
    let status = stack.limits();
    let places = &status.servers[0].concurrency;
    assert_eq!((places.server.in_flight, places.server.limit), (3, 3));
    for (tool, limit) in [("plain", 2), ("rare", 1)] {
        let of_tool = places.tools[tool];
        assert_eq!((of_tool.in_flight, of_tool.waiting), (limit, 1), "{tool}");
    }
    // one more: the call that waited longest is refused
    let newest = begin("a.plain");
    let error = plain.pop().unwrap().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.delivery()),
        (ErrorKind::Overloaded, Delivery::NotSent)
    );
    assert!(error.message().contains("a newer call"), "{error}");
    gate.open(5);
    let all = plain.into_iter().chain(rare).chain([newest]);
    assert!(join_all(all).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_says_nothing_gets_the_time_the_operator_gives() {
    let (service, _gate) = MockService::gated();
    let mut limits = LimitsConfig::default();
    limits.attempt_timeout = Some(Duration::from_secs(90));
    limits.progress_cap = Cap::Times(2);
    let stack = built(server(&service), limits, |server| server)
        .await
        .unwrap();
    let start = Instant::now();
    let error = stack.call("a.plain", json!({})).await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 90);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    for said in ["timeout of 90s", "180s"] {
        assert!(cause.contains(said), "{cause}");
    }
}

#[tokio::test(start_paused = true)]
async fn settings_that_make_no_sense_fail_the_build_and_are_named() {
    let service = MockService::counting();
    let build = async |limits: LimitsConfig, set: fn(Server) -> Server| {
        let built = built(server(&service), limits, set).await;
        built.map(|_| ()).unwrap_err().to_string()
    };
    let mut none = LimitsConfig::default();
    none.attempt_timeout = Some(Duration::ZERO);
    let mut rate = LimitsConfig::default();
    rate.rate = rate.rate.with_per_principal(Some(-1.0));
    let reported = build(none, |server| server).await;
    assert!(reported.contains("attempt_timeout"), "{reported}");
    let reported = build(rate, |server| server).await;
    assert!(reported.contains("per_principal"), "{reported}");

    let plain = LimitsConfig::default();
    let reported = build(plain, |server| server.calls_per_minute(0.0)).await;
    assert!(reported.contains("server `a`: in_all"), "{reported}");
}
