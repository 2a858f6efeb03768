//! Breakers in the stack: of servers, of their tools, and of discovery.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward::breaker::{BreakerState, Subject};
use callward::core::{List, ServerEvent};
use callward::{ErrorKind, Stack, StackBuilder, ToolCall, ToolName, ToolOutput, ToolServer};
use callward_testkit::{MockServer, MockService, Ping};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::bed::{alone, fails, has, read, refused};
use crate::lister::{Lister, some_tools};

/// A server that can be taken away: then it lists nothing, and refuses calls and pings.
struct Site {
    server: Arc<Lister>,
    service: MockService,
    is_there: Arc<AtomicBool>,
}

impl Site {
    fn new(is_there: bool) -> Self {
        let is_there = Arc::new(AtomicBool::new(is_there));
        let [lists, answers] = [(); 2].map(|()| {
            let is_there = is_there.clone();
            move || match is_there.load(Ordering::SeqCst) {
                true => Ok(()),
                false => Err(refused()),
            }
        });
        let service = MockService::new(move |_, _| {
            std::future::ready(answers().map(|()| ToolOutput::text("fine")))
        });
        let listed = move |_: &MockServer, _| Some(lists().and_then(|()| some_tools()));
        Self {
            server: Lister::new(&service, listed),
            service,
            is_there,
        }
    }

    fn set(&self, is_there: bool) {
        self.is_there.store(is_there, Ordering::SeqCst);
        let answer = if is_there { Ok(()) } else { Err(refused()) };
        self.server.mock.set_ping(Ping::Answered(answer));
    }

    async fn start(&self) -> Stack {
        self.server.start(Stack::builder()).await
    }
}

fn state(stack: &Stack, subject: &Subject) -> BreakerState {
    let all = stack.breakers();
    let found = all.iter().find(|one| one.subject == *subject);
    found.unwrap().state
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_list_is_asked_when_its_breaker_allows() {
    for comes_up in [false, true] {
        let site = Site::new(false);
        let stack = site.start().await;
        // changed tools are no reason to ask earlier
        for _ in 0..50 {
            site.server
                .mock
                .emit(&ServerEvent::ListChanged(List::Tools));
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(site.server.listed_at(), [0.0, 0.5]);
        assert_eq!(state(&stack, &Subject::Discovery), BreakerState::Open);
        if comes_up {
            // a new connection is
            site.set(true);
            let (mut changes, before) = (stack.changes(), Instant::now());
            site.server.mock.emit(&ServerEvent::Up);
            changes.next().await.unwrap();
            assert_eq!(before.elapsed(), Duration::ZERO);
        } else {
            sleep(Duration::from_secs(350)).await;
            // at once, after a pause, then by the breaker: 60 s, 120 s, 240 s
            assert_eq!(site.server.listed_at(), [0.0, 0.5, 60.5, 180.5]);
            // and is found again by itself
            site.set(true);
            sleep(Duration::from_secs(240)).await;
        }
        assert_eq!(state(&stack, &Subject::Discovery), BreakerState::Closed);
        stack.call("s.add_0", json!({})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_hangs_is_given_up_and_says_after_how_long() {
    for (timeout, secs) in [
        (StackBuilder::LISTING_TIMEOUT.as_secs(), 60),
        (7, 7),
        (1, 5),
    ] {
        let server = Lister::new(&MockService::counting(), |_, _| None);
        let [timeout, soon] = [timeout, 1].map(Duration::from_secs);
        let builder = Stack::builder().listing_timeout(timeout);
        let stack = server.start(builder.startup_timeout(soon)).await;
        sleep(Duration::from_secs(secs)).await;
        let error = stack.servers()[0].last_error.clone().unwrap();
        has(error, &[&format!("within {secs} s"), "never below 5 s"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_probed_by_pings_and_by_no_write() {
    let site = Site::new(true);
    let stack = site.start().await;
    site.set(false);
    for n in 0..5 {
        let error = fails(&stack, &format!("s.add_{n}")).await;
        assert_eq!(error.kind, ErrorKind::ConnectFailed);
    }
    // the sixth tool was never called, and its server is not asked
    let error = fails(&stack, "s.add_5").await;
    assert_eq!(error.kind, ErrorKind::BreakerOpen);
    assert_eq!(error.retry_after, Some(Duration::from_secs(10)));
    has(error, &["server `s`"]);
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Open);
    has(stack.explain("s.add_5").unwrap(), &["its breaker"]);

    // the first probe fails, the second one finds it
    sleep(Duration::from_secs(15)).await;
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Open);
    site.set(true);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Closed);
    assert_eq!(site.service.started(), 5);
    stack.call("s.add_5", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_waiting_for_a_breaker_is_answered_when_the_server_is_back() {
    let site = Site::new(true);
    let stack = site.start().await;
    site.set(false);
    let breakers = stack.breaker_set();
    let server = breakers.circuit(site.server.id(), Subject::Server);
    for _ in 0..5 {
        server.clone().admit().unwrap().fail(&"down");
    }
    assert_eq!(state(&stack, &Subject::Server), BreakerState::Open);
    let began = Instant::now();
    let deadline = began + Duration::from_secs(60);
    let read = stack.prepare("s.get_a", "{}").unwrap();
    let waiting = tokio::spawn(stack.run(read.with_deadline(deadline.into_std())));
    sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    site.set(true);
    site.server.mock.emit(&ServerEvent::Up);
    waiting.await.unwrap().unwrap();
    // the breaker alone would have let nothing through for 10 s
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_for_the_probe_of_a_tool_are_answered_soon_after_it_is() {
    for millis in [1, 200, 2_000, 20_000] {
        let mock = MockService::new(move |_: ToolCall, _| async move {
            sleep(Duration::from_millis(millis)).await;
            Ok(ToolOutput::text("fine"))
        });
        let builder = Stack::builder().call_deadline(Duration::from_secs(600));
        let (stack, server) = alone(builder, vec![read("get_it")], &mock).await;
        let tool = ToolName::new("get_it").unwrap();
        let circuit = stack.breaker_set().circuit(server.id(), &tool);
        for _ in 0..3 {
            circuit.clone().admit().unwrap().fail(&"down");
        }
        let began = Instant::now();
        let waiting = (0..20).map(|key| stack.call("s.get_it", json!({"key": key})));
        for answer in join_all(waiting).await {
            answer.unwrap();
        }
        // open for 30 s; then the probe, and all others, which ask again every second
        let most = Duration::from_millis(30_000 + 2 * millis + 2_000);
        let took = began.elapsed();
        assert!(took < most, "{millis} ms: {took:?}");
        assert_eq!(mock.started(), 20);
    }
}
