//! The operator's rules for which state tools read and write.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use callward_core::{InvalidValue, ReplicaSetId, ToolName};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::group::{Group, StateGroup};

/// The operator's rules for which state tools read and write. Default: none, so that each write
/// invalidates all results of its [`StateGroup`].
///
/// A rule keeps more results, and is a promise: a read whose rule leaves out something that a write
/// changes is answered from before that write.
///
/// ```
/// use callward_cache::{ScopeRules, ToolScopes};
/// use callward_core::{ReplicaSetId, ToolName};
///
/// let shop = ReplicaSetId::new("shop")?;
/// let rules = ScopeRules::default()
///     .with(shop.clone(), ToolName::new("get_order")?, ToolScopes::reading(["order:{id}"])?)
///     // cancelling an order also gives money back
///     .with(
///         shop,
///         ToolName::new("cancel_order")?,
///         ToolScopes::writing(["order:{id}", "@billing"])?,
///     );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ScopeRules {
    tools: HashMap<(ReplicaSetId, ToolName), ToolScopes>,
    states: HashMap<ReplicaSetId, StateGroup>,
}

impl ScopeRules {
    /// Sets the rule of one tool of a replica set.
    pub fn with(mut self, set: ReplicaSetId, tool: ToolName, scopes: ToolScopes) -> Self {
        self.tools.insert((set, tool), scopes);
        self
    }

    /// Sets which replica sets share state with this one.
    pub fn with_state(mut self, set: ReplicaSetId, state: StateGroup) -> Self {
        self.states.insert(set, state);
        self
    }

    /// Returns each replica set with a state group, in no order.
    pub fn states(&self) -> impl Iterator<Item = (&ReplicaSetId, &StateGroup)> {
        self.states.iter()
    }

    /// Returns the group of a set.
    pub(crate) fn group(&self, set: &ReplicaSetId) -> Group {
        match self.states.get(set) {
            None | Some(StateGroup::Shared) => Group::Shared,
            Some(StateGroup::Own) => Group::Own(set.clone()),
            Some(StateGroup::Named(name)) => Group::Named(name.clone()),
        }
    }

    /// Returns `true` if any set is in the group, of those for which `keep` returns `true`.
    pub(crate) fn uses(&self, group: &Group, keep: impl Fn(&ReplicaSetId) -> bool) -> bool {
        match group {
            Group::Shared => true,
            Group::Own(set) => keep(set),
            Group::Named(_) => {
                let mut sets = self.states.keys();
                sets.any(|set| keep(set) && self.group(set) == *group)
            }
        }
    }

    /// Returns `true` if calls of a tool have the same scopes under both.
    pub(crate) fn agree_on(&self, other: &Self, set: &ReplicaSetId, tool: &ToolName) -> bool {
        let same_group = |set| self.group(set) == other.group(set);
        let rule = self.of(set, tool);
        rule == other.of(set, tool)
            && same_group(set)
            && rule.into_iter().flat_map(ToolScopes::sets).all(same_group)
    }

    /// Returns the rule of a tool.
    #[must_use]
    pub fn of(&self, set: &ReplicaSetId, tool: &ToolName) -> Option<&ToolScopes> {
        self.tools.get(&(set.clone(), tool.clone()))
    }

    /// Returns each tool with a rule, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ReplicaSetId, &ToolName, &ToolScopes)> {
        self.tools
            .iter()
            .map(|((set, tool), scopes)| (set, tool, scopes))
    }
}

/// Which state one tool reads and writes.
///
/// `None` stands for everything of the [group](StateGroup) of its replica set; an empty list for
/// nothing at all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolScopes {
    /// What the result of a call depends on; counts if the call is a read, or an idempotent write:
    /// its repeat is sent again once something changed that it reads.
    pub reads: Option<Vec<ScopeTemplate>>,
    /// What a call may change; counts if it is a write.
    pub writes: Option<Vec<ScopeTemplate>>,
}

impl ToolScopes {
    /// Returns the replica sets that templates name.
    pub(super) fn sets(&self) -> impl Iterator<Item = &ReplicaSetId> {
        let templates = [&self.reads, &self.writes].into_iter().flatten().flatten();
        templates.filter_map(|template| template.set.as_ref())
    }

