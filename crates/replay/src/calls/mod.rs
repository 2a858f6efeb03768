//! Replaying recorded calls: what each policy would have answered, and whether that was right.
//!
//! Ours is the cache layer itself, on a clock that goes as fast as there is nothing to wait for,
//! over a server that answers as recorded. What it is compared with sees the same calls in the same
//! order, one after the other.

mod answer;
mod blind;
mod drive;
mod options;
mod order;
mod place;
mod report;
mod tally;
mod tools;

use std::collections::HashSet;

use callward_cache::CacheConfig;
use callward_core::Effect;

pub use self::options::{HintSource, Options, Sessions};
pub use self::report::Replayed;
pub use self::tally::Figures;

use self::blind::Compared;
use self::drive::{Driver, LastWrites};
use self::order::{InOrder, Timed};
use self::tally::Facts;
pub(crate) use self::tools::Tools;
use crate::ours::Charge;
use crate::trace::RecordedCall;
use crate::{Capacity, ReplayError};

/// Who is told how a replay goes.
pub trait Watch {
    /// So many calls are replayed.
    fn replayed(&mut self, calls: u64) {
        let _ = calls;
    }

    /// A line cannot be used, and is left out.
    fn left_out(&mut self, error: &ReplayError) {
        let _ = error;
    }
}

/// Tells nobody.
impl Watch for () {}

/// What a result is taken to be long whose length was not recorded.
const UNKNOWN_BYTES: u64 = 1_024;

/// Replays recorded calls through all policies.
///
/// Runs on a runtime of its own whose clock is paused, so it must not be called from within one.
///
/// ```
/// use callward_replay::calls::{self, Options};
/// use callward_replay::trace::Calls;
///
/// let recorded = r#"
///     {"tool":"get_order","args":{"id":7},"write":false,"result_sha1":"8576f678f5289c25f896b8be862f7688e72c8878"}
///     {"tool":"get_order","args":{"id":7},"write":false,"result_sha1":"8576f678f5289c25f896b8be862f7688e72c8878"}
/// "#;
/// let recorded = Calls::from_reader("calls.jsonl", recorded.as_bytes())?;
/// let replayed = calls::replay(recorded, &Options::default(), &mut ())?;
/// let ours = replayed.ours();
/// assert_eq!((ours.hits, ours.stale, ours.writes_swallowed), (1, Some(0), 0));
/// # Ok::<(), callward_replay::ReplayError>(())
/// ```
///
/// # Errors
///
/// [`ReplayError::Cache`] if there is no runtime to be had. A bad line is told to `watch` and counted.
pub fn replay(
    calls: impl IntoIterator<Item = Result<RecordedCall, ReplayError>>,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Replayed, ReplayError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(ReplayError::cache)?;
    let size = Size::of(options)?;
    Ok(runtime.block_on(run(calls.into_iter(), options, &size, watch)))
}

async fn run(
    calls: impl Iterator<Item = Result<RecordedCall, ReplayError>>,
    options: &Options,
    size: &Size,
    watch: &mut dyn Watch,
) -> Replayed {
    let config = tools::with_scopes(size.config.clone(), &options.scopes);
    let mut driver = Driver::new(options, config, size.longest);
    let mut compared = Compared::new(options);
    let mut tools = Tools::new(options);
    let mut last_writes = LastWrites::default();
    let mut sessions = HashSet::new();
    let (mut replayed, mut left_out) = (0, 0);

    for next in InOrder::new(calls, options.sessions) {
        let timed = match next {
            Ok(timed) => timed,
            Err(error) => {
                left_out += 1;
                watch.left_out(&error);
                continue;
            }
        };
        let tool = match tools.of(&timed.call) {
            Ok(tool) => tool,
            Err(error) => {
                left_out += 1;
                watch.left_out(&ReplayError::cache(error));
                continue;
            }
        };
        sessions.insert(timed.place.session);
        let effect = tool.plan().effect;
        let declared = options
            .is_listed(timed.call.tool.as_str())
            .then_some(effect);
        let facts = facts(&timed, effect, declared, &mut last_writes);
        driver.await_turn(&timed).await;
        let (world, now) = (timed.place.world, driver.now());
        compared.see(&facts, world, effect.is_write(), now, size.weight(&facts));
        driver.send(&timed, tool, facts).await;
        replayed += 1;
        watch.replayed(replayed);
    }
    let ours = driver.end().await;
    Replayed {
        calls: replayed,
        sessions: sessions.len() as u64,
        left_out,
        policies: std::iter::once(ours).chain(compared.end()).collect(),
    }
}

/// What the record says of a call. Where it does not say whether the call is a write, the plan does.
fn facts(
    timed: &Timed,
    effect: Effect,
    declared: Option<Effect>,
    last_writes: &mut LastWrites,
) -> Facts {
    let Timed { call, place, .. } = timed;
    let labelled = call.labelled();
    let write = labelled.unwrap_or(effect).is_write();
    let has_no_further_effect =
        labelled == Some(Effect::Idempotent) || declared == Some(Effect::Idempotent);
    Facts {
        key: place.key,
        bytes: call.result_bytes.unwrap_or(UNKNOWN_BYTES),
        digest: call.result_sha1,
        error: call.error || call.delivery.is_some(),
        answered: call.delivery.is_none(),
        write,
        repeats: write && last_writes.is_repeated(place) && has_no_further_effect,
        cost: call
            .duration_ms
            .filter(|_| call.ran())
            .map(crate::trace::Millis::duration),
    }
}

/// How much may be kept, and what a result weighs.
struct Size {
    config: CacheConfig,
    /// How long a result is made at most.
    longest: u64,
    charge: Charge,
}

impl Size {
    fn of(options: &Options) -> Result<Self, ReplayError> {
        let mut config = options.cache.clone();
        let charge = Charge::ask()?;
        let longest = match options.capacity {
            Capacity::Bytes(bytes) => {
                config.max_bytes = bytes;
                // the first length that is not kept
                config.max_item_bytes.saturating_add(1)
            }
            Capacity::Entries(entries) => {
                // results that say no more than whose they are; all weigh about the same
                config.max_bytes = entries.saturating_mul(charge.of(SHORTEST));
                0
            }
        };
        Ok(Self {
            config,
            longest,
            charge,
        })
    }

    fn weight(&self, facts: &Facts) -> u64 {
        self.charge
            .of(u32::try_from(facts.bytes).unwrap_or(u32::MAX))
    }
}

/// How long a result is that says no more than whose it is.
const SHORTEST: u32 = 100;
