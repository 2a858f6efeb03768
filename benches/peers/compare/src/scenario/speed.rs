//! What a call costs through the peer, in rounds that take turns with direct ones.

use std::time::Duration;

use peers_load::{Era, Extent, Keys, Load, drive, paired};

use crate::Outcome;
use crate::figures::Speed;
use crate::peer::Running;
use crate::upstream::Upstream;

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) round: Duration,
    pub(crate) warm_up: Duration,
}

/// Asks for the keys that cached calls are drawn from, once for all rounds: until all of them are
/// likely to have been asked for, or for as long as the warm-up may take.
pub(crate) async fn fill(peer: &Running, effort: Effort) -> Outcome<()> {
    let (mut calls, mut seconds) = (0, 0.0);
    let mut load = Load {
        keys: Keys::Zipf,
        // not what rounds draw: they would find their own calls again
        seed: 1_000_000,
        ..distinct(32, true, Duration::from_secs(1))
    };
    while calls < ENOUGH && seconds < effort.warm_up.as_secs_f64() {
        let round = drive(&peer.endpoint, &load, None).await?;
        load.seed = load.seed.wrapping_add(1);
        calls += round.calls;
        seconds += round.seconds;
    }
    Ok(())
}

/// The rarest of the keys is one draw in 7,000: this many leave it out one time in a thousand.
const ENOUGH: u64 = 50_000;

fn distinct(callers: usize, cached: bool, long: Duration) -> Load {
    Load {
        tool: "noop_get".to_owned(),
        era: Era::Legacy,
        callers,
        extent: Extent::For(long),
        keys: Keys::Distinct,
        seed: 1_000 * callers as u64 + u64::from(cached),
    }
}

pub(crate) async fn run(
    upstream: &Upstream,
    peer: &Running,
    callers: usize,
    cached: bool,
    effort: Effort,
) -> Outcome<Speed> {
    upstream.reset().await?;
    let direct = distinct(callers, cached, effort.round);
    let through = Load {
        keys: if cached { Keys::Zipf } else { Keys::Distinct },
        ..direct.clone()
    };
    let before = upstream.counts().await?.all("noop_get");
    let found = paired(
        (&upstream.endpoint, &direct),
        (&peer.endpoint, &through, peer.pid),
        effort.rounds,
    )
    .await?;
    let executed = upstream.counts().await?.all("noop_get") - before;
    let reached = executed.saturating_sub(found.direct_calls);
    let made = found.peer_calls.max(1);
    let summary = found.summary().ok_or("no rounds")?;
    Ok(Speed {
        callers,
        cached,
        hits: 1.0 - reached as f64 / made as f64,
        summary,
    })
}
