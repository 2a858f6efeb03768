//! Which arguments of a call tell what it is about.

use std::collections::HashSet;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use crate::infer::words;
use crate::members::Members;

/// So many arguments are looked at.
const LOOKED_AT: usize = 256;
/// So many are shown.
const SHOWN: usize = 2;
/// No argument with a longer name is shown, in bytes.
const LONGEST_NAME: usize = 64;

/// Last words of names that tell one thing from another.
const IDS: &[&str] = &[
    "arn",
    "guid",
    "handle",
    "id",
    "identifier",
    "ids",
    "iid",
    "key",
    "login",
    "number",
    "sha",
    "slug",
    "username",
    "uuid",
];
/// Words of names that tell what a call is about.
const NAMES: &[&str] = &[
    "address",
    "branch",
    "channel",
    "city",
    "database",
    "destination",
    "email",
    "file",
    "filename",
    "filepath",
    "folder",
    "from",
    "location",
    "name",
    "owner",
    "path",
    "q",
    "query",
    "recipient",
    "repo",
    "repository",
    "source",
    "subject",
    "symbol",
    "table",
    "title",
    "to",
    "topic",
    "uri",
    "url",
];
/// Words of names of what is too long for a line.
const BULKY: &[&str] = &[
    "body",
    "code",
    "content",
    "contents",
    "data",
    "description",
    "html",
    "instructions",
    "markdown",
    "message",
    "payload",
    "prompt",
    "script",
    "sql",
    "text",
];
/// Words of names that only say how an answer is cut into pages and put in order.
const PAGING: &[&str] = &[
    "count", "cursor", "fields", "format", "limit", "max", "offset", "order", "page", "per",
    "size", "skip", "sort", "timeout", "top",
];
/// Words of names of what nobody should read in a feed.
const SECRETS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "cvc",
    "cvv",
    "jwt",
    "otp",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "pwd",
    "secret",
    "ssn",
    "token",
];
/// Pairs of words that make such a name together.
const SECRET_PAIRS: &[(&str, &str)] = &[
    ("access", "key"),
    ("account", "number"),
    ("api", "key"),
    ("card", "number"),
    ("encryption", "key"),
    ("private", "key"),
    ("signing", "key"),
];

/// How well an argument tells what a call is about, from badly to well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Bulky,
    Plain,
    Name,
    Id,
    /// The id of what the tool's name speaks of.
    OwnId,
}

/// Picks at most two arguments: required ones before optional ones, ids before names, and each as
/// the schema orders them. The second must be required, and say what the call is about.
///
/// Secrets, switches, objects and the like are never picked. A schema that makes no sense has no
/// arguments.
pub(super) fn pick(schema: Option<&RawValue>, phrase: &[String]) -> SmallVec<[String; SHOWN]> {
    let mut found = candidates(schema, phrase);
    found.sort_by_key(|(_, required, rank)| std::cmp::Reverse((*required, *rank)));
    let mut picked = SmallVec::new();
    for (at, (name, required, rank)) in found.into_iter().enumerate() {
        let tells = rank >= Rank::Name;
        let fits = if at == 0 {
            required || tells
        } else {
            required && tells
        };
        if fits && picked.len() < SHOWN {
            picked.push(name);
        }
    }
    picked
}

fn candidates(schema: Option<&RawValue>, phrase: &[String]) -> Vec<(String, bool, Rank)> {
    let Some(schema) = schema.and_then(|raw| serde_json::from_str::<Schema<'_>>(raw.get()).ok())
    else {
        return Vec::new();
    };
    let required: Vec<Value> = read(schema.required).unwrap_or_default();
    let required: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
    let Some(members) = schema
        .properties
        .and_then(|raw| Members::read(raw.get()).ok())
    else {
        return Vec::new();
    };
    members
        .iter()
        .take(LOOKED_AT)
        .filter(|(name, _)| is_plain(name))
        .filter_map(|(name, member)| {
            let rank = rank(name, member, phrase)?;
            Some((name.to_owned(), required.contains(name), rank))
        })
        .collect()
}

/// Braces, blanks and the like would make a placeholder that nobody can read.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn rank(name: &str, member: &RawValue, phrase: &[String]) -> Option<Rank> {
    let words: Vec<String> = words::split(name)
        .iter()
        .map(|word| word.to_lowercase())
        .collect();
    let among = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let follows = |(a, b): &(&str, &str)| words.windows(2).any(|pair| pair == [*a, *b]);
    if among(SECRETS) || SECRET_PAIRS.iter().any(follows) {
        return None;
    }
    let shape = Shape::of(member);
    if matches!(shape, Shape::Hidden | Shape::Switch | Shape::Object) {
        return None;
    }
    let last = words.last()?;
    let is_own = |word: &String| {
        phrase
            .iter()
            .any(|own| own == word || own.strip_suffix('s') == Some(word))
    };
    let rank = if IDS.contains(&last.as_str()) {
        if words.len() == 1 || words.iter().any(is_own) {
            Rank::OwnId
        } else {
            Rank::Id
        }
    } else if among(PAGING) {
        return None;
    } else if among(BULKY) {
        Rank::Bulky
    } else if among(NAMES) || is_own(last) {
        Rank::Name
    } else {
        Rank::Plain
    };
    Some(if shape == Shape::List {
        rank.min(Rank::Plain)
    } else {
        rank
    })
}

/// What kind of value an argument takes, as far as that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Hidden,
    List,
    Object,
    Plain,
    Switch,
}

impl Shape {
    fn of(member: &RawValue) -> Self {
        let Ok(member) = serde_json::from_str::<Member<'_>>(member.get()) else {
            return Self::Plain;
        };
        let is_hidden = read::<bool>(member.write_only) == Some(true)
            || read::<String>(member.format).as_deref() == Some("password");
        if is_hidden {
            return Self::Hidden;
        }
        let types = match read::<Value>(member.kind) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several
                .into_iter()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            _ => member.alternatives(),
        };
        let types: Vec<&str> = types
            .iter()
            .map(String::as_str)
            .filter(|one| *one != "null")
            .collect();
        match types.first() {
            Some(&"boolean") => Self::Switch,
            Some(&"object") => Self::Object,
            Some(&"array") => Self::List,
            _ => Self::Plain,
        }
    }
}

#[derive(Deserialize)]
struct Schema<'a> {
    #[serde(borrow, default)]
    properties: Option<&'a RawValue>,
    #[serde(borrow, default)]
    required: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Member<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    write_only: Option<&'a RawValue>,
    #[serde(borrow, default)]
    any_of: Option<&'a RawValue>,
}

impl Member<'_> {
    /// The types of `anyOf`, which is how some say that a value may be `null`.
    fn alternatives(&self) -> Vec<String> {
        let kinds: Option<Vec<Value>> = read(self.any_of);
        let kind = |value: &Value| value.get("type")?.as_str().map(str::to_owned);
        kinds.iter().flatten().filter_map(kind).collect()
    }
}

fn read<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

#[cfg(test)]
mod tests;
