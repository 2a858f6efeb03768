//! What calls are, remembered by the spelling of their arguments.
//!
//! The structural fingerprint of a call's arguments takes a walk over their text; a plain hash of
//! the same bytes is several times cheaper. Agents and programs spell a repeated call the same way
//! each time, so a table remembers what stands for a spelling, together with the words that stand
//! before it: the tool and the principal. One hash and one look then say what call it is.
//!
//! Both hashes are keyed with the secret of the cache. Two texts with the same plain hash would be
//! taken for one, which is as unlikely as two values with the same fingerprint: 128 bits, under a key
//! that nobody outside has. A text that has no fingerprint is never remembered.

use std::sync::atomic::{AtomicU64, Ordering};

use callward_core::{Fingerprint, FingerprintError, FingerprintKey};

use crate::key::ToolWord;

/// A table of spellings, of fixed size. Each spelling has four places to be in: a pair, and the pair
/// beside it, where it goes if its own is full. Where all are taken, one is given to whoever comes last.
#[derive(Debug)]
pub(crate) struct Spellings(Box<[Pair]>);

/// In one line of memory.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Pair([Place; 2]);

/// What is remembered in one place: a spelling and its fingerprint, as four words.
///
/// The words are read and written one by one, without a lock, and those of two writers may mix. The
/// two of the spelling are therefore kept only in disguise, each under both words of the
/// fingerprint: whatever mixture is read, it passes for a spelling only if the fingerprint is the
/// one that was written with it.
#[derive(Debug, Default)]
struct Place {
    spelling: [AtomicU64; 2],
    fingerprint: [AtomicU64; 2],
}

impl Spellings {
    /// Makes two places for each 4 KiB that the store may take: about as many as it has entries of
    /// usual size, up to 1 MiB of places.
    pub(crate) fn for_bytes(max_bytes: u64) -> Self {
        let pairs = usize::try_from(max_bytes >> 12).unwrap_or(usize::MAX);
        // a power of two
        Self::with_pairs(1 << pairs.clamp(FEWEST, MOST).ilog2())
    }

    fn with_pairs(pairs: usize) -> Self {
        Self((0..pairs).map(|_| Default::default()).collect())
    }

    /// Returns what stands for a text behind two words, a tool's and a principal's, however the text is
    /// spelt.
    ///
    /// # Errors
    ///
    /// As [`FingerprintKey::json`], each time.
    #[inline]
    pub(crate) fn digest(
        &self,
        key: &FingerprintKey,
        tool: &ToolWord,
        whom: u128,
        text: &[u8],
    ) -> Result<Fingerprint, FingerprintError> {
        let spelling = tool.behind.bytes_for(whom, text).as_u128();
        let number = self.number(spelling);
        match read(self.pair(number), spelling) {
            Some(found) => Ok(found),
            None => self.farther(key, [tool.word, whom], spelling, text),
        }
    }

    /// Looks in the pair beside it, and else works out what stands for the text, and remembers it.
    #[cold]
    fn farther(
        &self,
        key: &FingerprintKey,
        [tool, whom]: [u128; 2],
        spelling: u128,
        text: &[u8],
    ) -> Result<Fingerprint, FingerprintError> {
        let number = self.number(spelling);
        let [own, beside] = [number, number ^ 1].map(|number| self.pair(number));
        if let Some(found) = read(beside, spelling) {
            return Ok(found);
        }
        let digest = key.combine(&[tool, whom, key.json(text)?.as_u128()]);
        let mut places = own.iter().chain(beside);
        let free = places.clone().find(|place| place.is_empty());
        // bits that had no part in choosing the pair
        let turn = (scatter(spelling) >> 62) as usize;
        let taken = || places.nth(turn).or_else(|| own.get(turn & 1));
        if let Some(place) = free.or_else(taken) {
            place.write(spelling, digest);
        }
        Ok(digest)
    }

    #[inline]
    fn number(&self, spelling: u128) -> usize {
        (scatter(spelling) >> 32) as usize & self.0.len().saturating_sub(1)
    }

    #[inline]
    fn pair(&self, number: usize) -> &[Place] {
        self.0.get(number).map_or(&[], |pair| &pair.0[..])
    }
}

#[inline]
fn read(pair: &[Place], spelling: u128) -> Option<Fingerprint> {
    pair.iter().find_map(|place| place.read(spelling))
}

