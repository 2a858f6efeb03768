//! The series of one metric at one moment, no more of them than are good for whoever stores them.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::{AddAssign, Sub};

use opentelemetry::KeyValue;
use opentelemetry::metrics::AsyncInstrument;

use crate::names;
use crate::names::metric::label;

/// The values of one metric, as they are now: what a callback of
/// [`observe_counter`](crate::metrics::observe_counter) and its like fills.
///
/// Values that are added with the same attributes are one series, their sum; a series that nothing is
/// added to ends. At most [`MOST`](Self::MOST) series are told one by one. What is beyond comes
/// together, by its words, in series that have `otel.metric.overflow` in place of tool, set and server.
/// A series that came together with others stays with them for as long as it lives, and what it
/// counted stays when it ends: such a counter never goes back.
pub struct Series<N> {
    values: Vec<(Vec<KeyValue>, N)>,
    places: HashMap<Vec<KeyValue>, usize>,
}

/// A number that is counted.
pub(super) trait Number:
    AddAssign + Sub<Output = Self> + PartialOrd + Copy + Default + Send + 'static
{
}

impl Number for u64 {}
impl Number for f64 {}

impl<N> Series<N> {
    /// So many series of a metric are told one by one. The SDK's own limit is 2,000; it is never
    /// reached, as it would keep the last value of what is beyond it, and not the sum.
    pub const MOST: usize = 1_900;
}

impl<N: AddAssign + Copy> Series<N> {
    /// Adds a value. Attributes of one series have to come in one order.
    pub fn add(&mut self, value: N, attributes: impl IntoIterator<Item = KeyValue>) {
        let attributes = Vec::from_iter(attributes);
        let place = self.places.get(&attributes).copied();
        match place.and_then(|place| self.values.get_mut(place)) {
            Some((_, sum)) => *sum += value,
            None => {
                self.places.insert(attributes.clone(), self.values.len());
                self.values.push((attributes, value));
            }
        }
    }

    fn new() -> Self {
        Self {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<N> fmt::Debug for Series<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series")
            .field("series", &self.values.len())
            .finish_non_exhaustive()
    }
}

/// Returns the attribute of the series in which all comes together that is beyond the limit.
///
/// A counter whose words are known, but not who will use them, adds 0 to that series under each word:
/// so it is there from the start.
#[must_use]
pub fn overflow() -> KeyValue {
    KeyValue::new(label::OVERFLOW, true)
}

/// Which series of a metric are told one by one, and what the others came to: what has to be known
/// from one time to the next.
#[derive(Debug)]
pub(super) struct Shown<N> {
    places: HashMap<Vec<KeyValue>, Place<N>>,
    /// By their words, what was ever counted by series that are not told one by one.
    folded: HashMap<Vec<KeyValue>, N>,
    /// Whether the values only grow.
    is_counter: bool,
}

/// How a series is told.
#[derive(Debug, Clone, Copy)]
enum Place<N> {
    Alone,
    /// With others, and how much of it they know already.
    Together(N),
}

impl<N: Number> Shown<N> {
    pub(super) fn counter() -> Self {
        Self {
            places: HashMap::new(),
            folded: HashMap::new(),
            is_counter: true,
        }
    }

    pub(super) fn gauge() -> Self {
        Self {
            is_counter: false,
            ..Self::counter()
        }
    }

    /// Lets a callback fill the series, and tells an observer of them.
    pub(super) fn tell(
        &mut self,
        fill: impl FnOnce(&mut Series<N>),
        observer: &dyn AsyncInstrument<N>,
    ) {
        let mut series = Series::new();
        fill(&mut series);
        for (attributes, value) in self.fold(series) {
            observer.observe(value, &attributes);
        }
    }

