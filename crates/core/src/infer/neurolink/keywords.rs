//! NeuroLink's keywords, and where they count as found.
//!
//! A keyword is found between ASCII word boundaries, so that `_` and digits join words and an
//! accented letter separates them; or where it is one whole segment of the text split at `_` and
//! `-`, in a name also between a lower-case letter or digit and a capital. Either way the candidate
//! is one stretch of text, so one walk with a table look-up does what NeuroLink does with a regular
//! expression a keyword.

use crate::infer::Strength;
use crate::infer::evidence::Reason;

/// What a keyword stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    ReadOnly,
    Destructive,
    Idempotent,
    Complex,
}

/// The keywords of each class.
const KEYWORDS: [(Class, &str); 4] = [
    (
        Class::ReadOnly,
        "get list read find show view look fetch query check search display inspect retrieve",
    ),
    (
        Class::Destructive,
        "drop wipe clear purge erase reset delete remove destroy truncate",
    ),
    (Class::Idempotent, "set put update upsert replace"),
    (
        Class::Complex,
        "complex analyze process compute generate transform calculate",
    ),
];

fn find(word: &[u8]) -> Option<(&'static str, Class)> {
    let of_class = |(class, words): &(Class, &'static str)| {
        let mut words = words.split(' ');
        let keyword = words.find(|keyword| keyword.as_bytes().eq_ignore_ascii_case(word))?;
        Some((keyword, *class))
    };
    KEYWORDS.iter().find_map(of_class)
}

/// The first keyword of each class. The name is searched before the description.
#[derive(Debug, Default)]
pub(super) struct Found([Option<(Strength, Reason)>; 4]);

impl Found {
    pub(super) fn first(&self, class: Class) -> Option<(Strength, Reason)> {
        self.0.get(class as usize).cloned().flatten()
    }

    pub(super) fn search_name(&mut self, name: &str) {
        let strong = |word| (Strength::Strong, Reason::KeywordInName(word));
        for run in runs(name) {
            self.note(run, strong);
        }
        for segment in name.split(['_', '-']).flat_map(camel_segments) {
            // a Kelvin sign is a `k` once it is lower-cased, and only segments are
            self.note(segment.to_lowercase().as_bytes(), strong);
        }
    }

    /// Expects the text in lower case.
    pub(super) fn search_description(&mut self, lowered: &str) {
        let weak = |word| (Strength::Weak, Reason::KeywordInDescription(word));
        for run in runs(lowered) {
            self.note(run, weak);
        }
        for segment in lowered.split(['_', '-']) {
            self.note(segment.as_bytes(), weak);
        }
    }

    fn note(&mut self, word: &[u8], evidence: impl Fn(&'static str) -> (Strength, Reason)) {
        let Some((keyword, class)) = find(word) else {
            return;
        };
        if let Some(place) = self.0.get_mut(class as usize) {
            place.get_or_insert_with(|| evidence(keyword));
        }
    }
}

/// The stretches between word boundaries. No byte of a non-ASCII letter joins words.
fn runs(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes()
        .split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
}

/// Splits a segment of a name where a capital follows a lower-case letter or a digit.
fn camel_segments(segment: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(segment);
    std::iter::from_fn(move || {
        let segment = rest.take()?;
        let is_step = |pair: &[u8]| matches!(pair, [b'a'..=b'z' | b'0'..=b'9', b'A'..=b'Z']);
        let step = segment.as_bytes().windows(2).position(is_step);
        let Some((first, after)) = step.and_then(|at| segment.split_at_checked(at + 1)) else {
            return Some(segment);
        };
        rest = Some(after);
        Some(first)
    })
}
