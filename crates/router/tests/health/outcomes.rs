//! What counts for a server's health, and that it counts once.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_router::{HealthConfig, HealthState, Member, StrategyName};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::ServiceExt;

use crate::bed::{Bed, fated, fault, server};

#[tokio::test(start_paused = true)]
async fn each_fault_counts_once_and_a_good_call_begins_the_row_anew() {
    let read = tool("read").read_only().build();
    let (bed, fates) = Bed::new(StrategyName::RoundRobin, 2);
    fates[0].fails();
    for faults in 1..=4 {
        bed.send_many(&read, 2).await;
        assert_eq!((bed.faults("a"), bed.faults("b")), (faults, 0));
    }
    fates[0].works();
    bed.send_many(&read, 2).await;
    assert_eq!(bed.faults("a"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_servers_fault_does_not_count() {
    use Delivery::{Answered, NotSent, Unknown};
    let read = tool("read").read_only().build();
    let error = |kind, delivery| Err(ToolError::new(kind, delivery, "x"));
    let harmless = [
        Ok(ToolOutput::error_text("no such order")),
        error(ErrorKind::RateLimited, Answered),
        error(ErrorKind::RateLimited, NotSent),
        error(ErrorKind::BreakerOpen, NotSent),
        error(ErrorKind::Overloaded, NotSent),
        error(ErrorKind::InvalidCall, Answered),
        error(ErrorKind::Unauthorized, Answered),
        error(ErrorKind::UnknownTool, Answered),
        error(ErrorKind::Cancelled, Unknown),
        error(ErrorKind::DeadlineExceeded, Unknown),
    ];
    let (bed, fates) = Bed::new(StrategyName::RoundRobin, 2);
    for answer in harmless {
        fates[0].set(answer.clone());
        bed.send_many(&read, 40).await;
        assert_eq!(bed.state("a"), HealthState::Healthy, "{answer:?}");
        assert_eq!(bed.faults("a"), 0, "{answer:?}");
    }
    for kind in [
        ErrorKind::ConnectFailed,
        ErrorKind::ConnectionLost,
        ErrorKind::Protocol,
        ErrorKind::ServerFault,
        ErrorKind::Timeout,
    ] {
        let (bed, fates) = Bed::new(StrategyName::RoundRobin, 2);
        fates[0].set(error(kind, Unknown));
        bed.send_many(&read, 10).await;
        assert_eq!(bed.state("a"), HealthState::Ejected, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_counts_as_nothing() {
    let read = tool("read").read_only().build();
    let hangs = MockService::new(|_, n| async move {
        match n {
            1..=4 => Err(fault()),
            _ => std::future::pending().await,
        }
    });
    let bed = Bed::of(
        HealthConfig::default().with_outlier(None),
        StrategyName::RoundRobin,
        vec![Member::new(server("a"), hangs), fated("b").0],
    );
    bed.send_many(&read, 8).await;
    assert_eq!(bed.faults("a"), 4);
    for _ in 0..40 {
        let call = bed.router().oneshot(call(&read, json!({})));
        let call = tokio::time::timeout(Duration::from_secs(1), call);
        let _ = call.await;
    }
    assert_eq!((bed.faults("a"), bed.state("a")), (4, HealthState::Healthy));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_counts_each_server_for_itself() {
    let read = tool("read").read_only().build();
    let (bed, fates) = Bed::new(StrategyName::RoundRobin, 2);
    fates[0].set(Err(ToolError::new(
        ErrorKind::BreakerOpen,
        Delivery::NotSent,
        "x",
    )));
    fates[1].fails();
    // each call reaches `b`, half of them by way of `a`
    for faults in 1..=4 {
        let answer = bed.send(&read).now_or_never().unwrap();
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::ServerFault);
        assert_eq!((bed.faults("a"), bed.faults("b")), (0, faults));
    }
}
