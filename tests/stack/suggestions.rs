//! What calls suggest, and what an operator accepts of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use callward::core::{Field, List, ServerEvent, Source};
use callward::registry::{AcceptError, PinStore, Pins, ReviewOptions};
use callward::{Annotations, Server, Stack, ToolOutput};
use callward_testkit::{MockServer, MockService};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bed::{alone, read, turns, up, write};

/// Where pins are kept, as long as that works.
#[derive(Debug, Default)]
struct Store {
    pins: Mutex<Pins>,
    is_full: AtomicBool,
}

impl PinStore for Store {
    fn save(&self, pins: &Pins) -> io::Result<()> {
        if self.is_full.load(Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // as a file does
        let text = serde_json::to_vec(pins)?;
        *self.pins.lock() = serde_json::from_slice(&text)?;
        Ok(())
    }
}

/// A tool that takes 90 s, and one that answers at once.
fn service() -> MockService {
    MockService::new(|call, _| async move {
        if call.tool().name().as_str() == "get_report" {
            sleep(Duration::from_secs(90)).await;
        }
        Ok(ToolOutput::text("done"))
    })
}

fn tools(description: &str) -> Vec<Value> {
    let mut slow = read("get_report");
    slow["description"] = description.into();
    vec![slow, write("put")]
}

async fn start(store: &Arc<Store>) -> (Stack, Arc<MockServer>) {
    let mut review = ReviewOptions::default();
    review.pins = store.pins.lock().clone();
    review.store = Some(store.clone());
    let builder = Stack::builder().review(review).loop_guard(None);
    alone(builder, tools(""), &service()).await
}

fn timeout(stack: &Stack) -> u64 {
    let catalogue = stack.catalogue();
    let tool = catalogue.find("s.get_report").unwrap().tool().clone();
    tool.plan().limits.attempt_timeout.as_secs()
}

#[tokio::test(start_paused = true)]
async fn an_accepted_timeout_counts_until_the_definition_changes() {
    let store = Arc::<Store>::default();
    let (stack, server) = start(&store).await;
    assert!(stack.call("s.get_report", json!({})).await.is_err());
    for _ in 0..30 {
        stack.call("s.put", json!({})).await.unwrap();
    }
    let found = stack.suggestions();
    assert_eq!(found.len(), 1, "{found:?}");
    let suggested = &found[0];
    assert_eq!(suggested.tool.as_str(), "get_report");
    let (from, to) = (&*suggested.from, &*suggested.to);
    assert_eq!(
        (suggested.change, from, to),
        ("attempt timeout", "1m", "2m")
    );
    assert_eq!(timeout(&stack), 60, "nothing applies by itself");

    store.is_full.store(true, Relaxed);
    let error = stack.accept(&suggested.id).unwrap_err();
    assert!(matches!(error, AcceptError::Unwritten(_)), "{error}");
    assert_eq!(timeout(&stack), 60);
    store.is_full.store(false, Relaxed);
    let error = stack.accept("0").unwrap_err().to_string();
    assert!(error.contains("look at `callward review`"), "{error}");
    let mut changes = stack.changes();
    assert_eq!(stack.accept(&suggested.id).unwrap(), *suggested);
    assert_eq!(
        futures_util::StreamExt::next(&mut changes).await,
        Some(List::Tools)
    );
    assert_eq!(timeout(&stack), 120);
    let of = stack
        .catalogue()
        .find("s.get_report")
        .unwrap()
        .tool()
        .clone();
    let from = of.resolved.provenance_of(Field::EstimatedDuration).unwrap();
    assert_eq!(from.source, Source::Operator);
    stack.call("s.get_report", json!({})).await.unwrap();
    assert_eq!(stack.suggestions(), [], "its attempts are counted again");
    assert!(stack.accept(&suggested.id).is_err());

    // another run knows it
    let (again, _) = start(&store).await;
    assert_eq!(timeout(&again), 120);
    let hints = Annotations::default().with_estimated_duration(1_000.0);
    let server_of = MockServer::new("s", tools(""), service());
    let spec = Server::shared(server_of.clone());
    let spec = spec.override_tool("get_report".parse().unwrap(), hints);
    let mut review = ReviewOptions::default();
    review.pins = store.pins.lock().clone();
    let stated = up(Stack::builder().review(review).server(spec), &[&server_of]).await;
    assert_eq!(timeout(&stated), 10, "the config comes first");

    server.set_tools(Ok(tools("It reports.")));
    server.emit(&ServerEvent::ListChanged(List::Tools));
    sleep(Duration::from_secs(5)).await;
    turns().await;
    assert_eq!(timeout(&stack), 60, "another definition");
}