impl Place {
    fn is_empty(&self) -> bool {
        words(&self.fingerprint) == [0, 0]
    }

    fn read(&self, spelling: u128) -> Option<Fingerprint> {
        let [low, high] = words(&self.fingerprint);
        let [a, b] = words(&self.spelling);
        let found = [a ^ disguise(low, high, 0), b ^ disguise(low, high, 1)];
        // an empty place reads as a spelling of its own, with no fingerprint
        let written = low != 0 || high != 0;
        (written && found == split(spelling)).then(|| Fingerprint::from_u128(join(low, high)))
    }

    fn write(&self, spelling: u128, fingerprint: Fingerprint) {
        let [low, high] = split(fingerprint.as_u128());
        let [a, b] = split(spelling);
        let disguised = [a ^ disguise(low, high, 0), b ^ disguise(low, high, 1)];
        for (word, value) in self.spelling.iter().zip(disguised) {
            word.store(value, Ordering::Relaxed);
        }
        for (word, value) in self.fingerprint.iter().zip([low, high]) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// Mixes both words of a spelling, the highest bits best. Principals are told apart in some of its bits
/// only, and those who ask the same must not all meet in one pair.
fn scatter(spelling: u128) -> u64 {
    let [low, high] = split(spelling);
    let both = low ^ high.rotate_left(29);
    (both ^ both >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Mixes both words of a fingerprint, differently for each word of the spelling. A change of either
/// word changes the result: were it a plain XOR of the two, two torn words could cancel out.
fn disguise(low: u64, high: u64, turn: u32) -> u64 {
    let mixed = (low ^ high.rotate_left(23 + turn)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_add(high)
}

fn words(words: &[AtomicU64; 2]) -> [u64; 2] {
    words.each_ref().map(|word| word.load(Ordering::Relaxed))
}

#[expect(clippy::cast_possible_truncation, reason = "each half is taken")]
fn split(both: u128) -> [u64; 2] {
    [both as u64, (both >> 64) as u64]
}

fn join(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// 4 KiB of places.
const FEWEST: usize = 64;
/// 1 MiB of places.
const MOST: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::thread;

    use callward_core::Principal;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const WORDS: [u128; 2] = [1, 2];

    fn key() -> FingerprintKey {
        FingerprintKey::new(3, 5)
    }

    fn spelling(text: &[u8]) -> u128 {
        spelling_for(WORDS[1], text)
    }

    fn spelling_for(whom: u128, text: &[u8]) -> u128 {
        key().behind(WORDS[0]).bytes_for(whom, text).as_u128()
    }

    /// What stands for a text, without a table.
    fn digest(text: &[u8]) -> Result<Fingerprint, FingerprintError> {
        let [first, second] = WORDS;
        let text = key().json(text)?.as_u128();
        Ok(key().combine(&[first, second, text]))
    }

    fn digest_behind(
        table: &Spellings,
        [word, whom]: [u128; 2],
        text: &[u8],
    ) -> Result<Fingerprint, FingerprintError> {
        let behind = key().behind(word);
        table.digest(&key(), &ToolWord { word, behind }, whom, text)
    }

    fn ask(table: &Spellings, text: &[u8]) -> Result<Fingerprint, FingerprintError> {
        digest_behind(table, WORDS, text)
    }

    #[test]
    fn a_spelling_is_walked_once() {
        let table = Spellings::with_pairs(1);
        let text = br#"{"a":1}"#;
        let first = ask(&table, text).unwrap();
        assert_eq!(Ok(first), digest(text));
        let spelling = spelling(text);
        assert_eq!(table.0[0].0[0].read(spelling), Some(first));
        // what the table says is what counts from then on
        let forged = Fingerprint::from_u128(7);
        table.0[0].0[0].write(spelling, forged);
        assert_eq!(ask(&table, text), Ok(forged));
    }

    #[test]
    fn two_spellings_live_side_by_side_and_a_third_takes_a_place() {
        let table = Spellings::with_pairs(1);
        let texts = [&b"1"[..], b"2", b"3"];
        let known = |text: &[u8]| {
            let spelling = spelling(text);
            table.0[0]
                .0
                .iter()
                .any(|place| place.read(spelling).is_some())
        };
        for text in texts {
            assert_eq!(ask(&table, text), digest(text));
            assert!(known(text));
        }
        assert_eq!(texts.iter().filter(|text| known(text)).count(), 2);
    }

    #[test]
    fn a_spelling_whose_pair_is_full_finds_room_beside_it() {
        let table = Spellings::with_pairs(2);
        let texts = [&b"1"[..], b"2", b"3", b"4"];
        for text in texts.repeat(2) {
            assert_eq!(ask(&table, text), digest(text));
        }
        let known = |text: &&&[u8]| {
            let mut pairs = table.0.iter();
            pairs.any(|pair| read(&pair.0, spelling(text)).is_some())
        };
        assert_eq!(texts.iter().filter(known).count(), 4);
    }

    #[test]
    fn the_words_before_a_text_tell_it_apart() {
        let table = Spellings::for_bytes(1 << 20);
        let ask = |words| digest_behind(&table, words, b"{}").unwrap();
        assert_ne!(ask([1, 2]), ask([1, 3]));
        assert_ne!(ask([1, 2]), ask([3, 2]));
        assert_eq!(ask([1, 2]), ask([1, 2]));
    }

    #[test]
    fn principals_who_ask_the_same_are_spread_over_the_table() {
        let table = Spellings::with_pairs(64);
        let names = |letters: usize| {
            (0..64).map(move |number| Principal::new(format!("{number:0letters$}")))
        };
        for letters in [2, 8, 9, 15] {
            let mut pairs: Vec<_> = names(letters)
                .map(|who| spelling_for(who.as_number().unwrap(), b"{}"))
                .map(|spelling| table.number(spelling))
                .collect();
            pairs.sort_unstable();
            pairs.dedup();
            assert!(pairs.len() > 24, "{letters}: {}", pairs.len());
        }
    }

    #[test]
    fn an_empty_place_holds_nothing() {
        let place = Place::default();
        assert_eq!(place.read(0), None);
        assert_eq!(place.read(1), None);
    }

    #[test]
    fn words_of_two_writers_are_no_answer() {
        let texts = [br#"{"a":1}"#, br#"{"a":2}"#];
        let written = texts.map(|text| {
            let place = Place::default();
            place.write(spelling(text), digest(text).unwrap());
            let words = [words(&place.spelling), words(&place.fingerprint)];
            (spelling(text), words.concat())
        });
        // each of the sixteen ways to take the four words of one or of the other
        for choice in 1..15_usize {
            let place = Place::default();
            let slots = place.spelling.iter().chain(&place.fingerprint);
            for (at, word) in slots.enumerate() {
                word.store(written[choice >> at & 1].1[at], Ordering::Relaxed);
            }
            for (spelling, _) in &written {
                assert_eq!(place.read(*spelling), None, "{choice:04b}");
            }
        }
    }

    #[test]
    fn what_has_no_fingerprint_is_an_error_each_time() {
        let table = Spellings::for_bytes(1 << 20);
        for text in [&br#"{"a":1,"a":2}"#[..], b"{", b""] {
            for _ in 0..2 {
                assert_eq!(ask(&table, text), digest(text));
            }
        }
    }

    #[test]
    fn threads_that_fight_for_few_places_get_right_answers() {
        let table = Spellings::with_pairs(2);
        let texts: Vec<String> = (0..16).map(|id| json!({"id": id}).to_string()).collect();
        let answers: Vec<_> = texts.iter().map(|text| digest(text.as_bytes())).collect();
        thread::scope(|scope| {
            for start in 0..4 {
                let (table, texts, answers) = (&table, &texts, &answers);
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let at = (round * 7 + start) % texts.len();
                        let found = ask(table, texts[at].as_bytes());
                        assert_eq!(found, answers[at]);
                    }
                });
            }
        });
    }

    proptest! {
        #[test]
        fn the_table_changes_no_answer(
            texts in prop::collection::vec(" ?\\{ ?\"[ab]\" ?: ?[0-2] ?,? ?\\} ?|\\[[0-2]\\]", 1..40),
        ) {
            let table = Spellings::with_pairs(2);
            for text in texts.iter().chain(texts.iter().rev()) {
                let found = ask(&table, text.as_bytes());
                prop_assert_eq!(found, digest(text.as_bytes()), "{}", text);
            }
        }
    }
}
