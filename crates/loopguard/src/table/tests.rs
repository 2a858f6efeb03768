use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const FAILURES: u32 = 3;
const WAIT: Duration = LoopGuardConfig::WAIT;
const WINDOW: Duration = Duration::from_secs(60);

fn table() -> Table {
    Table::new(LoopGuardConfig {
        failures: FAILURES,
        window: WINDOW,
        ..LoopGuardConfig::default()
    })
}

#[tokio::test(start_paused = true)]
async fn a_full_table_drops_the_oldest_call() {
    let (table, begin) = (table(), Instant::now());
    for n in 0..4200_u64 {
        table.fail(n.into(), begin + Duration::from_millis(n), "no".into());
    }
    assert_eq!(table.len(), CAPACITY);
    let holds = |key| table.calls.lock().contains_key(&key);
    assert!(holds(4199) && !holds(0));
}

/// The model: the history of each call since it last succeeded.
#[derive(Default)]
struct Model(HashMap<u128, Vec<Instant>>);

impl Model {
    /// Returns how many failures in a row there are, and when the last was.
    fn in_a_row(&self, key: u128) -> (u32, Option<Instant>) {
        let (mut count, mut last): (u32, Option<Instant>) = (0, None);
        for &at in self.0.get(&key).into_iter().flatten() {
            let apart = last.is_some_and(|last| at - last > WINDOW);
            count = if apart && count < FAILURES {
                1
            } else {
                count + 1
            };
            last = Some(at);
        }
        (count, last)
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Begins a call of this key, if it is admitted.
    Begin(u128),
    /// Ends the call that runs at this place, if any.
    End(usize, End),
    Wait(u64),
    /// Another write succeeds.
    Write,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Dropped,
    Failed,
    /// With an unknown outcome.
    MayHaveRun,
    Succeeded,
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        1 => Just(End::Dropped),
        9 => Just(End::Failed),
        3 => Just(End::MayHaveRun),
        1 => Just(End::Succeeded),
    ];
    prop_oneof![
        5 => (0..3_u128).prop_map(Step::Begin),
        5 => (0..8_usize, end).prop_map(|(place, end)| Step::End(place, end)),
        2 => prop_oneof![1..5_u64, 1..80_u64].prop_map(Step::Wait),
        1 => Just(Step::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_interleaving_of_calls_is_decided_by_their_history(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let (table, mut model) = (table(), Model::default());
        let mut now = Instant::now();
        // key, and when it began if it is a trial
        let mut running: Vec<(u128, Option<Instant>)> = Vec::new();
        for step in steps {
            match step {
                Step::Write => {
                    table.clear(None);
                    model.0.clear();
                }
                Step::Wait(secs) => now += Duration::from_secs(secs),
                Step::Begin(key) => {
                    let (count, last) = model.in_a_row(key);
                    let open = count < FAILURES;
                    let over = last.is_none_or(|last| now - last >= WAIT);
                    // a trial that began less than a wait ago, after the last failure
                    let tried = running.iter().any(|(of, trial)| {
                        *of == key && trial.is_some_and(|at| {
                            now - at < WAIT && last.is_none_or(|last| at >= last)
                        })
                    });
                    let admission = table.admit(key, now);
                    match &admission {
                        Admission::Send => prop_assert!(open),
                        Admission::Trial => prop_assert!(!open && over && !tried),
                        Admission::Stop { failures, .. } => {
                            prop_assert!(!open && (!over || tried));
                            prop_assert_eq!(*failures, count);
                        }
                    }
                    if !matches!(admission, Admission::Stop { .. }) {
                        running.push((key, (admission == Admission::Trial).then_some(now)));
                    }
                }
                Step::End(place, end) if place < running.len() => {
                    let (key, trial) = running.remove(place);
                    match end {
                        End::Failed | End::MayHaveRun => {
                            if matches!(end, End::MayHaveRun) {
                                table.clear(Some(key));
                                model.0.retain(|other, _| *other == key);
                            }
                            table.fail(key, now, "no".into());
                            model.0.entry(key).or_default().push(now);
                        }
                        End::Succeeded => {
                            table.clear(None);
                            model.0.clear();
                            prop_assert_eq!(table.admit(key, now), Admission::Send);
                        }
                        End::Dropped => {
                            if let Some(began) = trial {
                                table.take_back(key, began);
                            }
                            table.clear(Some(key));
                            model.0.retain(|other, _| *other == key);
                        }
                    }
                }
                Step::End(..) => {}
            }
        }
    }
}
