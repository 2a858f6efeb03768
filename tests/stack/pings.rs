//! Servers that answer no pings, or whose connection is lost.

use std::sync::Arc;
use std::time::Duration;

use callward::{Delivery, ErrorKind, PingConfig, Stack, ToolOutput};
use callward_core::ServerEvent;
use callward_testkit::{MockServer, MockService, Ping};
use serde_json::json;
use tokio::time::sleep;

use crate::bed::{failure, in_set, wipe};

const SECOND: Duration = Duration::from_secs(1);

/// Two servers of one set, which are up.
struct Two {
    stack: Stack,
    servers: [Arc<MockServer>; 2],
    services: [MockService; 2],
}

impl Two {
    async fn new(config: impl Into<Option<PingConfig>>) -> Self {
        Self::of(config, MockService::counting()).await
    }

    /// The first answers so.
    async fn of(config: impl Into<Option<PingConfig>>, one: MockService) -> Self {
        let services = [one, MockService::counting()];
        let servers = [("one", &services[0]), ("two", &services[1])]
            .map(|(id, service)| MockServer::new(id, vec![wipe("drop")], service.clone()));
        let builder = Stack::builder().ping(config);
        let stack = in_set(builder, &servers, |_, server| server).await;
        Self {
            stack,
            servers,
            services,
        }
    }

    /// Sends destructive calls, which no cache answers, and checks which servers get some.
    async fn reach(&self, expected: &[&str], about: &str) {
        let before = self.services.each_ref().map(MockService::started);
        for n in 0..40 {
            let call = self.stack.call("set.drop", json!({"n": n}));
            call.await.unwrap();
        }
        let after = self.services.each_ref().map(MockService::started);
        let got = |n: usize| after[n] > before[n];
        let reached: Vec<_> = [(0, "one"), (1, "two")]
            .into_iter()
            .filter_map(|(n, id)| got(n).then_some(id))
            .collect();
        assert_eq!(reached, expected, "{about}");
    }
}

fn refused() -> Ping {
    Ping::Answered(Err(crate::bed::refused()))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_pings_gets_no_calls_until_it_does() {
    use Delivery::{Answered, Unknown};
    let failed = |kind, delivery| Ping::Answered(Err(failure(kind, delivery)));
    let (both, second) = (&["one", "two"][..], &["two"][..]);
    for (ping, expected) in [
        (Ping::Silence, second),
        (Ping::Panics, second),
        (refused(), second),
        // an error that blames no server answers the ping
        (failed(ErrorKind::RateLimited, Answered), both),
        (failed(ErrorKind::Unauthorized, Answered), both),
        (failed(ErrorKind::Cancelled, Unknown), both),
    ] {
        let two = Two::new(PingConfig::default()).await;
        let about = format!("{ping:?}");
        two.reach(both, &about).await;
        two.servers[0].set_ping(ping);
        // five pings, each 10 s after the one before, and each may take 5 s
        sleep(78 * SECOND).await;
        two.reach(expected, &about).await;
        two.servers[0].set_ping(Ping::Answered(Ok(())));
        sleep(90 * SECOND).await;
        two.reach(both, &about).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_may_be_silent() {
    let mut often = PingConfig::default();
    (often.interval, often.timeout) = (SECOND, SECOND / 10);
    // its first call takes 20 s
    let slow = MockService::new(|_, n| async move {
        if n == 1 {
            sleep(20 * SECOND).await;
        }
        Ok(ToolOutput::text("done"))
    });
    let two = Two::of(often, slow).await;
    let mut calls = Vec::new();
    while two.services[0].started() == 0 {
        let (stack, n) = (two.stack.clone(), calls.len());
        let arguments = json!({"n": format!("first {n}")});
        calls.push(tokio::spawn(async move {
            stack.call("set.drop", arguments).await
        }));
        sleep(SECOND / 1_000).await;
    }
    two.servers[0].set_ping(Ping::Silence);
    sleep(15 * SECOND).await;
    assert!(two.servers[0].pings() > 10);
    two.reach(&["one", "two"], "busy").await;
    for call in calls {
        call.await.unwrap().unwrap();
    }
    // and once it is not, silence counts
    sleep(8 * SECOND).await;
    two.reach(&["two"], "not busy").await;
}

#[tokio::test(start_paused = true)]
async fn the_number_of_pings_is_bounded() {
    for (config, expected) in [(Some(PingConfig::default()), 95..=101), (None, 0..=0)] {
        let two = Two::new(config).await;
        sleep(1_000 * SECOND).await;
        for server in &two.servers {
            let pings = server.pings();
            assert!(expected.contains(&pings), "{pings} in 1,000 s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_connection_is_lost_gets_no_calls_and_no_pings() {
    let mut ping = PingConfig::default();
    ping.interval = SECOND;
    let two = Two::new(ping).await;
    let one = &two.servers[0];
    one.emit(&ServerEvent::Down("its host is on fire".to_owned()));
    sleep(SECOND / 100).await;
    let pings = one.pings();
    one.set_ping(refused());
    two.reach(&["two"], "down").await;
    sleep(100 * SECOND).await;
    assert_eq!(one.pings(), pings);
    // what pings said of the connection before is forgotten
    one.emit(&ServerEvent::Up);
    sleep(20 * SECOND).await;
    two.reach(&["two"], "up, without an answer to a ping").await;
    one.emit(&ServerEvent::Down("again".to_owned()));
    sleep(SECOND / 100).await;
    one.set_ping(Ping::Answered(Ok(())));
    one.emit(&ServerEvent::Up);
    sleep(60 * SECOND).await;
    two.reach(&["one", "two"], "up").await;
}
