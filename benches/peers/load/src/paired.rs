//! Rounds that follow one another: direct, through the peer, direct, and so on. What else the
//! machine does then weighs on both alike, and each pair says what the peer costs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::Error;
use crate::drive::{Extent, Load, Round, drive};
use crate::http::Endpoint;
use crate::timing::median;

/// All rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Paired {
    /// Of all rounds, those that warm up included.
    pub direct_calls: u64,
    pub peer_calls: u64,
    pub direct: Vec<Round>,
    pub peer: Vec<Round>,
}

/// The medians of them. Shares and additions are medians over pairs, not of medians.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    pub rounds: usize,
    pub calls_per_second: f64,
    pub direct_calls_per_second: f64,
    /// Calls per second as a share of direct ones.
    pub share_of_direct: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub added_p50_ms: f64,
    pub added_p99_ms: f64,
    pub errors: u64,
    pub cpu_us_per_call: Option<f64>,
    pub rss_mib: Option<f64>,
}

/// Direct and peer in turn, this many times. A round of each before them warms up and does not
/// count; the direct one is short: what the peers have in common was warm long before.
pub async fn paired(
    direct: (&Endpoint, &Load),
    peer: (&Endpoint, &Load, Option<u32>),
    rounds: usize,
) -> Result<Paired, Error> {
    let mut found = Paired {
        direct_calls: 0,
        peer_calls: 0,
        direct: Vec::new(),
        peer: Vec::new(),
    };
    for round in 0..=rounds {
        let own = |load: &Load| Load {
            seed: load.seed.wrapping_add(round as u64),
            ..load.clone()
        };
        let mut plain = own(direct.1);
        if let (0, Extent::For(long)) = (round, plain.extent) {
            plain.extent = Extent::For(long.min(WARM_UP));
        }
        let straight = drive(direct.0, &plain, None).await?;
        let through = drive(peer.0, &own(peer.1), peer.2).await?;
        found.direct_calls += straight.calls;
        found.peer_calls += through.calls;
        if round > 0 {
            found.direct.push(straight);
            found.peer.push(through);
        }
    }
    Ok(found)
}

/// Of direct calls.
const WARM_UP: Duration = Duration::from_millis(300);

impl Paired {
    /// Nothing of no rounds.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let own = |of: fn(&Round) -> f64| median(&self.peer.iter().map(of).collect::<Vec<_>>());
        let both = |of: fn(&Round, &Round) -> f64| {
            let pairs = self.peer.iter().zip(&self.direct);
            median(
                &pairs
                    .map(|(peer, direct)| of(peer, direct))
                    .collect::<Vec<_>>(),
            )
        };
        let direct: Vec<f64> = self
            .direct
            .iter()
            .map(|round| round.calls_per_second)
            .collect();
        let cpu: Vec<f64> = self
            .peer
            .iter()
            .filter_map(|round| round.cpu_us_per_call)
            .collect();
        let rss: Vec<f64> = self.peer.iter().filter_map(|round| round.rss_mib).collect();
        Some(Summary {
            rounds: self.peer.len(),
            calls_per_second: own(|round| round.calls_per_second)?,
            direct_calls_per_second: median(&direct)?,
            share_of_direct: both(|peer, direct| peer.calls_per_second / direct.calls_per_second)?,
            p50_ms: own(|round| round.p50_ms)?,
            p99_ms: own(|round| round.p99_ms)?,
            added_p50_ms: both(|peer, direct| peer.p50_ms - direct.p50_ms)?,
            added_p99_ms: both(|peer, direct| peer.p99_ms - direct.p99_ms)?,
            errors: self.peer.iter().map(|round| round.errors).sum(),
            cpu_us_per_call: median(&cpu),
            rss_mib: median(&rss),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(of: &[(f64, f64)]) -> Vec<Round> {
        of.iter()
            .map(|(rate, p50_ms)| Round {
                calls_per_second: *rate,
                p50_ms: *p50_ms,
                errors: 1,
                ..Round::default()
            })
            .collect()
    }

    #[test]
    fn shares_are_taken_pair_by_pair() {
        let paired = Paired {
            direct_calls: 0,
            peer_calls: 0,
            direct: rounds(&[(100.0, 1.0), (200.0, 1.0), (1000.0, 1.0)]),
            peer: rounds(&[(50.0, 3.0), (150.0, 2.0), (100.0, 4.0)]),
        };
        let summary = paired.summary().unwrap();
        assert_eq!(summary.share_of_direct, 0.5);
        assert_eq!(summary.added_p50_ms, 2.0);
        assert_eq!(summary.calls_per_second, 100.0);
        assert_eq!(summary.errors, 3);
        assert_eq!(summary.cpu_us_per_call, None);
    }
}
