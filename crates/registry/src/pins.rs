//! What was approved of each tool, and which changes of it wait for approval.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::{fmt, io};

use callward_core::{
    Annotations, FingerprintKey, Members, ReplicaSetId, ServerId, ToolDefinition, ToolName, Trust,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::SetOptions;
use crate::diff::{self, FieldChange};
use crate::listing::Digests;
use crate::names::client_name;

/// Which changes of servers that are not trusted wait for approval. Tools of trusted servers follow
/// every change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
pub enum Hold {
    /// None.
    #[default]
    Nothing,
    /// Looser hints, and suspicious tools of untrusted servers.
    Looser,
    /// Also changes of what models read: title, description and schemas.
    Changes,
}

/// How changes of tools are reviewed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReviewOptions {
    /// What waits for approval. Default: nothing.
    pub hold: Hold,
    /// Whether [`Hold::Changes`] holds tools that a server adds after its first list. Default: no.
    pub new_tools: bool,
    /// What was approved in earlier runs. Default: nothing.
    pub pins: Pins,
    /// Where each change of the pins is written before it takes effect. Default: nowhere.
    pub store: Option<Arc<dyn PinStore>>,
}

/// Where pins are kept from one run to the next.
pub trait PinStore: fmt::Debug + Send + Sync {
    /// Writes the pins. May block.
    ///
    /// # Errors
    ///
    /// Why they are not written; what was written before is still there.
    fn save(&self, pins: &Pins) -> io::Result<()>;
}

/// The approved definitions of all tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins(BTreeMap<ReplicaSetId, SetPins>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetPins {
    /// The servers whose first list was taken as it was.
    servers: BTreeSet<ServerId>,
    tools: BTreeMap<ToolName, Pin>,
    /// What an operator accepted of suggestions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    accepted: AcceptedHints,
}

/// Accepted hints, each with the digest of the definition that they are for.
pub(crate) type AcceptedHints = BTreeMap<ToolName, (u128, Annotations)>;

/// The parts of a definition that count, without the name.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Value")]
pub(crate) struct Pin {
    text: Box<RawValue>,
    digest: u128,
}

/// Secret, so that a server cannot list two definitions with one digest.
static KEY: LazyLock<FingerprintKey> = LazyLock::new(|| {
    // std seeds each state from the system's random source
    let word = || RandomState::new().hash_one(0_u8);
    FingerprintKey::new(word(), word())
});

impl Serialize for Pin {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(to)
    }
}

impl PartialEq for Pin {
    fn eq(&self, other: &Self) -> bool {
        self.text.get() == other.text.get()
    }
}

impl Eq for Pin {}

impl From<Value> for Pin {
    fn from(parts: Value) -> Self {
        // members are sorted
        let text =
            RawValue::from_string(parts.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let digest = KEY.bytes(text.get().as_bytes());
        Self { text, digest }
    }
}

/// The members of a definition that count otherwise, or that no model reads.
const UNREAD: [&str; 5] = ["name", "annotations", "icons", "_meta", "execution"];

impl Pin {
    fn of(definition: &ToolDefinition) -> Self {
        let text = std::str::from_utf8(&definition.raw).unwrap_or_default();
        let members = Members::read(text);
        let mut values = BTreeMap::<_, Vec<_>>::new();
        for (name, part) in members.iter().flat_map(Members::iter) {
            if !UNREAD.contains(&name) && part.get() != "null" {
                values.entry(name).or_default().push(value(part));
            }
        }
        let mut parts = Map::new();
        for (name, mut values) in values {
            let value = match (values.pop(), values.is_empty()) {
                (Some(only), true) => only,
                // which of several counts depends on the parser
                (last, _) => values.into_iter().chain(last).collect(),
            };
            parts.insert(name.to_owned(), value);
        }
        let mut hints = definition.annotations.clone();
        for (name, value) in std::mem::take(&mut hints.vendor) {
            parts.insert(format!("annotations.{name}"), value);
        }
        parts.insert(
            "annotations".to_owned(),
            serde_json::to_value(hints).unwrap_or_default(),
        );
        Value::from(parts).into()
    }

