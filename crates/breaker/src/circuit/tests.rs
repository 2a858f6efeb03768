//! One breaker and several threads.

use super::*;

#[test]
fn a_success_that_changes_nothing_writes_nothing() {
    let circuit = Arc::new(Circuit::of_valid("x", BreakerConfig::default()));
    // the first safe call is remembered
    drop(circuit.clone().admit());
    // with the lock held, anything but a plain load would wait forever
    let held = circuit.guarded.lock();
    for _ in 0..3 {
        match circuit.clone().admit() {
            Ok(permit) => permit.succeed(),
            Err(rejection) => panic!("{rejection}"),
        }
        drop(circuit.clone().admit_risk(Risk::Write));
        match circuit.admit_ref() {
            Ok(permit) => permit.succeed(),
            Err(rejection) => panic!("{rejection}"),
        }
        assert!(circuit.is_available_to(Risk::Write));
    }
    drop(held);
    assert!(circuit.read().is_as_new());
}

#[test]
fn threads_that_fail_together_trip_it_once() {
    let config = BreakerConfig::default().with_failures(50);
    let circuit = Arc::new(Circuit::of_valid("x", config));
    let permits: Vec<_> = (0..100).map(|_| circuit.clone().admit().unwrap()).collect();
    std::thread::scope(|scope| {
        for permit in permits {
            scope.spawn(move || permit.fail(&"down"));
        }
    });
    let reading = circuit.read();
    assert_eq!(reading.state, BreakerState::Open);
    assert_eq!(
        reading.last_trip.as_deref(),
        Some("50 failures in a row, the last: down")
    );
    assert!(reading.time_to_probe <= Some(config.open_time));
}

#[test]
fn threads_that_ask_together_get_just_the_probes() {
    let config = BreakerConfig::default()
        .with_failures(1)
        .with_open_time(Duration::from_nanos(1))
        .with_probes(3)
        .with_probe_limit(Duration::from_secs(3600));
    for _ in 0..50 {
        let circuit = Arc::new(Circuit::of_valid("x", config));
        circuit.clone().admit().unwrap().fail(&"down");
        let start = std::sync::Barrier::new(8);
        // kept until all have asked: a permit that is dropped gives its place back
        let permits = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    permits.lock().extend(circuit.clone().admit());
                });
            }
        });
        assert_eq!(permits.lock().len(), 3);
        drop(permits);
        assert!(circuit.is_available());
    }
}
