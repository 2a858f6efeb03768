//! Servers that answer no pings, or whose connection is lost.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::time::Duration;

use callward::router::StrategyName;
use callward::{Delivery, ErrorKind, PingConfig, Server, Stack, ToolError, ToolOutput};
use callward_core::ServerEvent;
use callward_testkit::{MockServer, MockService, Ping};
use serde_json::json;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// Two servers of one set, `one` and `two`, which are up.
async fn two(
    config: impl Into<Option<PingConfig>>,
) -> (Stack, [Arc<MockServer>; 2], [MockService; 2]) {
    two_of(config, MockService::counting()).await
}

/// The same, where `one` answers so.
async fn two_of(
    config: impl Into<Option<PingConfig>>,
    one: MockService,
) -> (Stack, [Arc<MockServer>; 2], [MockService; 2]) {
    let services = [one, MockService::counting()];
    let tools = || {
        ["get_a", "drop_a"].map(|name| {
            let hints =
                json!({"readOnlyHint": name == "get_a", "destructiveHint": name != "get_a"});
            json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
        })
    };
    let servers = [("one", &services[0]), ("two", &services[1])]
        .map(|(id, service)| MockServer::new(id, tools().into(), service.clone()));
    let mut builder = Stack::builder()
        .ping(config)
        .strategy(StrategyName::RoundRobin);
    for server in &servers {
        let server = Server::shared(server.clone()).in_set("both".parse().unwrap());
        builder = builder.server(server);
    }
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    for server in &servers {
        server.emit(&ServerEvent::Up);
    }
    let stack = building.await.unwrap().unwrap();
    (stack, servers, services)
}

/// Sends destructive calls, which no cache answers, and returns how many each server got.
async fn drop_many(stack: &Stack, services: &[MockService; 2]) -> [usize; 2] {
    let before = services.each_ref().map(MockService::started);
    for n in 0..40 {
        stack.call("both.drop_a", json!({"n": n})).await.unwrap();
    }
    let [one, two] = services.each_ref().map(MockService::started);
    [one - before[0], two - before[1]]
}

fn refused() -> Ping {
    let text = "connection refused";
    let error = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, text);
    Ping::Answered(Err(error))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_pings_gets_no_calls_until_it_does() {
    for ping in [Ping::Silence, Ping::Panics, refused()] {
        let (stack, servers, services) = two(PingConfig::default()).await;
        let [one, two] = drop_many(&stack, &services).await;
        assert!(one > 0 && two > 0, "{one} and {two}");
        servers[0].set_ping(ping.clone());
        // five pings, each 10 s after the one before, and each may take 5 s
        sleep(78 * SECOND).await;
        assert_eq!(drop_many(&stack, &services).await, [0, 40], "{ping:?}");
        servers[0].set_ping(Ping::Answered(Ok(())));
        sleep(90 * SECOND).await;
        let [one, two] = drop_many(&stack, &services).await;
        assert!(one > 0 && two > 0, "{one} and {two}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_failure_of_the_server_is_none_of_the_ping() {
    use Delivery::{Answered, Unknown};
    let (stack, servers, services) = two(PingConfig::default()).await;
    for (kind, delivery) in [
        (ErrorKind::RateLimited, Answered),
        (ErrorKind::Unauthorized, Answered),
        (ErrorKind::Cancelled, Unknown),
    ] {
        let error = ToolError::new(kind, delivery, "x");
        servers[0].set_ping(Ping::Answered(Err(error)));
        sleep(200 * SECOND).await;
        let [one, two] = drop_many(&stack, &services).await;
        assert!(one > 0 && two > 0, "{kind}: {one} and {two}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_may_be_silent() {
    let often = PingConfig::default()
        .with_interval(SECOND)
        .with_timeout(SECOND / 10);
    // its first call takes 20 s
    let slow = MockService::new(|_, n| async move {
        if n == 1 {
            sleep(20 * SECOND).await;
        }
        Ok(ToolOutput::text("done"))
    });
    let (stack, servers, services) = two_of(often, slow).await;
    let mut calls = Vec::new();
    while services[0].started() == 0 {
        let (stack, n) = (stack.clone(), calls.len());
        let arguments = json!({"n": format!("first {n}")});
        calls.push(tokio::spawn(async move {
            stack.call("both.drop_a", arguments).await
        }));
        sleep(SECOND / 1_000).await;
    }
    servers[0].set_ping(Ping::Silence);
    sleep(15 * SECOND).await;
    assert!(servers[0].pings() > 10);
    let [one, two] = drop_many(&stack, &services).await;
    assert!(one > 0 && two > 0, "{one} and {two}");
    for call in calls {
        call.await.unwrap().unwrap();
    }
    // and once it is not, silence counts
    sleep(8 * SECOND).await;
    assert_eq!(drop_many(&stack, &services).await, [0, 40]);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_pings_is_bounded() {
    let (_stack, servers, _) = two(PingConfig::default()).await;
    sleep(1_000 * SECOND).await;
    for server in &servers {
        let pings = server.pings();
        assert!((95..=101).contains(&pings), "{pings} in 1,000 s");
    }
    let (_stack, servers, _) = two(None).await;
    sleep(1_000 * SECOND).await;
    assert_eq!(servers[0].pings(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_connection_is_lost_gets_no_calls_and_no_pings() {
    let fast = PingConfig::default().with_interval(SECOND);
    let (stack, servers, services) = two(fast).await;
    servers[0].emit(&ServerEvent::Down("its host is on fire".to_owned()));
    sleep(SECOND / 100).await;
    let pings = servers[0].pings();
    servers[0].set_ping(refused());
    assert_eq!(drop_many(&stack, &services).await, [0, 40]);
    sleep(100 * SECOND).await;
    assert_eq!(servers[0].pings(), pings);
    // what pings said of the connection before is forgotten
    servers[0].emit(&ServerEvent::Up);
    sleep(20 * SECOND).await;
    assert_eq!(drop_many(&stack, &services).await, [0, 40]);
    servers[0].emit(&ServerEvent::Down("again".to_owned()));
    sleep(SECOND / 100).await;
    servers[0].set_ping(Ping::Answered(Ok(())));
    servers[0].emit(&ServerEvent::Up);
    sleep(60 * SECOND).await;
    let [one, two] = drop_many(&stack, &services).await;
    assert!(one > 0 && two > 0, "{one} and {two}");
}

#[tokio::test(start_paused = true)]
async fn settings_that_make_no_sense_fail_the_build() {
    let config = PingConfig::default().with_interval(Duration::ZERO);
    let error = Stack::builder().ping(config).build().await.unwrap_err();
    assert!(error.to_string().contains("interval"), "{error}");
}
