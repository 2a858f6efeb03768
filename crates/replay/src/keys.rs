//! Recorded keys: a sequence of requests with nothing known of each but its size.

use std::collections::HashMap;
use std::path::Path;

use crate::{Capacity, Lines, ReplayError};

/// Recorded requests: the key of each, and optionally its size.
///
/// A line is a key, or a key and a size in bytes, separated by white space. Either every line has
/// a size or none has; a size of 4 GiB or more counts as 4 GiB. Empty lines are skipped. Keys are
/// numbered in the order of their first appearance.
///
/// ```
/// use callward_replay::KeyTrace;
///
/// let trace = KeyTrace::from_keys(["a", "b", "a"]);
/// assert_eq!((trace.requests(), trace.distinct()), (3, 2));
/// assert_eq!(trace.keys(), [0, 1, 0]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyTrace {
    keys: Vec<u32>,
    sizes: Option<Vec<u32>>,
    distinct: u32,
}

/// A longer line is not a key.
const MAX_LINE: usize = 1 << 16;

impl KeyTrace {
    /// Reads a file, compressed with gzip or not; `-` is standard input.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] if the file cannot be read, and at the first invalid line.
    pub fn read(path: &Path) -> Result<Self, ReplayError> {
        Self::from_lines(Lines::open(path, MAX_LINE)?)
    }

    fn from_lines(mut lines: Lines) -> Result<Self, ReplayError> {
        let mut numbers = Numbers::default();
        let (mut keys, mut sizes) = (Vec::new(), Vec::new());
        while let Some(line) = lines.next_line()? {
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            let Some(key) = words.next() else { continue };
            let size = words.next().map(parse_size);
            let problem = if words.next().is_some() {
                Some("more than a key and a size")
            } else if size == Some(None) {
                Some("the size is not a whole number of bytes")
            } else if size.is_some() && sizes.len() < keys.len() {
                Some("a size, but the lines before have none")
            } else if size.is_none() && !sizes.is_empty() {
                Some("no size, but the lines before have one")
            } else {
                None
            };
            let number = numbers.of(key);
            if let Some(problem) = problem {
                return Err(lines.fault(problem));
            }
            keys.push(number.ok_or_else(|| lines.fault("more distinct keys than 4 billion"))?);
            sizes.extend(size.flatten());
        }
        Ok(Self {
            distinct: numbers.distinct(),
            sizes: (!sizes.is_empty()).then_some(sizes),
            keys,
        })
    }

    /// Takes keys from memory, without sizes. Keys beyond the first 4 billion are skipped.
    pub fn from_keys<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Self {
        let mut numbers = Numbers::default();
        let numbered = keys.into_iter().filter_map(|key| numbers.of(key.as_ref()));
        Self {
            keys: numbered.collect(),
            sizes: None,
            distinct: numbers.distinct(),
        }
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Returns the number of distinct keys.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        u64::from(self.distinct)
    }

    /// Returns the key of each request: dense numbers in order of first appearance.
    #[must_use]
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Returns `true` if the requests have sizes.
    #[must_use]
    pub fn is_sized(&self) -> bool {
        self.sizes.is_some()
    }

    /// Returns the mean size in bytes; 0 without sizes.
    #[must_use]
    pub fn mean_size(&self) -> u32 {
        let sum: u64 = self.sizes().iter().copied().map(u64::from).sum();
        let mean = sum.checked_div(self.sizes().len() as u64).unwrap_or(0);
        u32::try_from(mean).unwrap_or(u32::MAX)
    }

    /// Returns the largest size in bytes; 0 without sizes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.sizes().iter().copied().max().unwrap_or(0)
    }

    /// Returns the requests as key and size in bytes; the size is 0 where none is recorded.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let sizes = self.sizes().iter().copied().chain(std::iter::repeat(0));
        self.keys.iter().copied().zip(sizes)
    }

    fn sizes(&self) -> &[u32] {
        self.sizes.as_deref().unwrap_or_default()
    }

    /// Returns round capacities from very small to half of all keys. Empty if there are no
    /// requests.
    #[must_use]
    pub fn capacities(&self) -> Vec<Capacity> {
        let distinct = self.distinct();
        let shares = [2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2];
        let mut found: Vec<_> = shares
            .iter()
            .map(|share| round(distinct / share))
            .filter(|entries| *entries > 0)
            .collect();
        if found.is_empty() && distinct > 0 {
            found.push(1);
        }
        found.dedup();
        found.into_iter().map(Capacity::Entries).collect()
    }
}

/// Parses a size; one of 4 GiB or more becomes the largest.
fn parse_size(word: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(word).ok()?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u32::MAX))
}

/// Rounds down to two digits.
fn round(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number / unit * unit
}

/// Numbers keys in the order of their first appearance.
#[derive(Debug, Default)]
struct Numbers(HashMap<Box<[u8]>, u32>);

impl Numbers {
    /// Returns the number of a key, or `None` if no number is free.
    fn of(&mut self, key: &[u8]) -> Option<u32> {
        if let Some(known) = self.0.get(key) {
            return Some(*known);
        }
        let number = u32::try_from(self.0.len()).ok()?;
        self.0.insert(key.into(), number);
        Some(number)
    }

    fn distinct(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(text: &str) -> Result<KeyTrace, ReplayError> {
        let bytes = Cursor::new(text.as_bytes().to_vec());
        KeyTrace::from_lines(Lines::from_reader("x.keys", bytes, MAX_LINE)?)
    }

    #[test]
    fn keys_are_numbered_in_order_of_appearance() {
        let trace = read("\u{feff}GET:/a?b=1\n\n42\r\nGET:/a?b=1\nž\n").unwrap();
        assert_eq!(trace.keys(), [0, 1, 0, 2]);
        assert_eq!(trace.distinct(), 3);
        assert!(!trace.is_sized());
        assert_eq!(
            trace,
            KeyTrace::from_keys(["GET:/a?b=1", "42", "GET:/a?b=1", "ž"])
        );
    }

    #[test]
    fn sizes_follow_the_keys() {
        let trace = read("a 10\nb\t0\n  a   20 \n").unwrap();
        assert_eq!(trace.iter().collect::<Vec<_>>(), [(0, 10), (1, 0), (0, 20)]);
        assert_eq!((trace.mean_size(), trace.largest()), (10, 20));
        let huge = read("a 4294967296\nb 99999999999999999999999\n").unwrap();
        assert_eq!(huge.largest(), u32::MAX);
    }

    #[test]
    fn an_invalid_line_is_an_error_with_its_number() {
        for (text, want) in [
            ("a\nb c\n", "x.keys:2: the size is not a whole number"),
            ("a 1\nb -1\n", "x.keys:2: the size is not a whole number"),
            ("a 1.5\n", "x.keys:1: the size is not a whole number"),
            ("a 1 2\n", "x.keys:1: more than a key and a size"),
            ("a 1\n\nb\n", "x.keys:3: no size, but the lines before"),
            ("a\nb 1\n", "x.keys:2: a size, but the lines before"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(want), "{text:?}: {error}");
        }
    }
}
