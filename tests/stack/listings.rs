//! Listings that hang, panic or never end: the server is followed all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use callward::registry::{Hold, ReviewOptions};
use callward::router::RouteEvent;
use callward::{Annotations, Delivery, ErrorKind, FreshnessMode, Server, Stack};
use callward_core::{List, Method, ServerEvent, ToolDefinition};
use callward_testkit::{MockServer, MockService};
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::bed::{failure, read, turns};
use crate::lister::{Listed, Lister, some_tools};

fn lister(
    script: impl Fn(&MockServer, usize) -> Option<Listed> + Send + Sync + 'static,
) -> Arc<Lister> {
    Lister::new(&MockService::counting(), script)
}

async fn started(server: &Arc<Lister>) -> Stack {
    server.start(Stack::builder()).await
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_hangs_hides_no_news_of_its_server() {
    let server = lister(|_, n| (n > 1).then(some_tools));
    let building = Stack::builder().server(Server::shared(server.clone()));
    let building = tokio::spawn(building.build());
    turns().await;
    server.mock.emit(&ServerEvent::Up);
    turns().await;
    assert_eq!(server.listings(), 1, "it hangs");

    let start = Instant::now();
    let down = ServerEvent::Down("pulled the plug".to_owned());
    server.mock.emit(&down);
    let stack = building.await.unwrap().unwrap();
    let error = stack.servers()[0].last_error.clone();
    assert_eq!(error.as_deref(), Some("pulled the plug"));
    let mut changes = stack.changes();
    server.mock.emit(&ServerEvent::Up);
    changes.next().await.unwrap();
    stack.call("s.get_a", json!({})).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn list_changed_in_every_listing_does_not_loop_and_a_storm_is_one_listing() {
    let server = lister(|mock, _| {
        mock.emit(&ServerEvent::ListChanged(List::Tools));
        Some(some_tools())
    });
    let stack = started(&server).await;
    sleep(Duration::from_secs(10)).await;
    let listings = server.listings();
    assert!((2..=11).contains(&listings), "{listings} listings in 10 s");
    assert!(stack.servers()[0].up);

    let server = lister(|_, _| Some(some_tools()));
    let _stack = started(&server).await;
    for _ in 0..1000 {
        server.mock.emit(&ServerEvent::ListChanged(List::Tools));
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(server.listings(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changes_all_the_time_is_read_once_a_second_and_at_last() {
    let named = Arc::new(AtomicUsize::new(0));
    let name = named.clone();
    let server = lister(move |_, _| {
        let tool = read(&format!("get_{}", name.load(Ordering::SeqCst)));
        Some(Ok(vec![
            ToolDefinition::from_json(tool.to_string()).unwrap(),
        ]))
    });
    let stack = started(&server).await;
    sleep(Duration::from_secs(10)).await;
    for n in 1..=500 {
        named.store(n, Ordering::SeqCst);
        server.mock.emit(&ServerEvent::ListChanged(List::Tools));
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_secs(2)).await;
    stack.call("s.get_500", json!({})).await.unwrap();
    let at = server.listed_at();
    assert!(at.len() > 3 && at[1] < 10.1, "the first at once: {at:?}");
    let pauses = at.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(pauses.clone().all(|pause| pause >= 1.0), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn prompts_are_announced_when_they_change_and_after_a_restart() {
    let server = lister(|_, _| Some(Ok(vec![ToolDefinition::method(Method::ListPrompts)])));
    let stack = started(&server).await;
    let mut changes = stack.changes();
    let [prompts, resources] = [List::Prompts, List::Resources].map(ServerEvent::ListChanged);
    for (events, is_announced) in [
        (vec![resources], false),
        (vec![prompts], true),
        (
            vec![ServerEvent::Down("gone".to_owned()), ServerEvent::Up],
            true,
        ),
    ] {
        events.iter().for_each(|event| server.mock.emit(event));
        turns().await;
        let expected = is_announced.then_some(Some(List::Prompts));
        assert_eq!(changes.next().now_or_never(), expected, "{events:?}");
        assert_eq!(changes.next().now_or_never(), None, "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_panics_has_failed_and_is_tried_again() {
    let server = lister(|_, n| {
        assert_ne!(n, 1, "the first listing panics");
        Some(some_tools())
    });
    let stack = started(&server).await;
    let error = stack.servers()[0].last_error.clone().unwrap();
    assert!(error.contains("panicked"), "{error}");
    stack.changes().next().await.unwrap();
    stack.call("s.get_a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_is_registered_beside_the_threads_that_run_calls() {
    let server = lister(|_, _| Some(some_tools()));
    let _stack = started(&server).await;
    let here = std::thread::current().id();
    assert!(server.threads.lock().iter().any(|thread| *thread != here));
}

#[tokio::test(start_paused = true)]
async fn results_are_dropped_when_tools_change_or_the_connection_is_made_anew() {
    let is_empty = Arc::new(AtomicBool::new(false));
    let lists_none = is_empty.clone();
    let server = lister(move |_, _| {
        let none = lists_none.load(Ordering::SeqCst);
        Some(if none { Ok(Vec::new()) } else { some_tools() })
    });
    let stack = started(&server).await;
    let ask = async || {
        let answer = stack.call("s.get_a", json!({})).await.unwrap();
        answer.to_text()
    };
    assert_eq!([ask().await, ask().await], ["1", "1"]);
    server.mock.emit(&ServerEvent::ListChanged(List::Tools));
    turns().await;
    assert_eq!([ask().await, ask().await], ["2", "2"]);
    server.mock.emit(&ServerEvent::Down("gone".to_owned()));
    turns().await;
    server.mock.emit(&ServerEvent::Up);
    turns().await;
    assert_eq!([ask().await, ask().await], ["3", "3"]);
    for gone in [true, false] {
        is_empty.store(gone, Ordering::SeqCst);
        let mut changes = stack.changes();
        server.mock.emit(&ServerEvent::ListChanged(List::Tools));
        changes.next().await.unwrap();
    }
    assert_eq!(ask().await, "4", "the tool went and came back");
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_there_at_once_and_its_startup_ends_with_the_timeout() {
    let began = Instant::now();
    let limit = Duration::from_secs(3);
    for (lists, lasts) in [(false, limit), (true, Duration::ZERO)] {
        let server = lister(move |_, _| lists.then(some_tools));
        let began = Instant::now();
        let builder = Stack::builder().server(Server::shared(server.clone()));
        let (stack, startup) = builder.startup_timeout(limit).start().unwrap();
        assert!(!stack.servers()[0].up);
        turns().await;
        server.mock.emit(&ServerEvent::Up);
        startup.finished().await;
        assert_eq!(began.elapsed(), lasts);
        assert_eq!(stack.servers()[0].up, lists);
    }
    assert_eq!(began.elapsed(), limit);
}

/// A server whose tool `get_a` has another description in each listing from the n-th on.
fn changing(from: usize) -> Arc<Lister> {
    lister(move |_, n| {
        let mut tool = read("get_a");
        tool["description"] = format!("Gets {}.", n.max(from) - from).into();
        Some(Ok(vec![
            ToolDefinition::from_json(tool.to_string()).unwrap(),
        ]))
    })
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_again_at_each_refresh_and_equal_lists_drop_no_result() {
    let server = changing(4);
    let stack = server
        .start(Stack::builder().refresh(Duration::from_secs(100)))
        .await;
    let hits = |stack: &Stack| stack.cache().stats().counts.hits;
    stack.call("s.get_a", json!({})).await.unwrap();
    sleep(Duration::from_secs(221)).await;
    assert_eq!(server.listings(), 3);
    stack.call("s.get_a", json!({})).await.unwrap();
    assert_eq!(hits(&stack), 1);
    let at = server.listed_at();
    let pauses = at.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(
        pauses.clone().all(|pause| (90.0..=111.0).contains(&pause)),
        "{at:?}"
    );
    // none while it is down
    server.mock.emit(&ServerEvent::Down("gone".to_owned()));
    sleep(Duration::from_secs(1000)).await;
    assert_eq!(server.listings(), 3);
    server.mock.emit(&ServerEvent::Up);
    sleep(Duration::from_secs(221)).await;
    assert_eq!(server.listings(), 6);
    stack.call("s.get_a", json!({})).await.unwrap();
    assert_eq!(hits(&stack), 1, "its description changed");
}

#[tokio::test(start_paused = true)]
async fn a_listing_on_demand_joins_one_that_runs() {
    let server = lister(|_, n| (n != 2).then(some_tools));
    let stack = started(&server).await;
    let id = "s".parse().unwrap();
    let start = Instant::now();
    let both = tokio::join!(stack.relist(&id), stack.relist(&id));
    assert_eq!((server.listings(), start.elapsed().as_secs()), (2, 60));
    for status in [both.0.unwrap(), both.1.unwrap()] {
        assert_eq!(status.listings.failed, 1);
        assert!(status.last_error.unwrap().contains("within 60 s"));
    }
    let status = stack.relist(&id).await.unwrap();
    assert_eq!((server.listings(), status.listings.listed), (3, 2));
    assert_eq!(status.last_error, None);
    assert!(stack.relist(&"other".parse().unwrap()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_approved_tool_starts_without_results_and_evidence() {
    let server = changing(1);
    let mut review = ReviewOptions::default();
    review.hold = Hold::Changes;
    let builder = Stack::builder()
        .freshness(FreshnessMode::Learned)
        .review(review);
    let stack = server.start(builder).await;
    for _ in 0..30 {
        stack.call("s.get_a", json!({})).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    let repeats = || {
        stack
            .cache()
            .all_evidence()
            .values()
            .map(|it| it.repeats)
            .sum::<u64>()
    };
    assert!(repeats() > 0);
    let mut events = stack.route_events();
    stack.relist(&"s".parse().unwrap()).await.unwrap();
    let all = heard(&mut events);
    let held = all.iter().find(|it| it["type"] == "toolHeld").unwrap();
    assert_eq!(held["fields"], json!(["description"]));
    let error = stack.call("s.get_a", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("held for review"), "{error}");
    let held = stack.catalogue().held()[0].clone();
    stack.approve(&held.set, &held.tool, &held.digest).unwrap();
    let types = heard(&mut events).into_iter().map(|it| it["type"].clone());
    assert_eq!(types.collect::<Vec<_>>(), ["toolRegistered", "toolChanged"]);
    stack.call("s.get_a", json!({})).await.unwrap();
    assert_eq!(repeats(), 0);
}

/// Returns the events so far as JSON.
fn heard(events: &mut (impl futures_util::Stream<Item = RouteEvent> + Unpin)) -> Vec<Value> {
    let next = || Some(json!(events.next().now_or_never()??));
    std::iter::from_fn(next).collect()
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_asked_again_ever_more_seldom_and_fails_nothing() {
    let server = lister(|_, n| Some(if n < 12 { Ok(Vec::new()) } else { some_tools() }));
    let stack = started(&server).await;
    let status = &stack.servers()[0];
    assert!(status.up && status.last_error.as_ref().unwrap().contains("lists none"));
    let id = "s".parse().unwrap();
    let warnings = stack.discovery(&id).await.unwrap().warnings;
    assert!(warnings[0].message.contains("lists none"), "{warnings:?}");
    sleep(Duration::from_secs(400)).await;
    let at = server.listed_at();
    let pauses: Vec<_> = at
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).round())
        .collect();
    assert_eq!(
        pauses[2..],
        [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0]
    );
    let status = &stack.servers()[0];
    assert_eq!((status.listings.failed, &status.last_error), (0, &None));
    stack.call("s.get_a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn listings_and_connections_are_events_in_their_order() {
    let server = lister(|_, n| match n {
        2 => Some(Ok(vec![])),
        3 => Some(Err(failure(ErrorKind::ServerFault, Delivery::Answered))),
        _ => Some(some_tools()),
    });
    let stack = started(&server).await;
    let id = "s".parse().unwrap();
    let mut events = stack.route_events();
    let outcome = stack.discover(&id).await.unwrap();
    assert_eq!((outcome.listed, outcome.removed.len()), (0, 7));
    let types = |heard: &[Value]| {
        heard
            .iter()
            .map(|it| it["type"].clone())
            .collect::<Vec<_>>()
    };
    let all = heard(&mut events);
    assert_eq!(types(&all)[..7], vec!["toolUnregistered"; 7]);
    assert_eq!(
        (&all[7]["type"], &all[7]["removed"]),
        (&json!("discoveryCompleted"), &json!(7))
    );
    let outcome = stack.discover(&id).await.unwrap();
    assert!(outcome.error.unwrap().contains("it failed"));
    assert_eq!(types(&heard(&mut events)), ["discoveryFailed"]);
    let outcome = stack.discover(&id).await.unwrap();
    assert_eq!((outcome.listed, outcome.added.len()), (7, 7));
    assert_eq!(
        types(&heard(&mut events))[6..],
        ["toolRegistered", "discoveryCompleted"]
    );
    server.mock.emit(&ServerEvent::Down("gone".to_owned()));
    server.mock.emit(&ServerEvent::Down("gone".to_owned()));
    turns().await;
    let all = heard(&mut events);
    let down: Vec<_> = all.iter().filter(|it| it["type"] == "serverDown").collect();
    assert_eq!((down.len(), &down[0]["reason"]), (1, &json!("gone")));
    assert_eq!(
        stack.discovery(&id).await.unwrap().error.as_deref(),
        Some("gone")
    );
    server.mock.emit(&ServerEvent::Up);
    sleep(Duration::from_secs(1)).await;
    let all = types(&heard(&mut events));
    let up = all.iter().position(|it| it == "serverUp").unwrap();
    assert_eq!(
        all[up + 1..].last().unwrap(),
        "discoveryCompleted",
        "{all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn other_hints_of_an_operator_are_an_event() {
    let stack = started(&lister(|_, _| Some(some_tools()))).await;
    let mut events = stack.route_events();
    let hints = Annotations::default().with_read_only(true);
    let more = MockServer::new("t", vec![read("get_a")], MockService::counting());
    let more = Server::shared(more).in_set("s".parse().unwrap());
    let more = more.override_tool("add_0".parse().unwrap(), hints);
    let adding = stack.clone();
    tokio::spawn(async move { adding.add_server(more).await });
    turns().await;
    let all = heard(&mut events);
    assert_eq!(
        (&all[0]["type"], &all[0]["tool"]),
        (&json!("annotationsUpdated"), &json!("add_0"))
    );
}
