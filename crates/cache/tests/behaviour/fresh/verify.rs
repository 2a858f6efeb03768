//! Looking whether hits are right.

use std::sync::Arc;
use std::sync::Mutex;

use serde_json::json;
use tollgate_cache::{BypassReason, CacheConfig, Happened};
use tollgate_core::{Delivery, Purpose, ToolOutput};
use tollgate_testkit::{MockService, call, tool};

use super::{SECOND, answer, config, pass};
use crate::common::{Bench, by, failure, get, read, settle, write};

fn always() -> CacheConfig {
    config(|config| config.verify_per_thousand = 1000)
}

/// A cache with an answer, before a server that answers otherwise each time, if it is let.
async fn gated() -> (Bench, tollgate_testkit::Gate) {
    let (mock, gate) = MockService::gated();
    let bench = Bench::with(always(), mock);
    gate.open(1);
    bench.ask(read()).await.unwrap();
    (bench, gate)
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_answers_change_without_a_write_is_not_kept_any_more() {
    let bench = Bench::with(always(), MockService::counting());
    let told = Arc::new(Mutex::new(Vec::new()));
    let hear = told.clone();
    assert!(bench.handle.on_volatile(move |tool, evidence| {
        hear.lock()
            .unwrap()
            .push((tool.clone(), evidence.to_owned()));
    }));
    let mut events = bench.handle.events();
    assert_eq!(bench.text(read()).await, "1");
    pass(2 * SECOND).await;
    assert_eq!(bench.text(read()).await, "1", "no caller waits for a check");
    settle().await;
    assert_eq!(bench.mock.seen()[1].purpose(), Purpose::Verify);

    assert_eq!(bench.text(read()).await, "3");
    assert_eq!(bench.text(read()).await, "4");
    let stats = bench.stats();
    assert_eq!(stats.bypasses.get(BypassReason::Volatile), 2);
    assert_eq!(stats.checks, 1);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0.digest(), get().digest());
    assert!(told[0].1.contains("2.0 s apart"), "{}", told[0].1);
    assert!(told[0].1.contains("nothing was written"), "{}", told[0].1);
    let mut turned = 0;
    while let Ok(event) = events.try_recv() {
        if let Happened::TurnedVolatile {
            definition,
            evidence,
        } = event.what
        {
            assert_eq!((definition, &*evidence), (get().digest(), &*told[0].1));
            turned += 1;
        }
    }
    assert_eq!(turned, 1);
    assert!(bench.handle.tools()[0].volatile);
}

#[tokio::test(start_paused = true)]
async fn other_tools_another_definition_and_what_is_taken_back_are_kept() {
    let bench = Bench::with(always(), MockService::counting());
    let turn = async |read: &dyn Fn() -> tollgate_core::ToolCall| {
        bench.ask(read()).await.unwrap();
        bench.ask(read()).await.unwrap();
        settle().await;
        let before = bench.stats().hits;
        bench.ask(read()).await.unwrap();
        assert_eq!(bench.stats().hits, before, "it turned volatile");
    };
    turn(&read).await;
    let kept = async |call: &dyn Fn() -> tollgate_core::ToolCall| {
        let before = bench.stats().hits;
        bench.ask(call()).await.unwrap();
        bench.ask(call()).await.unwrap();
        bench.stats().hits > before
    };
    let other = tool("list").read_only().build();
    assert!(kept(&|| call(&other, json!({}))).await);
    let redefined = tool("get")
        .read_only()
        .hint(|hints| hints.title = Some("anew".into()))
        .build();
    assert!(kept(&|| call(&redefined, json!({}))).await);
    settle().await;
    let fresh = get();
    bench.handle.trust_again(fresh.set(), fresh.name());
    let started = bench.mock.started();
    bench.ask(read()).await.unwrap();
    let anew = bench.mock.started();
    assert_eq!(anew, started + 1, "what was kept before is gone");
    assert!(kept(&read).await);
}