    fn parts(&self) -> Value {
        serde_json::from_str(self.text.get()).unwrap_or_default()
    }
}

/// Reads a part. What two parsers may read differently is the same only byte for byte.
fn value(raw: &RawValue) -> Value {
    let text = raw.get();
    let is_plain = FingerprintKey::fixed().json(text.as_bytes()).is_some();
    let value = is_plain.then(|| serde_json::from_str(text).ok()).flatten();
    value.unwrap_or_else(|| text.into())
}

/// A listed definition that is not the approved one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolChange {
    /// The replica set.
    pub set: ReplicaSetId,
    /// The server that lists it.
    pub server: ServerId,
    /// The tool's own name.
    pub tool: ToolName,
    /// The name that clients see, unless it belongs to another tool.
    pub name: String,
    /// Stands for the listed definition where it is [approved](crate::Registry::approve), in this
    /// process only.
    pub digest: Arc<str>,
    /// Why it is held, or that it is followed.
    pub reason: String,
    /// What differs; of a new tool all of it. Of a renamed one that is the same otherwise, only the
    /// name.
    pub changes: Vec<FieldChange>,
}

/// Why a definition cannot be approved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApproveError {
    /// No definition of the tool is held.
    #[error("no change of tool `{tool}` of `{set}` is held")]
    NotHeld {
        /// The replica set.
        set: ReplicaSetId,
        /// The tool.
        tool: ToolName,
    },
    /// The server lists another definition by now.
    #[error(
        "tool `{tool}` of `{set}` has another definition by now, with the digest {digest}; look at \
         its differences again"
    )]
    Changed {
        /// The replica set.
        set: ReplicaSetId,
        /// The tool.
        tool: ToolName,
        /// The digest of the definition that is held now.
        digest: Arc<str>,
    },
    /// The approval cannot be written, and does not count.
    #[error("the approval cannot be written, and does not count: {0}")]
    Unwritten(#[from] io::Error),
}

impl Pins {
    /// Approves a definition. Returns the one that was approved before.
    pub(crate) fn approve(
        &mut self,
        set: &ReplicaSetId,
        tool: &ToolName,
        pin: Option<Pin>,
    ) -> Option<Pin> {
        let pins = self.0.entry(set.clone()).or_default();
        match pin {
            Some(pin) => pins.tools.insert(tool.clone(), pin),
            None => pins.tools.remove(tool),
        }
    }

    /// Returns the accepted hints of the tools of a set.
    pub(crate) fn accepted(&mut self, set: &ReplicaSetId) -> &mut AcceptedHints {
        &mut self.0.entry(set.clone()).or_default().accepted
    }

    /// Starts the review of one server's list. `last` has the digests of its last one.
    pub(crate) fn review<'a>(
        &'a mut self,
        (set, server): (&'a ReplicaSetId, &'a ServerId),
        listed: &[ToolDefinition],
        last: Digests,
        rules: Rules,
    ) -> Review<'a> {
        let pins = self.0.entry(set.clone()).or_default();
        let names: BTreeSet<_> = listed.iter().map(|tool| &tool.name).collect();
        let gone = pins.tools.iter().filter(|(name, _)| !names.contains(name));
        let gone = gone.map(|(name, pin)| (pin.digest, name.clone()));
        Review {
            set,
            server,
            rules,
            last,
            gone: gone.collect(),
            size: pins.tools.values().map(|pin| pin.text.get().len()).sum(),
            is_first: !pins.servers.contains(server),
            pins,
            digests: HashMap::new(),
            followed: Vec::new(),
            moved: false,
        }
    }
}

/// What is held of one server.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) hold: Hold,
    pub(crate) new_tools: bool,
    pub(crate) trust: Trust,
    /// What is suspicious about tools of an untrusted server.
    pub(crate) suspicions: HashMap<ToolName, String>,
}

/// The review of one server's list.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    set: &'a ReplicaSetId,
    server: &'a ServerId,
    pins: &'a mut SetPins,
    rules: Rules,
    last: Digests,
    /// The approved tools that are not in the list, by digest.
    gone: HashMap<u128, ToolName>,
    /// The size of all pins of the set.
    size: usize,
    is_first: bool,
    pub(crate) digests: Digests,
    pub(crate) followed: Vec<ToolChange>,
    moved: bool,
}

