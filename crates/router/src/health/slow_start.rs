//! What part of its share a server gets that has just joined or come back.

use std::time::Duration;

use super::HealthConfig;

/// Returns the part of its share, above 0 and at most 1, this long after it came.
///
/// A straight line from the floor, as Envoy's slow start with its default aggression of 1: empty
/// caches and cold connections are what it waits for, and they fill with calls, so it never gets none.
pub(crate) fn share(since: Duration, config: &HealthConfig) -> f64 {
    if since >= config.slow_start {
        return 1.0;
    }
    let floor = f64::from(config.slow_start_floor) / 100.0;
    (since.as_secs_f64() / config.slow_start.as_secs_f64()).max(floor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_rises_from_the_floor_to_all() {
        let config = HealthConfig::default();
        for (secs, part) in [(0, 0.1), (3, 0.1), (15, 0.5), (30, 1.0), (1_000, 1.0)] {
            let own = share(Duration::from_secs(secs), &config);
            assert!((own - part).abs() < 1e-9, "{own} after {secs} s");
        }
        let off = config.with_slow_start(Duration::ZERO);
        assert!((share(Duration::ZERO, &off) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn it_never_falls(window in 1u64..100_000, floor in 1u32..=100, at in 0u64..200_000, later in 0u64..1_000) {
            let config = HealthConfig::default()
                .with_slow_start(Duration::from_millis(window))
                .with_slow_start_floor(floor);
            let before = share(Duration::from_millis(at), &config);
            let after = share(Duration::from_millis(at + later), &config);
            prop_assert!(0.0 < before && before <= after && after <= 1.0);
        }
    }
}
