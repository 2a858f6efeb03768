//! What a stack reports about routing: before calls go, as they go, and in numbers.

use std::time::Duration;

use callward::router::RouteEvent;
use callward::{Annotations, Server, ServerId, Stack, ToolSpec, Tools};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;

use crate::bed::{has, recorded};

fn replica(id: &str, weight: u32) -> Server {
    let read = ToolSpec::new("get_order").annotations(Annotations::default().with_read_only(true));
    let delete =
        ToolSpec::new("delete_order").annotations(Annotations::default().with_destructive(true));
    let tools = Tools::new(id)
        .unwrap()
        .tool(read, |_: Value| async {
            tokio::time::sleep(Duration::from_millis(80)).await;
            Ok::<_, String>("an order")
        })
        .unwrap()
        .tool(delete, |_: Value| async { Ok::<_, String>("gone") })
        .unwrap();
    Server::new(tools)
        .in_set("shop".parse().unwrap())
        .weight(weight)
}

async fn stack() -> Stack {
    Stack::builder()
        .server(replica("one", 80))
        .server(replica("two", 60))
        .server(replica("light", 10))
        .build()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_is_explained_who_would_get_a_call_now() {
    let stack = stack().await;
    let delete = stack.explain("shop.delete_order").unwrap();
    let decision = delete.route().unwrap();
    assert_eq!(decision.strategy, "peak_ewma");
    assert_eq!((decision.servers, decision.eligible), (3, 2));
    let chosen = decision.chosen.clone().unwrap();
    let (one, two): (ServerId, ServerId) = ("one".parse().unwrap(), "two".parse().unwrap());
    let weight = |server: &ServerId| if *server == one { 80 } else { 60 };
    let other = if chosen == one { two } else { one.clone() };
    assert_eq!(decision.alternates, std::slice::from_ref(&other));
    let text = delete.to_string();
    let first = format!("{chosen} (weight {})  <- chosen now", weight(&chosen));
    let next = format!("{other} (weight {})  <- asked if", weight(&other));
    let light = "light (weight 10), never: it is too light";
    has(text, &[&first, &next, light]);
    let light = decision.candidates.iter().find(|one| one.weight == 10);
    assert_eq!(light.unwrap().unfit, Some("too_light"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_held_back_is_said_to_be() {
    let stack = stack().await;
    let one = "one".parse().unwrap();
    stack
        .breaker_set()
        .force_open(&one, callward::breaker::Subject::Server);
    let delete = stack.explain("shop.delete_order").unwrap();
    let decision = delete.route().unwrap();
    assert_eq!(decision.chosen, Some("two".parse().unwrap()));
    let of_one = delete.candidates().iter().find(|it| it.server == one);
    assert_eq!(of_one.unwrap().why_not.unwrap().as_str(), "held_open");
}

#[tokio::test(start_paused = true)]
async fn explaining_leaves_no_trace() {
    let stack = stack().await;
    let mut events = stack.route_events();
    let before = stack.routes();
    for _ in 0..10 {
        stack.explain("shop.get_order").unwrap();
        stack.explain_call("shop.delete_order", "{}").unwrap();
    }
    assert_eq!(stack.routes(), before);
    assert_eq!(events.next().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn decisions_are_heard_and_recorded_alike() {
    let stack = stack().await;
    let mut events = stack.route_events();
    let (_, record) = recorded(&stack, "shop.delete_order", "").await;
    let Some(RouteEvent::RouteDecision(heard)) = events.next().await else {
        panic!("a decision");
    };
    let routes = record.facts().decisions.into_iter();
    assert_eq!(
        routes.filter_map(|kept| kept.route).collect::<Vec<_>>(),
        [heard]
    );
}
