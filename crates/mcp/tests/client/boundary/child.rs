//! Children that die at every byte: real pipes, which hold a whole call.
#![cfg(unix)]

use callward_core::{Delivery, ToolServer};
use callward_mcp::client::{EraChoice, Upstream};
use tempfile::TempDir;

use super::{assert_told_the_truth, delivery, object_end};
use crate::script::{DISCOVERED, INITIALIZED, LONG, call, shell};

/// A child that greets us, then does as instructed, once.
async fn child(era: EraChoice, then: &str) -> Upstream {
    let (greeting, ready) = match era {
        EraChoice::Legacy => (INITIALIZED, "read ready; "),
        EraChoice::Auto | EraChoice::Modern => (DISCOVERED, ""),
    };
    let script = format!(
        "read hello; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{greeting}}}'; {ready}{then}"
    );
    let upstream = shell(&script, |options| options.era = era);
    upstream.ready(LONG).await.unwrap();
    upstream
}

#[tokio::test]
async fn a_child_that_dies_over_a_call_may_have_run_it_and_is_told_so() {
    let dir = TempDir::new().unwrap();
    for era in [EraChoice::Legacy, EraChoice::Modern] {
        for count in 0.. {
            let file = dir.path().join(format!("{era:?}-{count}"));
            let path = file.display();
            let upstream = child(era, &format!("head -c {count} > {path}")).await;
            let ended = upstream.call(call("x", "{}")).await;
            // shut down, or it would be started again and read the next call
            upstream.shutdown().await;
            let read = std::fs::read(&file).unwrap_or_default();
            let executions = u64::from(object_end(&read).is_some());
            let at = format!("{era:?}, {count} bytes");
            assert_told_the_truth(&ended, executions, &at);
            // The pipe takes a call at one go, if the child is there to read it: then the outcome
            // is unknown. One that is gone before has not run it.
            let reported = delivery(&ended);
            assert!(
                reported == Some(Delivery::Unknown)
                    || (count == 0 && reported == Some(Delivery::NotSent)),
                "{at}: {reported:?}"
            );
            if read.last() == Some(&b'\n') {
                break;
            }
        }
    }
}
