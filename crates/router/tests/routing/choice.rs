//! Which server gets a call, and why.

use crate::bed::{Bed, delete, members, of, read, rows, server, strategy};
use callward_core::{Delivery, ErrorKind};
use callward_testkit::{call, tool};
use serde_json::json;

/// Turns take the heaviest first, then servers as they were added.
const CHOICES: &str = "
    strategy           servers                       tool   routed          reason
    peak_ewma          a                             read   aa              only server
    peak_ewma          a!unreachable                 read   aa              no healthy server
    peak_ewma          a!not_offered b               read   bbbbbbbb        peak_ewma
    round_robin        a b=1 c                       read   acbacb          round_robin
    priority           a=20 b=90!unreachable c d     read   ccc             priority
    weighted           a=5 b=1 c=1                   read   aaabacaaaabaca  weighted
    round_robin        a b+caching                   put    bbb             preferred category
    round_robin        a b+caching                   read   abab            round_robin
    round_robin        a b+caching!unreachable       put    aaa             round_robin
    round_robin        a=90 b+caching c=49+caching   clear  bbbb            preferred category
    least_connections  a b=0                         read   aaaa            least_connections
    round_robin        a!unreachable b=0             read   bb              standby
";

#[tokio::test(start_paused = true)]
async fn calls_go_where_rule_and_strategy_say() {
    for [name, servers, effect, routed, reason] in rows(CHOICES) {
        let (bed, tool) = (Bed::by(strategy(name), servers), of(effect));
        let found = bed.route_many(&tool, routed.len()).await;
        assert_eq!(found, routed, "{name}: {effect} of {servers}");
        let found = bed.route(&tool).await.1;
        assert_eq!(found, reason, "{name}: {effect} of {servers}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_set_takes_its_own_turns() {
    let bed = Bed::in_turn("a b");
    bed.pool
        .set_members("other".parse().unwrap(), members("x y"));
    let (here, there) = (of("read"), tool("read").set("other").build());
    for (first, second) in [("a", "x"), ("b", "y"), ("a", "x")] {
        assert_eq!(bed.route(&here).await.0, first);
        assert_eq!(bed.route(&there).await.0, second);
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_failed_this_call_come_last() {
    let bed = Bed::in_turn("a b");
    let mut again = read();
    again.attempt_mut().advance(Some(&server("a")));
    for _ in 0..3 {
        assert_eq!(bed.route_call(again.clone()).await.0, "b");
    }
    again.attempt_mut().advance(Some(&server("b")));
    let (_, reason) = bed.route_call(again).await;
    assert_eq!(reason, "every other server failed this call");
}

const REFUSALS: &str = "
    servers                  call               message
    a=49 b=10!unreachable    delete             no server of set \"test\" may take tool \
        \"delete\": a has weight 49, below 50; b has weight 10, below 50, and cannot be reached
    a!unreachable b!open     delete             no server of set \"test\" may take tool \
        \"delete\": a cannot be reached; b has an open breaker
    a!not_offered            read               no server of set \"test\" may take tool \
        \"read\": a does not offer the tool
    a*0.5 b                  costly             no server of set \"test\" may take tool \
        \"costly\": a costs 5 a call, above the budget of 4; b costs 10 a call, above the \
        budget of 4
    a*0.5 b                  costly, pinned     the call of tool \"costly\" is pinned to server \
        \"b\", which costs 10 a call, above the budget of 4; without the pin the router \
        chooses among the set's servers
    a b=49                   delete, pinned     the call of tool \"delete\" is pinned to server \
        \"b\", which has weight 49, below 50; without the pin the router chooses among the \
        set's servers
";

#[tokio::test(start_paused = true)]
async fn a_call_that_no_server_may_take_fails_with_the_reason_of_each() {
    let costly = || {
        let costly = tool("costly").read_only();
        let costly = costly.hint(|hints| hints.cost_hint = Some(10.0)).build();
        call(&costly, json!({})).with_cost_budget(4.0)
    };
    for [servers, request, message] in rows(REFUSALS) {
        let bed = Bed::of(servers);
        let request = match request {
            "read" => read(),
            "delete" => delete(),
            "delete, pinned" => delete().pinned_to(server("b")),
            "costly" => costly(),
            _ => costly().pinned_to(server("b")),
        };
        let error = bed.fail(request).await;
        assert_eq!(error.message, message);
        assert_eq!(error.kind, ErrorKind::NoEligibleServer);
        assert_eq!(error.delivery, Delivery::NotSent);
        let ids = members(servers).into_iter();
        let started: usize = ids.map(|one| bed.started(one.server().as_str())).sum();
        assert_eq!(started, 0, "{servers}");
    }
}
