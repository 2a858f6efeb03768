use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(60);

fn server(number: usize) -> ServerId {
    ServerId::new(format!("s{number}")).unwrap()
}

/// A hash, as keys are.
fn key(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn told(number: u64) -> KeyDigest {
    KeyDigest(u32::try_from(number).unwrap())
}

fn entry(number: u64, place: usize) -> Entry {
    Entry {
        key: key(number),
        kind: KeyKind::User,
        told: told(number),
        set: ReplicaSetId::new("test").unwrap(),
        server: server(place),
        hint: place,
    }
}

/// Servers stand where their number says.
fn locate(server: &ServerId, _: usize) -> Option<usize> {
    server.as_str().strip_prefix('s')?.parse().ok()
}

fn find(table: &Table, number: u64, now: Instant) -> Found {
    table.find(key(number), now, false, locate)
}

fn stays(_: &ServerId) -> Option<ExpiryCause> {
    None
}

#[test]
fn a_key_keeps_its_server_until_it_is_not_used_for_so_long() {
    let table = Table::new(10, TTL);
    let start = table.origin;
    assert_eq!(find(&table, 1, start), Found::Nothing);
    assert!(table.set(entry(1, 4), start, stays).is_set);
    let nearly = TTL.checked_sub(Duration::from_millis(1)).unwrap();
    let mut now = start;
    for _ in 0..5 {
        now += nearly;
        assert_eq!(find(&table, 1, now), Found::At(4));
    }
    assert_eq!(find(&table, 1, now + TTL), Found::Nothing);
    let change = table.set(entry(1, 4), now + TTL, stays);
    assert!(change.is_set);
    assert_eq!(change.ended[0].cause, ExpiryCause::Ttl);
    assert_eq!(find(&table, 1, now + TTL), Found::At(4));
}

#[test]
fn whoever_is_first_sets_and_the_second_leaves_it() {
    let table = Table::new(10, TTL);
    let now = table.origin;
    table.set(entry(1, 4), now, stays);
    let second = table.set(entry(1, 5), now, stays);
    assert!(!second.is_set && second.ended.is_empty());
    assert_eq!(find(&table, 1, now), Found::At(4));
}

#[test]
fn a_lost_server_is_replaced_once() {
    let table = Table::new(10, TTL);
    let now = table.origin;
    table.set(entry(1, 4), now, stays);
    let move_on = |to| {
        table.set(entry(1, to), now, |had| {
            (*had == server(4)).then_some(ExpiryCause::Draining)
        })
    };
    let first = move_on(5);
    assert!(first.is_set);
    assert_eq!(first.ended.len(), 1);
    assert_eq!(first.ended[0].server, server(4));
    assert_eq!(first.ended[0].cause, ExpiryCause::Draining);
    // another call that saw the same
    let second = move_on(6);
    assert!(!second.is_set && second.ended.is_empty());
    assert_eq!(find(&table, 1, now), Found::At(5));
}

#[test]
fn a_server_is_looked_for_where_it_stood_last() {
    let table = Table::new(10, TTL);
    let now = table.origin;
    table.set(entry(1, 4), now, stays);
    let hinted = AtomicUsize::new(0);
    let moved_to = |place| {
        table.find(key(1), now, false, |had, hint| {
            assert_eq!(*had, server(4));
            hinted.store(hint, Ordering::Relaxed);
            place
        })
    };
    assert_eq!(moved_to(Some(9)), Found::At(9));
    assert_eq!(hinted.load(Ordering::Relaxed), 4);
    assert_eq!(moved_to(None), Found::Lost);
    assert_eq!(hinted.load(Ordering::Relaxed), 9);
}

#[test]
fn there_are_never_more_keys_than_may_be() {
    for max_keys in [1, 7, 255, 256, 1_000, 20_000] {
        let table = Table::new(max_keys, TTL);
        let (mut set, mut ended) = (0, 0);
        for number in 0..2 * max_keys as u64 + 10 {
            let change = table.set(entry(number, 0), table.origin, stays);
            set += usize::from(change.is_set);
            ended += change.ended.len();
            assert!(
                change
                    .ended
                    .iter()
                    .all(|end| end.cause == ExpiryCause::Capacity)
            );
        }
        assert!(table.len() <= max_keys, "{} of {max_keys}", table.len());
        assert!(
            table.len() * 10 >= max_keys * 9,
            "{} of {max_keys}",
            table.len()
        );
        // nothing is lost without a word
        assert_eq!(set - ended, table.len());
    }
}

#[test]
fn what_was_unused_for_longest_makes_room() {
    let table = Table::new(8, TTL);
    let second = |n: u64| table.origin + Duration::from_secs(n);
    for number in 0..8 {
        table.set(entry(number, 0), second(number), stays);
    }
    find(&table, 0, second(9));
    let change = table.set(entry(8, 0), second(10), stays);
    assert_eq!(change.ended[0].key, told(1));
    assert_eq!(find(&table, 0, second(10)), Found::At(0));
}

#[test]
fn keys_that_come_clear_away_what_has_expired() {
    let table = Table::new(1_000, TTL);
    for number in 0..200 {
        table.set(entry(number, 0), table.origin, stays);
    }
    let later = table.origin + TTL;
    let mut ended = 0;
    for number in 200..600 {
        let change = table.set(entry(number, 0), later, stays);
        assert!(change.ended.len() <= LOOKS);
        ended += change.ended.len();
    }
    assert_eq!(ended, 200);
    assert_eq!(table.len(), 400);
}

#[test]
fn threads_agree_on_one_server_for_a_key() {
    let table = Table::new(1_000, TTL);
    let set = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, set) = (&table, &set);
            scope.spawn(move || {
                for number in 0..500 {
                    let change = table.set(entry(number, thread), table.origin, stays);
                    set.fetch_add(usize::from(change.is_set), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(set.into_inner(), 500);
    assert_eq!(table.len(), 500);
}

#[derive(Debug, Clone)]
enum Step {
    Find(u64),
    Set(u64, usize),
    Lose(u64, usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0_u64..40;
    prop_oneof![
        number.clone().prop_map(Step::Find),
        (number.clone(), 0_usize..5).prop_map(|(n, s)| Step::Set(n, s)),
        (number, 0_usize..5).prop_map(|(n, s)| Step::Lose(n, s)),
        (1_u64..40_000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Against a map that forgets nothing: what the table says is what was set, in time, and whatever
    /// it forgets it tells of, once.
    #[test]
    fn the_table_never_says_what_is_not_so(steps in prop::collection::vec(step(), 1..300)) {
        let table = Table::new(16, TTL);
        let mut now = table.origin;
        let mut model: HashMap<KeyDigest, (usize, Instant)> = HashMap::new();
        for step in steps {
            match step {
                Step::Wait(ms) => now += Duration::from_millis(ms),
                Step::Find(number) => {
                    let digest = told(number);
                    let expected = match model.get_mut(&digest) {
                        Some((server, used)) if now - *used < TTL => {
                            *used = now;
                            Found::At(*server)
                        }
                        _ => Found::Nothing,
                    };
                    prop_assert_eq!(find(&table, number, now), expected);
                }
                Step::Set(number, to) | Step::Lose(number, to) => {
                    let loses = matches!(step, Step::Lose(..));
                    let change = table.set(entry(number, to), now, |_| {
                        loses.then_some(ExpiryCause::Removed)
                    });
                    for end in &change.ended {
                        let had = model.remove(&end.key);
                        prop_assert!(had.is_some_and(|(had, _)| end.server == server(had)));
                    }
                    if change.is_set {
                        let before = model.insert(told(number), (to, now));
                        prop_assert!(before.is_none());
                    }
                }
            }
            prop_assert_eq!(table.len(), model.len());
            prop_assert!(table.len() <= 16);
        }
    }
}
