//! Callers that call, each as soon as its last call is answered.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::time::Instant;

use crate::client::{Client, Era, Error};
use crate::http::Endpoint;
use crate::keys::{Keys, Sequence};
use crate::process::Usage;
use crate::timing::percentile;

/// How long a round is.
#[derive(Debug, Clone, Copy)]
pub enum Extent {
    For(Duration),
    /// This many calls, shared by all callers.
    Calls(u64),
}

/// What a round is made of.
#[derive(Debug, Clone)]
pub struct Load {
    pub tool: String,
    pub era: Era,
    pub callers: usize,
    pub extent: Extent,
    pub keys: Keys,
    /// Keeps the distinct keys of rounds apart, and draws the others.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Round {
    pub calls: u64,
    pub errors: u64,
    pub seconds: f64,
    pub calls_per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Of the process that was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_call: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_mib: Option<f64>,
}

/// One round. Sessions are open before it begins.
pub async fn drive(endpoint: &Endpoint, load: &Load, pid: Option<u32>) -> Result<Round, Error> {
    let mut clients = Vec::with_capacity(load.callers);
    for _ in 0..load.callers {
        clients.push(Client::settled(endpoint, load.era).await?);
    }
    let name = match clients.first_mut() {
        Some(client) => client.name_of(&load.tool).await?,
        None => return Err(Error("no callers".to_owned())),
    };
    let before = pid.and_then(Usage::of);
    let barrier = Arc::new(Barrier::new(load.callers));
    let started = Instant::now();
    let callers: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(place, client)| {
            let caller = Caller {
                client,
                name: name.clone(),
                load: load.clone(),
                place,
            };
            tokio::spawn(caller.run(Arc::clone(&barrier)))
        })
        .collect();
    let mut times = Vec::new();
    let mut errors = 0;
    for caller in callers {
        let (own, failed) = caller.await.map_err(|error| Error(error.to_string()))?;
        times.extend(own);
        errors += failed;
    }
    let seconds = started.elapsed().as_secs_f64();
    let after = pid.and_then(Usage::of);
    Ok(round(times, errors, seconds, before.zip(after)))
}

fn round(mut times: Vec<f64>, errors: u64, seconds: f64, usage: Option<(Usage, Usage)>) -> Round {
    times.sort_by(f64::total_cmp);
    let calls = times.len() as u64;
    let millis = |share| percentile(&times, share).unwrap_or_default() * 1e3;
    Round {
        calls,
        errors,
        seconds,
        calls_per_second: calls as f64 / seconds,
        p50_ms: millis(0.5),
        p99_ms: millis(0.99),
        cpu_us_per_call: usage
            .map(|(before, after)| (after.cpu_seconds - before.cpu_seconds) * 1e6 / calls as f64),
        rss_mib: usage.map(|(_, after)| after.rss_mib),
    }
}

struct Caller {
    client: Client,
    name: String,
    load: Load,
    place: usize,
}

impl Caller {
    /// How long each call took, in seconds, and how many failed.
    async fn run(mut self, barrier: Arc<Barrier>) -> (Vec<f64>, u64) {
        let (seed, place) = (self.load.seed, self.place);
        let prefix = format!("s{seed}-{place}");
        let mut keys = Sequence::new(self.load.keys, prefix, seed ^ ((place as u64) << 32));
        let share = match self.load.extent {
            Extent::For(_) => u64::MAX,
            Extent::Calls(calls) => {
                let callers = self.load.callers as u64;
                calls / callers + u64::from((place as u64) < calls % callers)
            }
        };
        barrier.wait().await;
        let started = Instant::now();
        let mut times = Vec::new();
        let mut errors = 0;
        while (times.len() as u64) < share {
            let begun = Instant::now();
            if let Extent::For(long) = self.load.extent
                && begun - started >= long
            {
                break;
            }
            let arguments = json!({ "key": keys.next() }).to_string();
            errors += u64::from(!self.client.hit(&self.name, &arguments).await);
            times.push(begun.elapsed().as_secs_f64());
        }
        (times, errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_what_its_calls_were() {
        let before = Usage {
            cpu_seconds: 1.0,
            rss_mib: 5.0,
        };
        let after = Usage {
            cpu_seconds: 3.0,
            rss_mib: 7.0,
        };
        let times = vec![0.004, 0.002, 0.003, 0.001];
        let round = round(times, 1, 2.0, Some((before, after)));
        assert_eq!(round.calls, 4);
        assert_eq!(round.calls_per_second, 2.0);
        assert_eq!((round.p50_ms, round.p99_ms), (2.0, 4.0));
        assert_eq!(round.cpu_us_per_call, Some(500_000.0));
        assert_eq!(round.rss_mib, Some(7.0));
    }
}
