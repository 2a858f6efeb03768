//! The limits of principals, on a paused clock.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::{CallRecord, Stage, Verdict};
use callward_core::{Caller, ErrorKind, Principal, Tool, ToolCall, ToolError, ToolOutput};
use callward_limit::{PrincipalLimit, PrincipalLimitConfig, PrincipalLimitLayer};
use callward_testkit::{MockService, call, tool};
use futures_util::{FutureExt, poll};
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, advance, sleep_until};
use tower::{Layer, ServiceExt};

/// Limits, in the order of the fields; 0 means none.
fn limits(of: [u32; 6]) -> PrincipalLimitConfig {
    serde_json::from_value(json!({
        "calls_per_minute": (of[0] > 0).then_some(of[0]),
        "writes_per_minute": (of[1] > 0).then_some(of[1]),
        "destructive_per_minute": (of[2] > 0).then_some(of[2]),
        "lists_per_minute": (of[3] > 0).then_some(of[3]),
        "concurrent": (of[4] > 0).then_some(of[4]),
        "concurrent_writes": (of[5] > 0).then_some(of[5]),
    }))
    .unwrap()
}

fn of_kind(kind: &str) -> Arc<Tool> {
    match kind {
        "get" => tool("get").read_only().build(),
        "set" => tool("set").idempotent().build(),
        "wipe" => tool("wipe").destructive().build(),
        name => tool(name)
            .hint(|hints| hints.destructive_hint = Some(false))
            .build(),
    }
}

fn by(who: &str, kind: &str) -> ToolCall {
    let caller = Caller::new(Principal::new(who));
    call(&of_kind(kind), json!({})).with_caller(Arc::new(caller))
}

