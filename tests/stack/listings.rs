//! Listings that hang, panic or never end: the server is followed all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use callward::{Server, Stack};
use callward_core::{List, Method, ServerEvent, ToolDefinition};
use callward_testkit::{MockServer, MockService};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::bed::{read, turns};
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
