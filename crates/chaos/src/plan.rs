//! The choice of faults: a script, or draws from a seed.

use std::time::Duration;

use fastrand::Rng;

use crate::{Break, Fault, Refusal};

/// Chooses the fault of each call.
///
/// With a seed, it is a function of the seed, the identity of the call and the number of its
/// attempts; the order of calls does not matter.
///
/// ```
/// use callward_chaos::{Chaos, Fault};
///
/// let chaos = Chaos::seeded(7).with_share(1000).with(1, Fault::Refuse);
/// assert_eq!(chaos.fault(42, 1), Some(Fault::Refuse));
/// assert_eq!(Chaos::calm().fault(42, 1), None);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Chaos {
    kind: Kind,
    latency: Duration,
}

#[derive(Debug, Clone)]
enum Kind {
    Drawn(Drawn),
    Script(Vec<Option<Fault>>),
}

#[derive(Debug, Clone)]
struct Drawn {
    seed: u64,
    per_mille: u32,
    faults: Vec<(u32, Fault)>,
}

impl Chaos {
    /// No faults.
    pub const fn calm() -> Self {
        Self::script(Vec::new())
    }

    /// The n-th call at a server meets the n-th of these faults. The script repeats.
    pub const fn script(faults: Vec<Option<Fault>>) -> Self {
        Self {
            kind: Kind::Script(faults),
            latency: Duration::ZERO,
        }
    }

    /// No faults yet: see [`with`](Self::with).
    pub const fn seeded(seed: u64) -> Self {
        Self {
            kind: Kind::Drawn(Drawn {
                seed,
                per_mille: 300,
                faults: Vec::new(),
            }),
            latency: Duration::ZERO,
        }
    }

    /// Every kind of fault, on three calls of ten.
    pub fn everything(seed: u64) -> Self {
        let answer = |refusal| Fault::Answer {
            refusal,
            runs: false,
        };
        let patient = Refusal::new(503).with_retry_after(Duration::from_secs(2));
        Self::transport(seed)
            .with(2, answer(Refusal::new(429)))
            .with(1, answer(Refusal::new(429).with_retry_after(MINUTE)))
            .with(2, answer(Refusal::new(500)))
            .with(2, answer(Refusal::new(503)))
            .with(2, answer(patient))
            .with(1, answer(Refusal::new(400)))
            .with(1, answer(Refusal::new(401)))
            .with(1, answer(Refusal::new(404)))
            .with(2, answer(Refusal::new(-32_603)))
            .with(2, answer(Refusal::new(-32_000)))
            .with(1, answer(Refusal::new(-32_602)))
            .with(4, Fault::Report { runs: false })
            .with(4, Fault::Hang { runs: false })
            .with(4, Fault::Slow { by: 2 * MINUTE })
            .with(2, Fault::Drip { within: 2 * MINUTE })
    }

    /// Faults of the connection, on three calls of ten: refused connections, requests and answers
    /// lost at any byte, late executions, and rare crashes.
    pub fn transport(seed: u64) -> Self {
        let broken = Break::Close;
        let crash = Fault::Crash {
            runs: false,
            down: Duration::from_secs(5),
        };
        let late = Fault::LandLate {
            after: 10 * MINUTE,
            broken,
        };
        Self::seeded(seed)
            .with(8, Fault::Refuse)
            .with(8, Fault::LoseRequest { read: 600, broken })
            .with(8, Fault::LoseReply { sent: 200, broken })
            .with(8, late)
            .with(1, crash)
    }

    /// Sets how many calls of a thousand meet a fault. Default: 300. Ignored by a script.
    pub fn with_share(mut self, per_mille: u32) -> Self {
        if let Kind::Drawn(drawn) = &mut self.kind {
            drawn.per_mille = per_mille;
        }
        self
    }

    /// Adds a fault with a weight. Its numbers are maxima, and its choices are drawn. Ignored by a
    /// script.
    pub fn with(mut self, weight: u32, fault: Fault) -> Self {
        if let Kind::Drawn(drawn) = &mut self.kind {
            drawn.faults.push((weight, fault));
        }
        self
    }

    /// Sets the maximum latency of a call without a fault, half of it before the execution.
    /// Default: none.
    pub const fn with_latency(mut self, most: Duration) -> Self {
        self.latency = most;
        self
    }

