//! How evidence is written: JSON lines, one for each subject, between a header and a checksum.

use std::fmt;
use std::time::Duration;

use callward_core::{FingerprintKey, ReplicaSetId, ToolName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bucket::{BUCKETS, Bucket, Row};
use super::estimator::Tally;
use super::key::Key;
use super::registry::Subject;
use super::tool::{Counts, Kept};

const FORMAT: &str = "callward-evidence";
const VERSION: u32 = 1;

/// All evidence at one time.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) secret: (u64, u64),
    /// When it was taken, since 1970.
    pub(super) saved: Duration,
    /// The most recently used last.
    pub(super) tools: Vec<(Subject, Kept)>,
}

/// What is wrong with a file.
#[derive(Debug)]
pub(super) enum Damage {
    /// It does not end with the checksum of what stands before: it was cut or changed.
    Checksum,
    /// It is of another format or version.
    Foreign { format: String, version: u32 },
    /// A line, counted from 1, is not what it should be.
    Line(usize, String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("the checksum at its end is missing or wrong"),
            Self::Foreign { format, version } => {
                write!(
                    f,
                    "it is {format:?} version {version}, not {FORMAT:?} version {VERSION}"
                )
            }
            Self::Line(number, reason) => write!(f, "line {number}: {reason}"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    secret: (u64, u64),
    saved_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    set: ReplicaSetId,
    tool: ToolName,
    definition: Hex,
    partition: Hex,
    buckets: [OfBucket; BUCKETS],
    forgotten: u64,
    keys: Vec<OfKey>,
}

/// What is known of a bucket, of the tool. Its equal observations are the sum of what keys contributed.
#[derive(Serialize, Deserialize, Default)]
struct OfBucket {
    different: f64,
    granted: bool,
    repeats: u64,
    differences: u64,
}

/// A key, whether it stands alone, and for each bucket with evidence: its number, whether it is
/// granted, and the weights of equal and different observations and of what it contributed.
#[derive(Serialize, Deserialize)]
struct OfKey(Hex, bool, Vec<(usize, bool, f64, f64, f64)>);

/// A number of 128 bits, as hexadecimal digits.
struct Hex(u128);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let number = u128::from_str_radix(&text, 16);
        number.map(Self).map_err(serde::de::Error::custom)
    }
}

impl Snapshot {
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = Vec::new();
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            secret: self.secret,
            saved_ms: u64::try_from(self.saved.as_millis()).unwrap_or(u64::MAX),
        };
        write_line(&mut text, &header)?;
        for (subject, kept) in &self.tools {
            write_line(&mut text, &Line::new(subject, kept))?;
        }
        let end = end_of(&text);
        text.extend_from_slice(end.as_bytes());
        Ok(text)
    }

    pub(super) fn decode(text: &[u8]) -> Result<Self, Damage> {
        let end = text.len().checked_sub(end_of(&[]).len());
        let Some((body, end)) = end.and_then(|end| text.split_at_checked(end)) else {
            return Err(Damage::Checksum);
        };
        if end != end_of(body).as_bytes() {
            return Err(Damage::Checksum);
        }
        let mut lines = body.split_inclusive(|byte| *byte == b'\n');
        let header: Header = read_line(1, lines.next().unwrap_or_default())?;
        let Header {
            format, version, ..
        } = header;
        if format != FORMAT || version != VERSION {
            return Err(Damage::Foreign { format, version });
        }
        let tools = lines.zip(2..).map(|(line, number)| {
            let line: Line = read_line(number, line)?;
            line.read().ok_or_else(|| {
                Damage::Line(number, "a weight is negative or not finite".to_owned())
            })
        });
        Ok(Self {
            secret: header.secret,
            saved: Duration::from_millis(header.saved_ms),
            tools: tools.collect::<Result<_, _>>()?,
        })
    }
}

fn write_line(text: &mut Vec<u8>, line: &impl Serialize) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

fn read_line<'a, T: Deserialize<'a>>(number: usize, line: &'a [u8]) -> Result<T, Damage> {
    serde_json::from_slice(line).map_err(|error| Damage::Line(number, error.to_string()))
}

/// Returns the last line of a file that begins with `body`. It is against accidents, not forgery: who
/// can write the file can write any evidence.
pub(super) fn end_of(body: &[u8]) -> String {
    let checksum = FingerprintKey::fixed().bytes(body);
    format!("{{\"checksum\":\"{checksum}\"}}\n")
}

impl Line {
    fn new(subject: &Subject, kept: &Kept) -> Self {
        let mut buckets: [OfBucket; BUCKETS] = Default::default();
        for bucket in Bucket::all() {
            let number = bucket.number();
            buckets[number] = OfBucket {
                different: kept.row.tallies[number].different,
                granted: kept.row.is_granted(bucket),
                repeats: kept.counts[number].repeats,
                differences: kept.counts[number].different,
            };
        }
        Self {
            set: subject.set.clone(),
            tool: subject.tool.clone(),
            definition: Hex(subject.definition),
            partition: Hex(subject.partition),
            buckets,
            forgotten: kept.forgotten,
            keys: kept.keys.iter().map(OfKey::new).collect(),
        }
    }

    /// Returns `None` if a weight is not one.
    fn read(self) -> Option<(Subject, Kept)> {
        let subject = Subject {
            set: self.set,
            tool: self.tool,
            definition: self.definition.0,
            partition: self.partition.0,
        };
        let (mut tallies, mut granted) = ([Tally::default(); BUCKETS], 0);
        let mut counts = [Counts::default(); BUCKETS];
        for (bucket, of_bucket) in Bucket::all().zip(self.buckets) {
            let number = bucket.number();
            tallies[number] = Tally::new(0.0, of_bucket.different)?;
            granted |= if of_bucket.granted { bucket.bit() } else { 0 };
            counts[number] = Counts {
                repeats: of_bucket.repeats,
                different: of_bucket.differences,
            };
        }
        let keys: Option<_> = self.keys.into_iter().map(OfKey::read).collect();
        let kept = Kept {
            row: Row::restored(tallies, granted),
            counts,
            forgotten: self.forgotten,
            keys: keys?,
        };
        Some((subject, kept))
    }
}

impl OfKey {
    fn new((key, known): &(u128, Key)) -> Self {
        let buckets = Bucket::all().filter_map(|bucket| {
            let tally = known.row.tallies[bucket.number()];
            let contributed = known.contributed[bucket.number()];
            let granted = known.row.is_granted(bucket);
            (tally != Tally::default()).then(|| {
                (
                    bucket.number(),
                    granted,
                    tally.equal,
                    tally.different,
                    contributed,
                )
            })
        });
        Self(Hex(*key), known.alone, buckets.collect())
    }

    fn read(self) -> Option<(u128, Key)> {
        let Self(Hex(key), alone, buckets) = self;
        let (mut tallies, mut granted) = ([Tally::default(); BUCKETS], 0);
        let mut contributed = [0.0; BUCKETS];
        for (number, is_granted, equal, different, part) in buckets {
            let bucket = Bucket::numbered(number)?;
            tallies[number] = Tally::new(equal, different)?;
            contributed[number] = Tally::new(part, 0.0)?.equal.min(equal);
            granted |= if is_granted { bucket.bit() } else { 0 };
        }
        let row = Row::restored(tallies, granted);
        Some((key, Key::new(row, contributed, alone)))
    }
}
