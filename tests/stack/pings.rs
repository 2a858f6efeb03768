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
        let stack = in_set(Stack::builder().ping(config), &servers, |_, server| server).await;
        Self {
            stack,
            servers,
            services,
        }
    }

    /// Sends destructive calls, which no cache answers, and checks whether both servers get some,
    /// or only the second.
    async fn reach(&self, both: bool, about: &str) {
        let before = self.services.each_ref().map(MockService::started);
        for n in 0..40 {
            self.stack.call("set.drop", json!({"n": n})).await.unwrap();
        }
        let after = self.services.each_ref().map(MockService::started);
        let reached = [after[0] > before[0], after[1] > before[1]];
        assert_eq!(reached, [both, true], "{about}");
    }
}

fn refused() -> Ping {
    Ping::Answered(Err(crate::bed::refused()))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_pings_gets_no_calls_until_it_does() {
    use Delivery::{Answered, Unknown};
    let failed = |kind, delivery| Ping::Answered(Err(failure(kind, delivery)));
    for (ping, both) in [
        (Ping::Silence, false),
        (Ping::Panics, false),
        (refused(), false),
        // an error that blames no server answers the ping
        (failed(ErrorKind::RateLimited, Answered), true),
        (failed(ErrorKind::Unauthorized, Answered), true),
        (failed(ErrorKind::Cancelled, Unknown), true),
    ] {
        let two = Two::new(PingConfig::default()).await;
        let about = format!("{ping:?}");
        two.servers[0].set_ping(ping);
        // five pings, each 10 s after the one before, and each may take 5 s
        sleep(78 * SECOND).await;
        two.reach(both, &about).await;
        two.servers[0].set_ping(Ping::Answered(Ok(())));
        sleep(90 * SECOND).await;
        two.reach(true, &about).await;
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
    let calls = [1, 2].map(|n| {
        let stack = two.stack.clone();
        tokio::spawn(async move { stack.call("set.drop", json!({"first": n})).await })
    });
    sleep(SECOND / 1_000).await;
    assert_eq!(two.services[0].started(), 1);
    two.servers[0].set_ping(Ping::Silence);
    sleep(15 * SECOND).await;
    assert!(two.servers[0].pings() > 10);
    two.reach(true, "busy").await;
    for call in calls {
        call.await.unwrap().unwrap();
    }
    // and once it is not, silence counts
    sleep(8 * SECOND).await;
    two.reach(false, "not busy").await;
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
    two.reach(false, "down").await;
    sleep(100 * SECOND).await;
    assert_eq!(one.pings(), pings);
    // what pings said of the connection before is forgotten
    one.emit(&ServerEvent::Up);
    sleep(20 * SECOND).await;
    two.reach(false, "up, without an answer to a ping").await;
    one.emit(&ServerEvent::Down("again".to_owned()));
    sleep(SECOND / 100).await;
    one.set_ping(Ping::Answered(Ok(())));
    one.emit(&ServerEvent::Up);
    sleep(60 * SECOND).await;
    two.reach(true, "up").await;
}