/// Makes a call or a list that ends at once.
fn ask(
    layer: &PrincipalLimitLayer,
    service: &PrincipalLimit<MockService>,
    who: &str,
    kind: &str,
) -> Result<(), ToolError> {
    match kind {
        "list" => layer.admit_list(&Principal::new(who)),
        kind => {
            let answer = service.clone().oneshot(by(who, kind)).now_or_never();
            answer.unwrap().map(drop)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_in_all_its_limits_or_in_none() {
    let mock = MockService::counting();
    let layer = PrincipalLimitLayer::new(limits([6, 3, 1, 2, 0, 0]));
    let (service, start) = (layer.layer(mock.clone()), Instant::now());
    let mut passed = 0;
    for (at, who, kind, expected) in [
        (0, "ada", "wipe", ""),
        (0, "ada", "wipe", "destructive_per_minute 1 60000 60000"),
        (0, "ada", "set", ""),
        (0, "ada", "add", ""),
        (0, "ada", "add", "writes_per_minute 3 20000 60000"),
        // of two that refuse, the one that does so for longest
        (0, "ada", "wipe", "destructive_per_minute 1 60000 60000"),
        (0, "ada", "get", ""),
        (0, "ada", "get", ""),
        (0, "ada", "get", ""),
        (0, "ada", "get", "calls_per_minute 6 10000 60000"),
        (0, "bob", "wipe", ""),
        (0, "ada", "list", ""),
        (1, "ada", "list", ""),
        (2, "ada", "list", "lists_per_minute 2 28000 58000"),
        (9, "ada", "get", "calls_per_minute 6 1000 51000"),
        // a write that is refused takes no token of all calls
        (10, "ada", "add", "writes_per_minute 3 10000 50000"),
        (10, "ada", "get", ""),
        (10, "ada", "get", "calls_per_minute 6 10000 60000"),
        (20, "ada", "add", ""),
        (1000, "ada", "wipe", ""),
    ] {
        sleep_until(start + Duration::from_secs(at)).await;
        let result = ask(&layer, &service, who, kind);
        passed += usize::from(result.is_ok() && kind != "list");
        let said = result.err().map(|error| {
            assert_eq!(error.kind, ErrorKind::RateLimited);
            let (limit, wait) = (error.limit.unwrap(), error.retry_after.unwrap());
            let reset = limit.reset.unwrap().as_millis();
            format!("{} {} {} {reset}", limit.name, limit.max, wait.as_millis())
        });
        assert_eq!(said.unwrap_or_default(), expected, "{at} {who} {kind}");
        assert_eq!(mock.started(), passed);
    }
    let counted: BTreeMap<_, _> = layer.refusals().into_iter().collect();
    let expected = [("calls_per_minute", 3), ("destructive_per_minute", 2)];
    assert!(
        expected.iter().all(|(name, count)| counted[name] == *count),
        "{counted:?}"
    );
    // the record says why
    let record = Arc::new(CallRecord::new());
    let refused = service
        .oneshot(by("ada", "wipe").with_record(record.clone()))
        .await;
    let decision = record.facts().decisions.remove(0);
    assert_eq!(
        (decision.stage, decision.verdict),
        (Stage::Limit, Verdict::Refused)
    );
    assert_eq!(decision.reason, refused.unwrap_err().message);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_is_one_until_it_ends_in_any_way() {
    let (mock, gate) = MockService::gated();
    let layer = PrincipalLimitLayer::new(limits([0, 0, 0, 0, 2, 1]));
    let service = layer.layer(mock);
    let begin = |kind: &str| Box::pin(service.clone().oneshot(by("ada", kind)));
    let refuser = |error: ToolError| (error.limit.unwrap().name, error.retry_after.unwrap());
    let second = Duration::from_secs(1);
    let (mut write, mut read) = (begin("add"), begin("get"));
    assert!(poll!(&mut write).is_pending());
    let refused = begin("wipe").await.unwrap_err();
    assert_eq!(refuser(refused), ("concurrent_writes", second));
    assert!(poll!(&mut read).is_pending());
    assert_eq!(
        refuser(begin("get").await.unwrap_err()),
        ("concurrent", second)
    );
    // one ends while its future is kept, one is dropped
    gate.open(1);
    assert!(poll!(&mut write).is_ready());
    drop(read);
    let all = [begin("get"), begin("set")].map(|mut call| {
        assert!(call.as_mut().now_or_never().is_none());
        call
    });
    assert!(begin("get").await.is_err());
    drop(all);
    // before and after its first poll, and in it
    let panics = layer.layer(MockService::new(|_, n| async move {
        assert!(n > 6, "a tool that panics");
        Ok(ToolOutput::text(""))
    }));
    for _ in 0..6 {
        drop(panics.clone().oneshot(by("ada", "add")));
        let call = AssertUnwindSafe(panics.clone().oneshot(by("ada", "add")));
        assert!(call.catch_unwind().await.is_err());
    }
    panics.oneshot(by("ada", "add")).await.unwrap();
}

const KINDS: [&str; 5] = ["get", "set", "add", "wipe", "list"];
const NAMES: [&str; 3] = ["ada", "bob", "eve"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each principal gets what it would get alone, and of each limit no more than its burst and
    /// its rate in any minute.
    #[test]
    fn no_minute_has_more_than_limit_and_burst_and_no_flood_refuses_others(
        requests in prop::collection::vec((0_u64..3000, 0..NAMES.len(), 0..KINDS.len()), 1..300),
        most in prop::array::uniform4(1_u32..30),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let [calls, writes, destructive, lists] = most;
            let config = limits([calls, writes, destructive, lists, 1, 1]);
            let new = || PrincipalLimitLayer::new(config);
            let (together, alone) = (new(), NAMES.map(|_| new()));
            let over = |layer: &PrincipalLimitLayer| layer.layer(MockService::counting());
            let (shared, own) = (over(&together), alone.each_ref().map(over));
            let start = Instant::now();
            let mut passed = Vec::new();
            for (pause, who, kind) in requests {
                // floods: most requests come at once
                advance(Duration::from_millis(if pause < 2500 { 0 } else { pause })).await;
                let name = KINDS[kind];
                let result = ask(&together, &shared, NAMES[who], name);
                let expected = ask(&alone[who], &own[who], NAMES[who], name);
                prop_assert_eq!(result.is_ok(), expected.is_ok());
                if result.is_ok() {
                    passed.push((start.elapsed(), who, kind));
                }
            }
            // which of the kinds count against each of the rates
            let counted = [
                (calls, 0..4),
                (writes, 1..4),
                (destructive, 3..4),
                (lists, 4..5),
            ];
            for (first, who, _) in &passed {
                for (most, kinds) in &counted {
                    let within = |at: Duration| at >= *first && at < *first + Duration::from_secs(60);
                    let same = passed.iter().filter(|(at, of, kind)| {
                        of == who && within(*at) && kinds.contains(kind)
                    });
                    let found = same.count();
                    prop_assert!(found <= 2 * *most as usize, "{found} of {most}");
                }
            }
            Ok(())
        })?;
    }
}
