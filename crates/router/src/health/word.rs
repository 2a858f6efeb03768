//! What a choice needs to know of a server's health, in one word that is read without a lock.

use super::moment::Moment;

/// A moment in the lowest bits, flags above it, and how often things changed in the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

/// Which change of a server's health a call was sent after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u16);

impl Word {
    const TIME: u64 = (1 << 40) - 1;
    /// Left out until the moment; then due for a probe.
    pub(crate) const EJECTED: u64 = 1 << 40;
    /// A probe is on its way, and is written off at the moment.
    pub(crate) const PROBING: u64 = 1 << 41;
    /// It came at the moment, and gets less than its share for a while.
    pub(crate) const STARTING: u64 = 1 << 42;
    /// Its connection is lost.
    pub(crate) const GONE: u64 = 1 << 43;
    /// It answers no pings.
    pub(crate) const SILENT: u64 = 1 << 44;
    /// An operator says it is not to be used.
    pub(crate) const HELD: u64 = 1 << 45;
    /// It ever got a call that may be a probe: then it is worth waiting for one.
    pub(crate) const SAFE: u64 = 1 << 46;
    /// It belongs to a set, and is counted there.
    pub(crate) const MEMBER: u64 = 1 << 47;

    /// Somebody says that it is not there, whatever its calls say.
    pub(crate) const AWAY: u64 = Self::GONE | Self::SILENT | Self::HELD;
    pub(crate) const UNFIT: u64 = Self::EJECTED | Self::AWAY;

    #[inline]
    pub(crate) const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    pub(crate) const fn with(self, flags: u64) -> Self {
        Self(self.0 | flags)
    }

    pub(crate) const fn without(self, flags: u64) -> Self {
        Self(self.0 & !flags)
    }

    pub(crate) const fn time(self) -> Moment {
        Moment(self.0 & Self::TIME)
    }

    pub(crate) const fn at(self, moment: Moment) -> Self {
        let time = if moment.0 < Self::TIME {
            moment.0
        } else {
            Self::TIME
        };
        Self(self.0 & !Self::TIME | time)
    }

    #[inline]
    pub(crate) const fn generation(self) -> Generation {
        Generation((self.0 >> 48) as u16)
    }

    /// Begins anew: outcomes of calls sent before do not count any more.
    pub(crate) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1 << 48))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_do_not_touch_each_other() {
        let word = Word(u64::MAX).next();
        assert_eq!(word.generation(), Generation(0), "it wraps");
        assert!(word.has(Word::MEMBER) && word.has(Word::EJECTED));
        let word = Word(0)
            .with(Word::SAFE | Word::EJECTED)
            .at(Moment(u64::MAX));
        assert_eq!(word.time(), Moment(Word::TIME));
        assert!(!word.has(Word::PROBING));
        let word = word.next().next().at(Moment(7));
        assert_eq!((word.generation(), word.time()), (Generation(2), Moment(7)));
        let word = word.without(Word::SAFE | Word::EJECTED);
        assert!(!word.has(Word::UNFIT | Word::SAFE));
        assert_eq!((word.generation(), word.time()), (Generation(2), Moment(7)));
    }
}
