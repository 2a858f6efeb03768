//! Selects the server of a key: rendezvous hashing, by weight.
//!
//! Each pair of a key and a server gets a number that looks random and is the same everywhere. The
//! server with the highest score takes the key, and the ranking of all by their scores says who
//! takes it next. So a server that leaves gives up its own keys and no others, and one that joins
//! takes its share and moves nothing else: no ring to keep, and no state to share between processes
//! (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998).
//!
//! The score is `-weight / ln(u)`, with `u` the pair's number as one between 0 and 1. Then the
//! highest of them all is a server's as often as its weight says, and a weight that changes moves
//! no key between two other servers (Schindelhauer and Schomaker, "Weighted distributed hash
//! tables", 2005). Servers of weight 0 come after all others.
//!
//! **Stable.** All that counts is done in integers and in the four operations that IEEE 754 fixes
//! to the last bit, so processes, machines and releases agree. The tests hold values to compare
//! with.

use callward_core::{FingerprintKey, ServerId, Weight};

/// Returns what stands for a server: SipHash-1-3 of its id, under a public key.
pub(crate) fn server_digest(server: &ServerId) -> u64 {
    let digest = FingerprintKey::fixed().bytes(server.as_str().as_bytes());
    fold(digest)
}

/// Returns half of a digest, of which either half is as good: half of a uniform hash is one.
pub(crate) const fn fold(digest: u128) -> u64 {
    digest as u64
}

/// A server as it takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its [`server_digest`].
    pub(crate) digest: u64,
    pub(crate) weight: Weight,
}

/// Returns the number of the server that ranks highest for a key; `None` if there is none.
pub(crate) fn highest(
    key: u64,
    candidates: impl Iterator<Item = (usize, Candidate)>,
) -> Option<usize> {
    let ranked = candidates.map(|(index, Candidate { digest, weight })| {
        let number = pair(key, digest);
        (score(weight, number), number, index)
    });
    let by_rank = |a: &(f64, u64, usize), b: &(f64, u64, usize)| {
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
    };
    ranked.max_by(by_rank).map(|(.., index)| index)
}

/// Returns the number of a pair: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014; its
/// constants are Stafford's variant 13) over the sum of both digests.
const fn pair(key: u64, server: u64) -> u64 {
    let mut z = key.wrapping_add(server);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the score of a pair: above 0, or 0 for a standby.
fn score(weight: Weight, number: u64) -> f64 {
    -f64::from(weight.get()) / ln(unit(number))
}

/// Spreads numbers over the open interval from 0 to 1: 52 bits and a half are what a double holds
/// exactly.
fn unit(number: u64) -> f64 {
    ((number >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Returns the natural logarithm of a normal number above 0 and below 1, to within some units in
/// the last place, and the same bits on every machine. That of the standard library is the
/// system's, and systems differ in the last bit.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    // x = mantissa * 2^exponent, with a mantissa from 1 to 2
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let exponent = f64::from(i32::try_from(bits >> 52 & 0x7ff).unwrap_or_default() - 1023);
    let (mantissa, exponent) = if mantissa > std::f64::consts::SQRT_2 {
        (mantissa / 2.0, exponent + 1.0)
    } else {
        (mantissa, exponent)
    };
    // ln m = 2 artanh((m - 1) / (m + 1)), whose series ends soon for an m near 1
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let sum = (0..TERMS).rev().fold(0.0, |sum, term| {
        sum * square + 1.0 / f64::from(2 * term + 1)
    });
    exponent * std::f64::consts::LN_2 + 2.0 * s * sum
}

/// This many terms of the series leave an error below a double's own: `s` is at most 0.172.
const TERMS: u32 = 11;

#[cfg(test)]
mod tests;