    /// Divides all times, including `Retry-After`, for a clock that is not paused.
    pub fn hastened(mut self, times: u32) -> Self {
        let faults: &mut dyn Iterator<Item = &mut Fault> = match &mut self.kind {
            Kind::Drawn(drawn) => &mut drawn.faults.iter_mut().map(|(_, fault)| fault),
            Kind::Script(faults) => &mut faults.iter_mut().flatten(),
        };
        for fault in faults {
            *fault = fault.hastened(times.max(1));
        }
        self.latency /= times.max(1);
        self
    }

    /// Returns the fault of the `tried`-th attempt of a call, counted from 1.
    #[must_use]
    pub fn fault(&self, call: u64, tried: u64) -> Option<Fault> {
        match &self.kind {
            Kind::Drawn(drawn) => drawn.draw(call, tried),
            Kind::Script(_) => None,
        }
    }

    /// Returns the fault of the `nth` call of a server, counted from 0.
    pub(crate) fn meets(&self, nth: u64, call: u64, tried: u64) -> Option<Fault> {
        match &self.kind {
            Kind::Drawn(drawn) => drawn.draw(call, tried),
            Kind::Script(faults) => {
                let at = nth.checked_rem(faults.len() as u64)?;
                faults.get(usize::try_from(at).ok()?).copied().flatten()
            }
        }
    }

    /// Returns the time until a call is executed, and from then until it is answered.
    pub(crate) fn pause(&self, call: u64, tried: u64) -> Duration {
        let most = u64::try_from((self.latency / 2).as_micros()).unwrap_or(u64::MAX);
        if most == 0 {
            return Duration::ZERO;
        }
        let mut rng = Rng::with_seed(mix(call ^ mix(tried)));
        Duration::from_micros(rng.u64(0..=most))
    }

    /// Returns the fault of the `nth` exchange before its call is known: a refused connection, or a
    /// break within the request.
    pub(crate) fn before(&self, nth: u64) -> Option<Fault> {
        // no call has this identity
        let fault = self.meets(nth, u64::MAX, nth)?;
        matches!(fault, Fault::Refuse | Fault::LoseRequest { .. }).then_some(fault)
    }
}

impl Drawn {
    fn draw(&self, call: u64, tried: u64) -> Option<Fault> {
        let key = mix(mix(mix(self.seed) ^ call) ^ tried);
        let mut rng = Rng::with_seed(key);
        let all: u32 = self.faults.iter().map(|(weight, _)| weight).sum();
        if rng.u32(0..1000) >= self.per_mille || all == 0 {
            return None;
        }
        let mut at = rng.u32(0..all);
        for (weight, fault) in &self.faults {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return Some(fault.drawn(&mut rng)),
            }
        }
        None
    }
}

/// The finalizer of SplitMix64.
const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let of = |seed| {
            let chaos = Chaos::everything(seed);
            (0..200)
                .map(move |call| chaos.fault(call, 1))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn the_share_of_faults_holds_and_each_kind_occurs() {
        let chaos = Chaos::everything(1);
        let mut kinds = HashMap::new();
        for call in 0..10_000 {
            if let Some(fault) = chaos.fault(call, 1) {
                *kinds.entry(discriminant(&fault)).or_insert(0) += 1;
            }
        }
        let failed: u32 = kinds.values().sum();
        assert!((2_800..3_200).contains(&failed), "{failed}");
        assert_eq!(kinds.len(), 10, "{kinds:?}");
        assert!((0..10_000).all(|call| chaos.clone().with_share(0).fault(call, 1).is_none()));
    }

    #[test]
    fn a_retry_draws_again() {
        let chaos = Chaos::everything(1).with_share(500);
        assert!((0..100).any(|call| chaos.fault(call, 1) != chaos.fault(call, 2)));
    }

    #[test]
    fn a_script_repeats() {
        let chaos = Chaos::script(vec![Some(Fault::Refuse), None]);
        let met: Vec<_> = (0..4).map(|nth| chaos.meets(nth, 9, 1)).collect();
        assert_eq!(met, [Some(Fault::Refuse), None, Some(Fault::Refuse), None]);
    }
}
