//! How often the cache answers under a mixed load of which some replies are lost.

use std::time::Duration;

use callward_core::{Delivery, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::{interval, sleep};

use crate::common::{Bench, failure, get};

/// Calls come this often: 200 in a second.
const PAUSE: Duration = Duration::from_millis(5);
const CALLS: u32 = 12_000;
const ANSWERED_AFTER: Duration = Duration::from_millis(15);

/// Runs the load, of which one write in 20, and returns the share of reads that were hits or joined
/// a run. Of `lost` in 100 calls the effect is there, and the reply is not.
async fn served(lost: u32) -> f64 {
    // the same calls in each run
    let mut random = fastrand::Rng::with_seed(7);
    let losses: Vec<bool> = (0..CALLS).map(|_| random.u32(..100) < lost).collect();
    let mock = MockService::new(move |_, n| {
        let is_lost = losses.get(n % losses.len()).copied().unwrap_or_default();
        async move {
            sleep(ANSWERED_AFTER).await;
            match is_lost {
                true => Err(failure(Delivery::Unknown)),
                false => Ok(ToolOutput::text(n.to_string())),
            }
        }
    });
    let bench = Bench::new(mock);
    let add = tool("add").build();
    let mut ticks = interval(PAUSE);
    let mut running = Vec::new();
    let mut reads = 0;
    for _ in 0..CALLS {
        ticks.tick().await;
        let call = if random.u32(..20) == 0 {
            call(&add, json!({}))
        } else {
            reads += 1;
            call(&get(), json!({"id": random.u32(..10)}))
        };
        let cache = bench.clone();
        running.push(tokio::spawn(async move { cache.ask(call).await }));
    }
    for call in running {
        let _lost_or_not = call.await;
    }
    let stats = bench.stats();
    (stats.hits + stats.joined) as f64 / f64::from(reads)
}

#[tokio::test(start_paused = true)]
async fn lost_replies_cost_a_fifth_of_the_hits_at_most() {
    let (whole, lossy) = (served(0).await, served(1).await);
    println!("hits and joined: {whole:.3} without losses, {lossy:.3} with 1 % lost");
    assert!(lossy >= 0.8 * whole, "{lossy} of {whole}");
}
