use proptest::prelude::*;

use super::*;

fn weight(weight: u32) -> Weight {
    Weight::new(weight).unwrap()
}

/// Servers by number, each with its weight, in the order that [`highest`] asks for.
fn servers(weights: &[u32]) -> Vec<(usize, Candidate)> {
    let candidate = |(index, own): (usize, &u32)| {
        let digest = server_digest(&ServerId::new(format!("server-{index}")).unwrap());
        let weight = weight(*own);
        (index, Candidate { digest, weight })
    };
    let mut all: Vec<_> = weights.iter().enumerate().map(candidate).collect();
    all.sort_by_key(|(_, server)| std::cmp::Reverse(server.weight));
    all
}

fn key(number: u64) -> u64 {
    fold(FingerprintKey::fixed().bytes(&number.to_le_bytes()))
}

fn home(key: u64, servers: &[(usize, Candidate)]) -> usize {
    highest(key, servers.iter().copied()).unwrap()
}

/// The ranking of all, as a walk from one to the next finds it.
fn ranking(key: u64, servers: &[(usize, Candidate)]) -> Vec<usize> {
    let mut tried = Vec::new();
    let left = |tried: &[usize]| {
        let left = servers.iter().filter(|(index, _)| !tried.contains(index));
        highest(key, left.copied())
    };
    while let Some(next) = left(&tried) {
        tried.push(next);
    }
    tried
}

/// The ranking of all, by the definition.
fn by_score(key: u64, servers: &[(usize, Candidate)]) -> Vec<usize> {
    let mut all: Vec<_> = servers
        .iter()
        .map(|(index, server)| {
            let number = pair(key, server.digest);
            (score(server.weight, number), number, *index)
        })
        .collect();
    all.sort_by(|a, b| b.partial_cmp(a).unwrap());
    all.into_iter().map(|(_, _, index)| index).collect()
}

#[test]
fn the_numbers_are_those_of_every_release() {
    for (name, digest) in [
        ("a", 0xf016_1807_50a7_8c1d),
        ("github", 0xd107_d7c0_6f80_4c62),
        ("orders-primary", 0xda28_9e75_be14_07cc),
    ] {
        assert_eq!(server_digest(&ServerId::new(name).unwrap()), digest);
    }
    // SplitMix64 from the seed 0: the reference implementation's first three
    let golden = 0x9e37_79b9_7f4a_7c15_u64;
    for (n, number, expected) in [
        (1, 0xe220_a839_7b1d_cdaf, 402.971_839_524_839_54_f64),
        (2, 0x6e78_9e6a_a1b9_65f4, 59.493_858_085_716_525),
        (3, 0x06c4_5d18_8009_454f, 13.762_302_999_012_315),
    ] {
        assert_eq!(pair(0, golden.wrapping_mul(n)), number);
        assert_eq!(score(weight(50), number).to_bits(), expected.to_bits());
    }
    let all = servers(&[50, 50, 20, 100, 0]);
    let homes: Vec<usize> = (0..8).map(|number| home(key(number), &all)).collect();
    assert_eq!(homes, [3, 3, 3, 1, 1, 1, 1, 3]);
    assert_eq!(ranking(key(0), &all), [3, 1, 0, 2, 4]);
}

#[test]
fn the_logarithm_is_one() {
    let mut number = 1_u64;
    for _ in 0..100_000 {
        number = pair(number, 0x9e37_79b9_7f4a_7c15);
        let x = unit(number);
        let (ours, std) = (ln(x), x.ln());
        assert!((ours - std).abs() <= 1e-15 * std.abs(), "{x}: {ours} {std}");
    }
    assert_eq!(ln(0.5), -std::f64::consts::LN_2);
}

#[test]
fn the_ends_of_the_scale_are_scores_too() {
    for number in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63] {
        assert!((0.0..1.0).contains(&unit(number)) && unit(number) > 0.0);
        let score = score(weight(1), number);
        assert!(score.is_finite() && score > 0.0, "{number} {score}");
    }
    assert!(score(weight(1), u64::MAX) > score(weight(1), 0));
    assert_eq!(highest(1, std::iter::empty()), None);
    assert_eq!(score(Weight::new(0).unwrap(), 7), 0.0);
}

#[test]
fn shares_are_as_the_weights_say() {
    for weights in [
        &[50, 50, 50][..],
        &[100, 50, 20, 20, 10],
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        &[100, 1],
    ] {
        const KEYS: u64 = 20_000;
        let all = servers(weights);
        let mut counts = vec![0_u32; weights.len()];
        for number in 0..KEYS {
            counts[home(key(number), &all)] += 1;
        }
        let total = f64::from(weights.iter().sum::<u32>());
        for (index, own) in weights.iter().enumerate() {
            let share = f64::from(*own) / total;
            let (mean, variance) = (20_000.0 * share, 20_000.0 * share * (1.0 - share));
            let off = (f64::from(counts[index]) - mean).abs() / variance.sqrt();
            // keys are fixed, so this holds or does not; by chance it fails once in 15,000
            assert!(
                off < 4.0,
                "server {index} of {weights:?}: {counts:?}, {off} sigmas"
            );
        }
    }
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0_u32..=100, 1..12)
}

proptest! {
    #[test]
    fn a_ranking_depends_on_nothing_but_the_pairs_and_their_weights(
        mut weights in weights(),
        changed: prop::sample::Index,
        now in 0_u32..=100,
        number: u64,
    ) {
        let (all, changed) = (servers(&weights), changed.index(weights.len()));
        let before = ranking(number, &all);
        prop_assert_eq!(&before, &by_score(number, &all));
        // standbys come after all others
        prop_assert!(before.is_sorted_by_key(|index| weights[*index] == 0));
        let without = |order: &[usize]| -> Vec<usize> {
            order.iter().copied().filter(|index| *index != changed).collect()
        };
        // the keys of a server that leaves go to the next in their ranking, and all others stay;
        // joining is the same, read the other way round
        let rest: Vec<_> = all.iter().copied().filter(|(i, _)| *i != changed).collect();
        prop_assert_eq!(ranking(number, &rest), without(&before));
        // a new weight moves no key between others, and more of it loses none
        let more = now >= weights[changed];
        weights[changed] = now;
        let after = ranking(number, &servers(&weights));
        prop_assert_eq!(without(&after), without(&before));
        prop_assert!(!more || before[0] != changed || after[0] == changed);
    }
}