    /// Makes a rule for a read.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if a template is invalid.
    pub fn reading<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidValue> {
        Ok(Self {
            reads: Some(templates(scopes)?),
            writes: None,
        })
    }

    /// Makes a rule for a write. The repeat of an idempotent one is then still sent again after
    /// every other write to its group, unless `reads` says, too, what it depends on.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if a template is invalid.
    pub fn writing<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidValue> {
        Ok(Self {
            reads: None,
            writes: Some(templates(scopes)?),
        })
    }
}

fn templates<'a>(
    scopes: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<ScopeTemplate>, InvalidValue> {
    scopes.into_iter().map(str::parse).collect()
}

/// Names scopes by the arguments of a call.
///
/// | template | names |
/// | --- | --- |
/// | `orders` | one scope of that name: a tag |
/// | `order:{id}` | one for each value of the argument `id` |
/// | `order:{/order/id}` | the same, of an argument inside another (a JSON pointer, RFC 6901) |
/// | `{*}` | one for each value anywhere in the arguments |
/// | `*` | everything of the group of the tool's own replica set |
/// | `@billing` | everything of the group of the replica set `billing` |
/// | `@billing/invoice:{id}` | a scope of that group |
///
/// A list of values names one scope each. Values meet whatever their letter case, the space around
/// them, and the textual form of a number: `7`, `"7"` and `7.0` are one. Where an argument is not
/// there, is `null`, an object, or one of more than sixteen, the call counts for everything of the
/// group. Sets of one group share scopes: `order:7` is one piece of state whichever set names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScopeTemplate {
    /// The replica set that it names with `@`; `None` stands for the tool's own.
    pub set: Option<ReplicaSetId>,
    pub(super) names: Names,
    text: String,
}

/// The names a template gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Names {
    /// `*`, or a set alone.
    Everything,
    /// `{*}`
    EachValue,
    /// Text, with arguments between; at least one piece.
    Pieces(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// A JSON pointer.
    Argument(String),
}

impl fmt::Display for ScopeTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ScopeTemplate {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid =
            |reason: &str| InvalidValue::new(format!("{text:?} is not a scope: {reason}"));
        let (set, names) = match text.strip_prefix('@') {
            None => (None, text),
            Some(rest) => {
                let (set, names) = rest.split_once('/').unwrap_or((rest, "*"));
                let set = ReplicaSetId::new(set).map_err(|error| invalid(&error.to_string()))?;
                (Some(set), names)
            }
        };
        let names = match names {
            "*" => Names::Everything,
            "{*}" => Names::EachValue,
            names => Names::Pieces(pieces(names).map_err(invalid)?),
        };
        Ok(Self {
            set,
            names,
            text: text.to_owned(),
        })
    }
}

fn pieces(names: &str) -> Result<Vec<Piece>, &'static str> {
    let mut pieces = Vec::new();
    let mut rest = names;
    while !rest.is_empty() {
        let (text, argument) = rest.split_once('{').unwrap_or((rest, ""));
        if text.contains(['}', '*']) {
            return Err("`*` stands alone or as `{*}`, and each `}` closes a `{`");
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        if text.len() == rest.len() {
            break;
        }
        let (argument, after) = argument.split_once('}').ok_or("a `{` is not closed")?;
        pieces.push(Piece::Argument(pointer(argument)?));
        rest = after;
    }
    if pieces.is_empty() {
        return Err("it is empty; write `*` for everything");
    }
    Ok(pieces)
}

/// Returns the JSON pointer of an argument: its own name, or a pointer as it is.
fn pointer(argument: &str) -> Result<String, &'static str> {
    if argument.is_empty() || argument.contains(['{', '*']) {
        return Err("between `{` and `}` stands the name of an argument, or a JSON pointer");
    }
    if argument.starts_with('/') {
        return Ok(argument.to_owned());
    }
    Ok(format!(
        "/{}",
        argument.replace('~', "~0").replace('/', "~1")
    ))
}

impl Serialize for ScopeTemplate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ScopeTemplate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_template_is_an_error_with_its_reason() {
        for text in [
            "", "a*", "{", "a}", "{}", "{a{b}}", "@", "@a b", "@a/", "{a*}",
        ] {
            let error = text.parse::<ScopeTemplate>().unwrap_err().to_string();
            assert!(error.contains("is not a scope: "), "{text}: {error}");
        }
    }
}