#[tokio::test(start_paused = true)]
async fn answers_that_say_the_same_are_left_alone() {
    let mock = MockService::new(|_, n| async move {
        let body = if n % 2 == 0 {
            format!(r#"{{"content":[],"structuredContent":{{"a":1,"b":2}},"_meta":{{"n":{n}}}}}"#)
        } else {
            format!(r#"{{"_meta":{{"n":{n}}}, "structuredContent":{{"b":2, "a":1}},"content":[]}}"#)
        };
        Ok(ToolOutput::from_json(body).unwrap())
    });
    let bench = Bench::with(always(), mock);
    for _ in 0..10 {
        bench.ask(read()).await.unwrap();
        settle().await;
    }
    let stats = bench.stats();
    assert_eq!((stats.hits, stats.checks, bench.mock.started()), (9, 9, 10));
    assert!(!bench.handle.tools()[0].volatile);
}

#[tokio::test(start_paused = true)]
async fn a_write_during_the_check_accounts_for_the_difference() {
    let (bench, gate) = gated().await;
    bench.ask(read()).await.unwrap();
    settle().await;
    assert_eq!(bench.mock.running(), 1);
    let writing = bench.start(write()).await;
    gate.open(2);
    writing.await.unwrap().unwrap();
    settle().await;
    assert_eq!((bench.stats().checks, bench.stats().unclear_checks), (0, 1));
    gate.open(1);
    bench.ask(read()).await.unwrap();
    assert_eq!(bench.text(read()).await, "4", "still kept");
}

#[tokio::test(start_paused = true)]
async fn a_check_that_comes_after_a_write_is_not_even_sent() {
    let bench = Bench::with(always(), MockService::counting());
    for call in [read(), read(), write()] {
        bench.ask(call).await.unwrap();
    }
    // the check was drawn by the second read, and has not had its turn yet
    assert_eq!(bench.mock.started(), 2);
    settle().await;
    assert_eq!((bench.mock.started(), bench.stats().unclear_checks), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_purge_during_the_check_leaves_it_without_a_verdict() {
    for purge in 0..4 {
        let (bench, gate) = gated().await;
        bench.ask(read()).await.unwrap();
        settle().await;
        let call = read();
        match purge {
            0 => bench.handle.purge_all(),
            1 => bench.handle.purge_set(call.tool().set()),
            2 => bench
                .handle
                .purge_tool(call.tool().set(), call.tool().name()),
            _ => bench.handle.purge_principal(&call.caller().principal),
        }
        gate.open(1);
        settle().await;
        assert_eq!((bench.stats().checks, bench.stats().unclear_checks), (0, 1));
        assert!(!bench.handle.tools()[0].volatile, "{purge}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_fails_says_nothing() {
    for fault in [true, false] {
        let mock = MockService::new(move |_, n| async move {
            match n {
                1 => Ok(answer("1")),
                _ if fault => Err(failure(Delivery::NotSent)),
                _ => Ok(ToolOutput::error_text("busy")),
            }
        });
        let bench = Bench::with(always(), mock);
        for _ in 0..3 {
            assert_eq!(bench.text(read()).await, "1");
            settle().await;
        }
        assert_eq!((bench.stats().hits, bench.stats().unclear_checks), (2, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_one_check_of_a_key_at_a_time_and_it_is_that_callers() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::with(always(), mock);
    gate.open(2);
    for who in ["a", "b"] {
        bench.ask(by(who, read())).await.unwrap();
    }
    for _ in 0..20 {
        bench.ask(by("b", read())).await.unwrap();
    }
    settle().await;
    assert_eq!(bench.mock.started(), 3);
    assert_eq!(bench.mock.seen()[2].caller().principal.as_str(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_share_is_checked_and_none_by_default() {
    let checked = async |per_thousand: u32, seed: u64| {
        let mock = MockService::new(|_, _| async { Ok(answer("a")) });
        let config = config(|config| {
            config.verify_per_thousand = per_thousand;
            config.verify_seed = Some(seed);
        });
        let bench = Bench::with(config, mock);
        for _ in 0..501 {
            bench.ask(read()).await.unwrap();
            settle().await;
        }
        bench.stats().checks
    };
    assert_eq!(checked(0, 1).await, 0);
    let some = checked(100, 1).await;
    assert!((30..70).contains(&some), "{some}");
    assert_eq!(checked(100, 1).await, some);
    assert_eq!(CacheConfig::default().verify_per_thousand, 0);
}
