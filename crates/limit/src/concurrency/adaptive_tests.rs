//! The limit against cases, chance, and a server that slows down under load.

use proptest::prelude::*;

use super::*;

fn tool() -> ToolName {
    "x".parse().unwrap()
}

fn sample(millis: u64, signal: Signal, in_flight: usize) -> Sample {
    Sample {
        latency: Duration::from_millis(millis),
        signal,
        in_flight,
    }
}

/// A server that runs so many calls at once at full speed, and shares itself among more.
struct Server {
    adaptive: Adaptive,
    capacity: usize,
    now: Instant,
}

impl Server {
    fn new(start: usize, capacity: usize) -> Self {
        let config = AdaptiveConfig::default().between(2, 200);
        Self {
            adaptive: Adaptive::new(config, start),
            capacity,
            now: Instant::now(),
        }
    }

    /// As many calls as the limit allows, all at once, of 100 ms each; returns the limit after.
    fn round(&mut self) -> usize {
        let in_flight = self.adaptive.limit();
        let share = (in_flight as f64 / self.capacity as f64).max(1.0);
        let latency = Duration::from_millis(100).mul_f64(share);
        self.now += latency + Duration::from_millis(1);
        for _ in 0..in_flight {
            let sample = Sample {
                latency,
                signal: Signal::Answered,
                in_flight,
            };
            self.adaptive.observe(&tool(), sample, self.now);
        }
        self.adaptive.limit()
    }

    fn outage(&mut self) -> usize {
        self.now += Duration::from_secs(6);
        for _ in 0..self.adaptive.limit() {
            let sample = sample(5000, Signal::Overloaded, 1);
            self.adaptive.observe(&tool(), sample, self.now);
        }
        self.adaptive.limit()
    }
}

#[test]
fn it_finds_what_the_server_bears_from_either_side() {
    for start in [2, 200] {
        let mut server = Server::new(start, 20);
        // what is usual is learnt at no load
        server.adaptive.usual.insert(tool(), 0.1);
        for _ in 0..300 {
            server.round();
        }
        for _ in 0..100 {
            let limit = server.round();
            assert!((20..=45).contains(&limit), "{limit} from {start}");
        }
    }
}

#[test]
fn it_backs_off_under_overload_and_recovers() {
    let mut server = Server::new(100, 150);
    for expected in [80, 64, 51, 40] {
        assert_eq!(server.outage(), expected, "once a round, not once a call");
    }
    for _ in 0..20 {
        server.outage();
    }
    assert_eq!(server.adaptive.limit(), 2);
    // five rounds of two calls make ten
    for _ in 0..600 {
        server.round();
    }
    assert!(
        server.adaptive.limit() >= 100,
        "{}",
        server.adaptive.limit()
    );
}

#[test]
fn a_limit_nobody_needs_does_not_rise() {
    let now = Instant::now();
    let mut adaptive = Adaptive::new(AdaptiveConfig::default(), 50);
    for n in 0..1000 {
        adaptive.observe(
            &tool(),
            sample(100, Signal::Answered, 10),
            now + Duration::from_secs(n),
        );
    }
    assert_eq!(adaptive.limit(), 50);
}

#[test]
fn slow_tools_do_not_make_quick_ones_look_slow() {
    let now = Instant::now();
    let mut adaptive = Adaptive::new(AdaptiveConfig::default(), 20);
    let slow: ToolName = "slow".parse().unwrap();
    for n in 0..1000 {
        let at = now + Duration::from_secs(n * 20);
        adaptive.observe(&tool(), sample(10, Signal::Answered, 20), at);
        adaptive.observe(&slow, sample(10_000, Signal::Answered, 20), at);
    }
    assert!(adaptive.limit() > 20);
}

#[test]
fn what_has_nothing_to_do_with_load_changes_nothing() {
    let error = |kind, delivery| Err(ToolError::new(kind, delivery, "x"));
    let cases = [
        (Ok(ToolOutput::text("x")), Signal::Answered),
        (Ok(ToolOutput::error_text("x")), Signal::Answered),
        (
            error(ErrorKind::Timeout, Delivery::Unknown),
            Signal::Overloaded,
        ),
        (
            error(ErrorKind::Overloaded, Delivery::Answered),
            Signal::Overloaded,
        ),
        (
            error(ErrorKind::RateLimited, Delivery::Answered),
            Signal::Overloaded,
        ),
        (
            error(ErrorKind::Overloaded, Delivery::NotSent),
            Signal::Unrelated,
        ),
        (
            error(ErrorKind::ConnectFailed, Delivery::NotSent),
            Signal::Unrelated,
        ),
        (
            error(ErrorKind::DeadlineExceeded, Delivery::Unknown),
            Signal::Unrelated,
        ),
        (
            error(ErrorKind::InvalidCall, Delivery::Answered),
            Signal::Unrelated,
        ),
    ];
    for (result, signal) in cases {
        assert_eq!(Signal::of(&result), signal, "{result:?}");
    }
    let mut adaptive = Adaptive::new(AdaptiveConfig::default(), 20);
    for n in 0..1000 {
        let at = Instant::now() + Duration::from_secs(n);
        adaptive.observe(&tool(), sample(1, Signal::Unrelated, 20), at);
    }
    assert_eq!(adaptive.limit(), 20);
}

#[test]
fn a_setting_that_makes_no_sense_is_named() {
    let config = AdaptiveConfig::default();
    assert_eq!(config.validate(), Ok(()));
    let cases = [
        (config.between(0, 5), "min"),
        (config.between(5, 4), "max"),
        (config.between(5, usize::MAX), "max"),
        (config.with_tolerance(1.0), "tolerance"),
        (config.with_tolerance(f64::NAN), "tolerance"),
        (config.with_backoff(1.0), "backoff"),
        (config.with_backoff(f64::NAN), "backoff"),
    ];
    for (config, field) in cases {
        assert_eq!(config.validate().unwrap_err().field(), field);
    }
}

proptest! {
    #[test]
    fn it_never_leaves_its_bounds(
        min in 1_usize..20,
        more in 0_usize..50,
        start in 0_usize..200,
        steps in prop::collection::vec((0_u64..5000, 0_u8..3, 0_usize..300, 0_u64..2000), 0..500),
    ) {
        let config = AdaptiveConfig::default().between(min, min + more);
        let mut adaptive = Adaptive::new(config, start);
        let mut now = Instant::now();
        for (millis, signal, in_flight, pause) in steps {
            now += Duration::from_millis(pause);
            let signal = match signal {
                0 => Signal::Answered,
                1 => Signal::Overloaded,
                _ => Signal::Unrelated,
            };
            let limit = adaptive.observe(&tool(), sample(millis, signal, in_flight), now);
            prop_assert!((min..=min + more).contains(&limit));
            prop_assert_eq!(limit, adaptive.limit());
        }
    }
}
