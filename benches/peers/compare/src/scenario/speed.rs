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

pub(crate) async fn run(
    upstream: &Upstream,
    peer: &Running,
    callers: usize,
    cached: bool,
    effort: Effort,
) -> Outcome<Speed> {
    upstream.reset().await?;
    let seed = 1_000 * callers as u64 + u64::from(cached);
    let direct = Load {
        tool: "noop_get".to_owned(),
        era: Era::Legacy,
        callers,
        extent: Extent::For(effort.round),
        keys: Keys::Distinct,
        seed,
    };
    let through = Load {
        keys: if cached { Keys::Zipf } else { Keys::Distinct },
        ..direct.clone()
    };
    if cached {
        let warm_up = Load {
            callers: 32,
            extent: Extent::For(effort.warm_up),
            ..through.clone()
        };
        drive(&peer.endpoint, &warm_up, None).await?;
    }
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
