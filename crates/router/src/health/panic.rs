//! When so few servers are fit that the unfit are not all left out.

use super::set::Counts;

/// Says whether the share of fit servers is below `threshold` percent.
///
/// Envoy's panic threshold, and its reason: when most servers look sick, what is wrong is more often
/// the look than the servers, and the few that are left would break down under everybody's calls.
pub(crate) const fn panics(counts: Counts, threshold: u32) -> bool {
    let fit = counts.servers.saturating_sub(counts.unfit) as u64;
    fit * 100 < counts.servers as u64 * threshold as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_the_threshold_and_not_at_it() {
        let of = |unfit, servers, threshold| {
            let counts = Counts {
                servers,
                ejected: 0,
                unfit,
            };
            panics(counts, threshold)
        };
        assert!(!of(0, 0, 50), "nobody is no reason to panic");
        assert!(!of(5, 10, 50));
        assert!(of(6, 10, 50));
        assert!(!of(1, 2, 50));
        assert!(of(2, 3, 50));
        assert!(of(1, 1, 1));
        assert!(!of(1, 1, 0), "0 means never");
        assert!(of(1, 10, 100));
        assert!(!of(0, 10, 100));
    }
}