/// How many definitions of one set are pinned without an operator, and their size in bytes.
const MOST_PINS: usize = 20_000;
const MOST_BYTES: usize = 64 << 20;

impl Review<'_> {
    /// Reviews one definition. Returns why and how it differs if it is held; else it is approved
    /// from now on.
    pub(crate) fn held(&mut self, definition: &ToolDefinition, of: &SetOptions) -> Option<Held> {
        let (name, pin) = (&definition.name, Pin::of(definition));
        self.digests.insert(name.clone(), pin.digest);
        let known = self.pins.tools.get(name);
        if known == Some(&pin) {
            return None;
        }
        let is_new = known.is_none();
        let size = self.size + pin.text.get().len();
        let is_full = is_new && (self.pins.tools.len() >= MOST_PINS || size > MOST_BYTES);
        let old_name = self.gone.get(&pin.digest).filter(|_| is_new);
        let changes = match (known, old_name) {
            (Some(known), _) => diff::changes(&known.parts(), &pin.parts()),
            (None, Some(old)) => vec![FieldChange::new(
                "name",
                old.as_str().into(),
                name.as_str().into(),
            )],
            (None, None) => Vec::new(),
        };
        let reason = self.reason(name, is_new, is_full, &changes);
        let is_renamed = old_name.is_some();
        let mut change = ToolChange {
            set: self.set.clone(),
            server: self.server.clone(),
            tool: name.clone(),
            name: client_name(of, definition),
            digest: format!("{:032x}", pin.digest).into(),
            reason: reason.clone().unwrap_or_else(|| "followed".to_owned()),
            changes,
        };
        if reason.is_some() {
            if is_new && !is_renamed {
                change.changes = diff::changes(&Value::Null, &pin.parts());
            }
            return Some(Held {
                change: Arc::new(change),
                pin,
            });
        }
        // one of several servers that differ may be behind: only what is new to it moves the pin
        if self.last.get(name) != Some(&pin.digest) && !is_full {
            self.size = size;
            self.pins.tools.insert(name.clone(), pin);
            self.moved = true;
            if !is_new || is_renamed {
                self.followed.push(change);
            }
        }
        None
    }

    /// Returns the accepted hints of this definition.
    pub(crate) fn accepted(&self, definition: &ToolDefinition) -> Option<&Annotations> {
        let (digest, hints) = self.pins.accepted.get(&definition.name)?;
        (*digest == definition.digest()).then_some(hints)
    }

    /// Returns why a definition is held that is not the approved one; `None` if it is not.
    fn reason(
        &self,
        name: &ToolName,
        is_new: bool,
        is_full: bool,
        changes: &[FieldChange],
    ) -> Option<String> {
        let Rules { hold, trust, .. } = self.rules;
        if trust == Trust::Trusted || hold == Hold::Nothing {
            return None;
        }
        let reads_other = is_new || changes.iter().any(FieldChange::is_read);
        if let Some(why) = self.rules.suspicions.get(name).filter(|_| reads_other) {
            return Some(why.clone());
        }
        let holds_all = hold == Hold::Changes;
        let why = match is_new {
            false if changes.iter().any(FieldChange::is_looser) => {
                "its hints are looser than those that were approved"
            }
            false if holds_all && reads_other => {
                "its definition differs from the one that was approved"
            }
            true if holds_all && self.rules.new_tools && !self.is_first => "it is new",
            true if is_full => "it is new, and as many tools of its set are approved as are kept",
            _ => return None,
        };
        Some(why.to_owned())
    }

    /// Returns `true` if something is approved that was not.
    pub(crate) fn finish(&mut self, reviewed: &Digests) -> bool {
        if self.is_first && !reviewed.is_empty() {
            self.moved |= self.pins.servers.insert(self.server.clone());
        }
        self.moved
    }
}

/// A definition that waits for approval.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) change: Arc<ToolChange>,
    pub(crate) pin: Pin,
}
