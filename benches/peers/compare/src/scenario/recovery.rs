//! The upstream is killed while callers call, and is back after a second: do their calls get
//! answers again?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use peers_load::{Client, Endpoint, Era};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::Outcome;
use crate::figures::Recovery;
use crate::scenario::{Remote, all, failed};
use crate::upstream::Upstream;

const CALLERS: usize = 8;
const AFTERWARDS: usize = 40;
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn run(
    upstream: &mut Upstream,
    peer: &Endpoint,
    wait: Duration,
) -> Outcome<Recovery> {
    let back = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for caller in 0..CALLERS {
        let client = Client::settled(peer, Era::Legacy).await?;
        let (back, done) = (Arc::clone(&back), Arc::clone(&done));
        tasks.push(tokio::spawn(keep_calling(client, caller, back, done)));
    }
    sleep(Duration::from_millis(500)).await;
    upstream.kill().await?;
    sleep(Duration::from_secs(1)).await;
    upstream.again().await?;
    back.store(true, Ordering::Release);
    let begun = Instant::now();
    while begun.elapsed() < wait && !done.load(Ordering::Acquire) {
        sleep(Duration::from_millis(5)).await;
    }
    let first = done
        .load(Ordering::Acquire)
        .then(|| begun.elapsed().as_secs_f64());
    done.store(true, Ordering::Release);
    for task in tasks {
        // one that still waits for an answer is not waited for
        task.abort();
        let _ = task.await;
    }
    // What is left of the outage may be a breaker that is still open: that is part of the time
    // above.
    let calls = (0..AFTERWARDS).map(|key| ("get_item", json!({ "key": format!("after-{key}") })));
    let remote = Remote {
        endpoint: peer.clone(),
        upstream,
    };
    let errors = match all(&remote, CALLERS, calls.collect()).await {
        Ok(answers) => failed(&answers),
        Err(_) => AFTERWARDS as u64,
    };
    Ok(Recovery {
        first_answer_seconds: first,
        waited_seconds: wait.as_secs_f64(),
        afterwards: AFTERWARDS as u64,
        errors_afterwards: errors,
    })
}

async fn keep_calling(
    mut client: Client,
    caller: usize,
    back: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
) {
    let Ok(name) = client.name_of("get_item").await else {
        return;
    };
    let mut call = 0;
    while !done.load(Ordering::Acquire) {
        call += 1;
        // an answer counts if its call began when the upstream was back
        let counts = back.load(Ordering::Acquire);
        let arguments = json!({ "key": format!("outage-{caller}-{call}") });
        if client.call(&name, &arguments).await.is_ok() && counts {
            done.store(true, Ordering::Release);
        }
        sleep(PAUSE).await;
    }
}