    fn fold(&mut self, series: Series<N>) -> Vec<(Vec<KeyValue>, N)> {
        if !self.is_counter {
            self.folded.clear();
        }
        let known = mem::take(&mut self.places);
        let is_alone = |of: &Vec<KeyValue>| matches!(known.get(of), Some(Place::Alone));
        let old = series.values.iter().filter(|(of, _)| is_alone(of)).count();
        let mut room = Series::<N>::MOST.saturating_sub(old);
        let mut told = Vec::with_capacity(series.values.len());
        for (of, value) in series.values {
            if of.contains(&overflow()) {
                *self.folded.entry(of).or_default() += value;
                continue;
            }
            let place = match known.get(&of) {
                Some(place) => *place,
                None if room > 0 => {
                    room -= 1;
                    Place::Alone
                }
                None => Place::Together(N::default()),
            };
            let place = match place {
                Place::Alone => {
                    told.push((of.clone(), value));
                    Place::Alone
                }
                Place::Together(before) => {
                    self.put_together(&of, before, value);
                    Place::Together(value)
                }
            };
            self.places.insert(of, place);
        }
        told.extend(self.folded.iter().map(|(of, sum)| (of.clone(), *sum)));
        told
    }

    fn put_together(&mut self, of: &[KeyValue], before: N, value: N) {
        let sum = self.folded.entry(without_names(of)).or_default();
        match self.is_counter {
            true if value > before => *sum += value - before,
            true => {}
            false => *sum += value,
        }
    }
}

/// Leaves the words, of which there are few, and takes the names away.
fn without_names(attributes: &[KeyValue]) -> Vec<KeyValue> {
    let is_name = |attribute: &&KeyValue| {
        let names = [names::TOOL, names::SERVER_SET, names::SERVER];
        names.contains(&attribute.key.as_str())
    };
    let words = attributes.iter().filter(|one| !is_name(one)).cloned();
    [overflow()].into_iter().chain(words).collect()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn of(tool: usize) -> [KeyValue; 2] {
        let tool = KeyValue::new(names::TOOL, format!("tool_{tool}"));
        [tool, KeyValue::new(label::RESULT, "hit")]
    }

    fn fold(shown: &mut Shown<u64>, tools: Range<usize>, each: u64) -> (usize, u64) {
        let mut series = Series::new();
        series.add(0, [overflow(), KeyValue::new(label::RESULT, "hit")]);
        for tool in tools {
            series.add(each - 1, of(tool));
            series.add(1, of(tool));
        }
        let told = shown.fold(series);
        let (rest, alone): (Vec<_>, Vec<_>) =
            told.iter().partition(|(of, _)| of.contains(&overflow()));
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].0[1], KeyValue::new(label::RESULT, "hit"));
        assert!(alone.iter().all(|(_, value)| *value == each));
        (alone.len(), rest[0].1)
    }

    #[test]
    fn what_is_beyond_the_limit_comes_together_by_its_words() {
        let mut shown = Shown::counter();
        let most = Series::<u64>::MOST;
        let beyond = (10_000 - most) as u64;
        assert_eq!(fold(&mut shown, 0..10_000, 3), (most, 3 * beyond));
        assert_eq!(fold(&mut shown, 0..10_000, 5), (most, 5 * beyond));
    }

    #[test]
    fn what_is_gone_ends_and_what_came_together_never_goes_back() {
        let mut shown = Shown::counter();
        assert_eq!(fold(&mut shown, 0..2_000, 3), (1_900, 300));
        // half of those that were alone are gone, and so are half of the others
        assert_eq!(fold(&mut shown, 950..1_950, 4), (950, 350));
        // there is room for new ones
        assert_eq!(fold(&mut shown, 950..1_960, 4), (960, 350));
        assert_eq!(shown.places.len(), 1_010);
    }

    #[test]
    fn a_gauge_tells_what_is() {
        let mut shown = Shown::gauge();
        assert_eq!(fold(&mut shown, 0..2_000, 3), (1_900, 300));
        assert_eq!(fold(&mut shown, 0..2_000, 2), (1_900, 200));
    }
}
