//! Replays recorded calls: which answers each policy would have given, and whether they were right.
//!
//! Ours is the cache layer itself, on a paused clock, over a server that gives the recorded
//! answers. The other policies see the same calls in the same order, one after another.

mod answer;
mod blind;
mod drive;
mod options;
mod order;
mod place;
mod report;
mod tally;
mod tools;

use std::collections::{HashMap, HashSet};

use callward_cache::CacheConfig;
use callward_core::Effect;

pub use self::options::Options;
pub use self::report::Replayed;
pub use self::tally::Figures;

use self::blind::{Compared, Seen};
use self::drive::Driver;
use self::order::{InOrder, Timed};
use self::tally::{Facts, Kept};
use self::tools::Tools;
pub use self::tools::labelled_tool;
use crate::ours::{Charge, paused};
use crate::trace::RecordedCall;
use crate::{Capacity, ReplayError};

/// The assumed length of a result without a recorded one.
const UNKNOWN_BYTES: u64 = 1_024;

/// The length of a result that has no padding.
const MIN_RESULT: u32 = 100;

/// Replays recorded calls through all policies.
///
/// Must not be called within a runtime: it runs on its own, with a paused clock.
///
/// ```
/// use callward_replay::calls::{self, Options};
/// use callward_replay::trace::Calls;
///
/// let digest = "8576f678f5289c25f896b8be862f7688e72c8878";
/// let call = r#"{"tool":"get_order","args":{"id":7},"write":false,"result_sha1":"#;
/// let recorded = format!("{call}\"{digest}\"}}\n").repeat(2);
/// let recorded = Calls::from_reader("calls.jsonl", std::io::Cursor::new(recorded))?;
/// let replayed = calls::replay(recorded, &Options::default(), &mut |_| ())?;
/// let ours = &replayed.policies[0];
/// assert_eq!((ours.hits, ours.stale, ours.writes_swallowed), (1, Some(0), 0));
/// # Ok::<(), callward_replay::ReplayError>(())
/// ```
///
/// # Errors
///
/// [`ReplayError::Cache`] if the runtime or the cache cannot be built. An invalid line is counted
/// and reported to `left_out`.
pub fn replay(
    calls: impl IntoIterator<Item = Result<RecordedCall, ReplayError>>,
    options: &Options,
    left_out: &mut dyn FnMut(&ReplayError),
) -> Result<Replayed, ReplayError> {
    let runtime = paused()?;
    let size = Size::of(options)?;
    Ok(runtime.block_on(run(calls.into_iter(), options, size, left_out)))
}

async fn run(
    calls: impl Iterator<Item = Result<RecordedCall, ReplayError>>,
    options: &Options,
    size: Size,
    report: &mut dyn FnMut(&ReplayError),
) -> Replayed {
    let mut driver = Driver::new(options, size.config, size.max_result);
    let mut compared = Compared::new(options);
    let mut tools = Tools::new(options);
    // the key of the last write to each world
    let mut last_writes = HashMap::new();
    let mut sessions = HashSet::new();
    let (mut replayed, mut left_out) = (0, 0);

    for next in InOrder::new(calls, options.share_sessions) {
        let timed = match next {
            Ok(timed) => timed,
            Err(error) => {
                left_out += 1;
                report(&error);
                continue;
            }
        };
        let tool = tools.of(&timed.call);
        let place = &timed.place;
        sessions.insert(place.session);
        let effect = tool.plan().effect;
        let mut facts = facts(&timed, effect);
        let is_idempotent = timed.call.labelled() == Some(Effect::Idempotent)
            || (effect == Effect::Idempotent && tools.listed.contains_key(&timed.call.tool));
        if facts.write {
            let last = last_writes.insert(place.world, place.key);
            facts.repeats = last == Some(place.key) && is_idempotent;
        }
        driver.await_turn(&timed).await;
        compared.see(&Seen {
            facts: &facts,
            world: place.world,
            writes: effect.is_write(),
            now: driver.now(),
            weight: match options.capacity {
                Capacity::Entries(_) => 1,
                Capacity::Bytes(_) => {
                    let bytes = u32::try_from(facts.bytes).unwrap_or(u32::MAX);
                    size.charge.of(bytes)
                }
            },
        });
        driver.send(&timed, tool, facts).await;
        replayed += 1;
    }
    let ours = driver.end().await;
    Replayed {
        calls: replayed,
        sessions: sessions.len() as u64,
        left_out,
        policies: std::iter::once(ours).chain(compared.end()).collect(),
    }
}

/// Returns the recorded facts of a call. Without a label, the effect of the plan counts.
fn facts(timed: &Timed, effect: Effect) -> Facts {
    let Timed { call, place, .. } = timed;
    let digest = call.result_sha1.as_deref().and_then(|sha1| sha1.get(8..));
    let cost = call.duration_ms.filter(|_| call.ran());
    Facts {
        key: place.key,
        bytes: call.result_bytes.unwrap_or(UNKNOWN_BYTES),
        result: Kept {
            digest: digest.and_then(|digits| u128::from_str_radix(digits, 16).ok()),
            cost,
        },
        error: call.error || call.delivery.is_some(),
        lost: call.delivery,
        write: call.labelled().unwrap_or(effect).is_write(),
        repeats: false,
    }
}

/// The capacity, and the weight of results.
struct Size {
    config: CacheConfig,
    /// The maximum length of a made result.
    max_result: u64,
    charge: Charge,
}

impl Size {
    fn of(options: &Options) -> Result<Self, ReplayError> {
        let mut config = options.cache.clone();
        let charge = Charge::measure()?;
        let (max_bytes, max_result) = match options.capacity {
            // the smallest result that is not stored
            Capacity::Bytes(bytes) => (bytes, config.max_item_bytes.saturating_add(1)),
            // results without padding all have about the same weight
            Capacity::Entries(entries) => (entries.saturating_mul(charge.of(MIN_RESULT)), 0),
        };
        config.max_bytes = max_bytes;
        for (tool, scopes) in &options.scopes {
            let scopes = scopes.clone();
            config.scopes = config.scopes.with(tools::set(), tool.clone(), scopes);
        }
        Ok(Self {
            config,
            max_result,
            charge,
        })
    }
}
