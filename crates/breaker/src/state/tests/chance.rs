//! The machine against chance.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Admit(Risk),
    Reset,
    Settle(usize, Verdict, Fault, u64),
    Wait(u64),
}

fn faults() -> impl Strategy<Value = Fault> {
    let mark = || prop::option::of(0_u64..3).prop_map(|number| number.map(Mark));
    (mark(), any::<bool>(), mark()).prop_map(|(tool, is_shared, session)| Fault {
        tool,
        is_shared,
        session,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdicts =
        prop::sample::select(&[Verdict::Failure, Verdict::Nothing, Verdict::Success][..]);
    let step = prop_oneof![
        4 => Just(Step::Admit(Risk::Safe)),
        3 => Just(Step::Admit(Risk::Write)),
        6 => (any::<usize>(), verdicts, faults(), 0_u64..10)
            .prop_map(|(which, verdict, fault, took)| Step::Settle(which, verdict, fault, took)),
        3 => (0_u64..40).prop_map(Step::Wait),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #[test]
    fn probes_never_exceed_their_places_and_time_always_heals(
        steps in steps(),
        failures in 1_u32..4,
        probes in 1_u32..4,
        limit in 1_u32..=30,
        shares in any::<bool>(),
    ) {
        let mut config = BreakerConfig::default()
            .with_failures(failures)
            .with_probes(probes)
            .with_probe_limit(limit * SECOND);
        if shares {
            config = config
                .with_failure_rate(30)
                .with_slow_calls(5 * SECOND, 60)
                .with_window(20 * SECOND)
                .with_min_calls(4);
        }
        let mut bench = Bench::new(config);
        // calls in flight: the ticket, when it was given, and whether it is a probe's
        let mut flying: Vec<(Ticket, Instant, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Admit(risk) => {
                    let before = bench.state.clone();
                    let wait = before.time_to_pass(risk, &bench.config, bench.now);
                    let safe_wait = before.time_to_pass(Risk::Safe, &bench.config, bench.now);
                    prop_assert!(safe_wait <= wait, "nobody waits less than a safe call");
                    let admitted = bench.state.admit(risk, &bench.config, bench.now);
                    prop_assert_eq!(wait == Some(Duration::ZERO), admitted.is_ok());
                    prop_assert_eq!(admitted.err().unwrap_or(Some(Duration::ZERO)), wait);
                    if let Ok(ticket) = admitted {
                        let probe = before.state() != BreakerState::Closed;
                        flying.push((ticket, bench.now, probe));
                    }
                }
                Step::Reset => {
                    bench.state.reset();
                }
                Step::Settle(which, verdict, fault, took) if !flying.is_empty() => {
                    let (ticket, ..) = flying.swap_remove(which % flying.len());
                    let outcome = Outcome {
                        fault,
                        took: Some(Duration::from_secs(took)),
                        others: u32::try_from(flying.len()).unwrap(),
                        overlapped: !flying.is_empty(),
                        ..Outcome::of(verdict)
                    };
                    bench.state.settle(ticket, outcome, &bench.config, bench.now);
                }
                Step::Settle(..) => {}
                Step::Wait(secs) => bench.wait(secs),
            }
            // whoever is within the limit still holds a place
            let since = |given| bench.now.duration_since(given);
            let probing = flying
                .iter()
                .filter(|(_, given, probe)| *probe && since(*given) < limit * SECOND)
                .count();
            prop_assert!(probing <= probes as usize, "{probing} probes in flight");
            // no one else moves: time alone leads to the next call, be it a write
            let longest = bench.config.max_open_time.max(bench.config.probe_time());
            let grace = bench.config.write_grace();
            for (risk, longest) in [(Risk::Safe, longest), (Risk::Write, longest + grace)] {
                let mut later = bench.state.clone();
                prop_assert!(later.admit(risk, &bench.config, bench.now + longest).is_ok());
            }
        }
    }
}
