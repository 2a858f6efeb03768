//! The budget in many orders of steps, chosen by a scheduler.
//!
//! Threads pay in, take out, put back and make calls; each use of an atomic is a step, and any
//! other thread may go between two. Nothing that was paid is lost, nothing is paid out twice, and
//! at no moment are there more attempts than calls, a fifth of them and the reserve.
//!
//! What is known of one call, that it has paid among it, is in its own future and cannot race.
//!
//! Each of these faults, put in one at a time, fails a test here: a payment written by `store`
//! after a `load`; a withdrawal likewise; a retry that is put back though it was made.

use callward_core::{Delivery, ErrorKind, ToolError};
use callward_testkit::{call, tool};
use shuttle::sync::Arc;
use shuttle::sync::atomic::AtomicU64;
use shuttle::thread;
use tower::retry::Policy;

use crate::budget::TokenBucket;
use crate::sync::Ordering::SeqCst;
use crate::{RetryConfig, RetryLayer, RetryPolicy};

/// How many orders each test tries: enough to find each fault above several times over.
const ORDERS: usize = 4_000;
/// In hundredths of a retry.
const RESERVE: u64 = 100;
const SHARE: u64 = 20;

fn config() -> RetryConfig {
    RetryConfig {
        budget_reserve: 1,
        ..RetryConfig::default()
    }
}

/// Runs this in three threads, by their numbers, and waits for all.
fn together(run: impl Fn(u32) + Send + Sync + 'static) {
    let run = Arc::new(run);
    let spawn = |n| {
        let run = run.clone();
        thread::spawn(move || run(n))
    };
    let threads: Vec<_> = (0..3).map(spawn).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn nothing_is_lost() {
    let bucket = Arc::new(TokenBucket::new(&config()));
    let (paid, granted) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let (used, counted) = (bucket.clone(), granted.clone());
    together(move |_| {
        for _ in 0..3 {
            paid.fetch_add(SHARE, SeqCst);
            used.deposit();
        }
        for _ in 0..2 {
            if used.withdraw() {
                let out = counted.fetch_add(100, SeqCst) + 100;
                assert!(out <= RESERVE + paid.load(SeqCst), "more than was paid");
            }
        }
    });
    let granted = granted.load(SeqCst) / 100;
    assert_eq!(u64::from(bucket.refused()), 6 - granted);
    // 2.8 retries in all, and what is left is shown in whole ones
    assert_eq!(granted + u64::from(bucket.tokens()), 2);
    for _ in 0..2 {
        bucket.deposit();
    }
    // 0.2 more make it three
    assert_eq!(granted + u64::from(bucket.tokens()), 3);
}

/// Makes the attempts of one call as tower does, and counts them.
fn attempt_all(policy: &RetryPolicy, dropped: bool, attempts: &AtomicU64) {
    let mut call = call(&tool("get").read_only().build(), serde_json::json!({}));
    let mut policy = policy.clone();
    policy.clone_request(&call);
    loop {
        attempts.fetch_add(1, SeqCst);
        let error = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer");
        if policy.retry(&mut call, &mut Err(error)).is_none() || dropped {
            // dropped: in the pause before the next one
            return;
        }
        policy.clone_request(&call);
    }
}

fn attempts_stay_within_the_share() {
    let shared = RetryLayer::new(config()).unwrap().shared;
    let policy = RetryPolicy::new(shared.clone());
    let attempts = Arc::new(AtomicU64::new(0));
    let counted = attempts.clone();
    together(move |n| {
        for _ in 0..2 {
            attempt_all(&policy, n == 0, &counted);
        }
    });
    // six calls pay for 1.2 retries, and one is in reserve
    let retries = attempts.load(SeqCst) - 6;
    assert!(retries <= 2, "{retries} retries");
    let left = u64::from(shared.budgets.status()[0].tokens);
    assert_eq!(retries + left, 2, "what was not made is there again");
}

#[test]
fn nothing_that_was_paid_is_lost_and_nothing_is_paid_out_twice() {
    shuttle::check_random(nothing_is_lost, ORDERS);
}

#[test]
fn attempts_stay_within_the_share_of_the_calls_in_every_order() {
    // pauses are made, and never waited for
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let _entered = runtime.enter();
    shuttle::check_random(attempts_stay_within_the_share, ORDERS);
}
