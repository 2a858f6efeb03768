//! The scopes that one tool's calls depend on and change.

use std::sync::Arc;

use callward_core::{FingerprintKey, ReplicaSetId, ToolCall, ToolName};
use serde_json::Value;
use smallvec::SmallVec;

use super::fold::{self, MAX_SCOPES, Values};
use super::group::Group;
use super::rules::{Names, Piece, ScopeTemplate};
use super::table::GroupScopes;
use super::{Scope, ScopeRules, Scopes, ToolScopes};

/// The scopes of one call, each once: counted twice in one, a write would overlap with itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScopeSet(SmallVec<[Arc<Scope>; 4]>);

impl ScopeSet {
    pub(super) fn add(&mut self, scope: &Arc<Scope>) {
        if self.position(scope).is_none() {
            self.0.push(scope.clone());
        }
    }

    pub(super) fn position(&self, scope: &Arc<Scope>) -> Option<usize> {
        self.0.iter().position(|other| Arc::ptr_eq(other, scope))
    }
}

impl std::ops::Deref for ScopeSet {
    type Target = [Arc<Scope>];

    fn deref(&self) -> &[Arc<Scope>] {
        &self.0
    }
}

/// The scopes that one tool's calls depend on and change.
#[derive(Debug)]
pub(crate) struct StateAccess {
    set: ReplicaSetId,
    /// The scopes of the tool's own group, and of the sets that its templates name.
    groups: Vec<(ReplicaSetId, Group, Arc<GroupScopes>)>,
    own: Arc<Scope>,
    /// `None` without a rule: everything of the group.
    reads: Option<Vec<ScopeTemplate>>,
    writes: Option<Vec<ScopeTemplate>>,
}

/// The scopes that one template names in one call, by their set; `None` for everything of the set.
type Named<'a> = (&'a ReplicaSetId, Option<Vec<String>>);

impl StateAccess {
    pub(crate) fn new(
        scopes: &Scopes,
        rules: &ScopeRules,
        set: &ReplicaSetId,
        tool: &ToolName,
        own: Arc<Scope>,
    ) -> Self {
        let rule = rules.of(set, tool);
        let others = rule.into_iter().flat_map(ToolScopes::sets);
        let groups = [set].into_iter().chain(others).map(|set| {
            let group = rules.group(set);
            let scopes = scopes.group(&group);
            (set.clone(), group, scopes)
        });
        Self {
            set: set.clone(),
            groups: groups.collect(),
            own,
            reads: rule.and_then(|rule| rule.reads.clone()),
            writes: rule.and_then(|rule| rule.writes.clone()),
        }
    }

    /// Returns the scopes that the result of a read depends on.
    pub(crate) fn read_set(&self, scopes: &Scopes, call: &ToolCall) -> ScopeSet {
        let mut set = ScopeSet::default();
        self.depend(&mut set, scopes, self.reads.as_deref(), call);
        set
    }

    /// Returns the scopes that must be unchanged for the repeat of an idempotent write to change
    /// nothing: those it writes, and those it reads. A copy does something else once its source is
    /// written.
    pub(crate) fn repeat_set(&self, scopes: &Scopes, call: &ToolCall) -> ScopeSet {
        let mut set = ScopeSet::default();
        self.depend(&mut set, scopes, self.writes.as_deref(), call);
        self.depend(&mut set, scopes, self.reads.as_deref(), call);
        set
    }

    /// Returns the scopes that a write may change.
    pub(crate) fn write_set(&self, scopes: &Scopes, call: &ToolCall) -> ScopeSet {
        let mut set = ScopeSet::default();
        for (of, names) in self.named(self.writes.as_deref(), call) {
            let (id, group) = self.group(of);
            set.add(&group.any);
            match names {
                None => set.add(&group.wide),
                Some(names) => names
                    .iter()
                    .for_each(|name| set.add(&scopes.named(id, name))),
            }
        }
        set
    }

    fn depend(
        &self,
        set: &mut ScopeSet,
        scopes: &Scopes,
        rule: Option<&[ScopeTemplate]>,
        call: &ToolCall,
    ) {
        set.add(&self.own);
        if rule.is_some() {
            // a write without a rule may change anything
            set.add(&self.group(&self.set).1.wide);
        }
        for (of, names) in self.named(rule, call) {
            let (id, group) = self.group(of);
            let Some(names) = names else {
                set.add(&group.any);
                continue;
            };
            set.add(&group.wide);
            names
                .iter()
                .for_each(|name| set.add(&scopes.named(id, name)));
        }
    }

    /// Describes the read set by templates, so that no argument shows.
    pub(crate) fn describe_reads(&self) -> String {
        self.describe(self.reads.as_deref())
    }

    /// Describes the write set by templates.
    pub(crate) fn describe_writes(&self) -> String {
        self.describe(self.writes.as_deref())
    }

    fn describe(&self, rule: Option<&[ScopeTemplate]>) -> String {
        match rule {
            None => self.group(&self.set).0.to_string(),
            Some([]) => "nothing but itself".to_owned(),
            Some(templates) => {
                let texts = templates.iter().map(|template| format!("`{template}`"));
                texts.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Returns the group of a set that the rule names; the tool's own group is the first, and is
    /// always there.
    fn group(&self, set: &ReplicaSetId) -> (&Group, &GroupScopes) {
        let known = self.groups.iter().find(|(known, ..)| known == set);
        let (_, group, scopes) = known.unwrap_or(&self.groups[0]);
        (group, scopes)
    }

    fn named<'a>(&'a self, rule: Option<&'a [ScopeTemplate]>, call: &ToolCall) -> Vec<Named<'a>> {
        match rule {
            None => vec![(&self.set, None)],
            Some(templates) => named(templates, &self.set, call),
        }
    }
}

/// Returns the scopes that templates name in a call; `own` is the tool's own set.
pub(super) fn named<'a>(
    templates: &'a [ScopeTemplate],
    own: &'a ReplicaSetId,
    call: &ToolCall,
) -> Vec<Named<'a>> {
    let needs_arguments = templates
        .iter()
        .any(|template| template.names.need_arguments());
    let arguments = if needs_arguments {
        arguments(call)
    } else {
        Value::Null
    };
    let mut left = MAX_SCOPES;
    let of = |template: &'a ScopeTemplate| {
        let set = template.set.as_ref().unwrap_or(own);
        let names = template.names.of(&arguments);
        let names = names.filter(|names| names.len() <= left);
        left -= names.as_ref().map_or(0, Vec::len);
        (set, names)
    };
    templates.iter().map(of).collect()
}

impl ToolScopes {
    /// Returns what the result of a read depends on; `None` without a rule: everything of the
    /// tool's replica set.
    ///
    /// Of a call these are templates that would name just its state, with the values of arguments
    /// as they are compared: `@shop/order:7`, or `@shop` for everything of the set. Without a call
    /// they are those of the rule.
    #[must_use]
    pub fn read_by(&self, call: Option<&ToolCall>) -> Option<Vec<String>> {
        Some(shown(self.reads.as_deref()?, call))
    }

    /// Returns what a write may change, as [`read_by`](Self::read_by) does.
    #[must_use]
    pub fn written_by(&self, call: Option<&ToolCall>) -> Option<Vec<String>> {
        Some(shown(self.writes.as_deref()?, call))
    }
}

fn shown(templates: &[ScopeTemplate], call: Option<&ToolCall>) -> Vec<String> {
    let Some(call) = call else {
        return templates.iter().map(ToString::to_string).collect();
    };
    let mut shown = Vec::new();
    for (set, names) in named(templates, call.tool().set(), call) {
        match names {
            None => shown.push(format!("@{set}")),
            Some(names) => shown.extend(names.iter().map(|name| format!("@{set}/{name}"))),
        }
    }
    shown
}

/// Returns the arguments as a tree; `null`, in which nothing is found, if they are not JSON or if
/// two servers may read them differently: two members of one name, or of one name but for letter
/// case.
fn arguments(call: &ToolCall) -> Value {
    let text = call.arguments();
    match serde_json::from_slice(text) {
        Ok(tree) if FingerprintKey::fixed().json(text).is_some() && is_plain(&tree) => tree,
        _ => Value::Null,
    }
}

/// Returns `true` if no object has two members that differ in letter case alone.
fn is_plain(tree: &Value) -> bool {
    match tree {
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(members) => {
            let mut names: Vec<String> = members.keys().map(|name| name.to_lowercase()).collect();
            names.sort_unstable();
            names.windows(2).all(|two| two.first() != two.last()) && members.values().all(is_plain)
        }
        _ => true,
    }
}

impl Names {
    fn need_arguments(&self) -> bool {
        match self {
            Self::Everything => false,
            Self::EachValue => true,
            Self::Pieces(pieces) => pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Argument(_))),
        }
    }

    /// Returns the names in this call; `None` for everything of the set.
    fn of(&self, arguments: &Value) -> Option<Vec<String>> {
        let pieces = match self {
            Self::Everything => return None,
            Self::EachValue => {
                // so that it differs from a tag of the same text
                let values = fold::all(arguments)?;
                return Some(values.iter().map(|value| format!("={value}")).collect());
            }
            Self::Pieces(pieces) => pieces,
        };
        let mut names = vec![String::new()];
        for piece in pieces {
            let values: Values = match piece {
                Piece::Text(text) => Values::from_iter([text.clone()]),
                Piece::Argument(pointer) => fold::at(arguments.pointer(pointer)?)?,
            };
            if names.len() * values.len() > MAX_SCOPES {
                return None;
            }
            let mut longer = Vec::with_capacity(names.len() * values.len());
            for name in &names {
                longer.extend(values.iter().map(|value| format!("{name}{value}")));
            }
            names = longer;
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use callward_testkit::{call, tool};
    use serde_json::{Value, json};

    use super::*;

    fn read(template: &str, arguments: Value) -> Vec<String> {
        let scopes = ToolScopes::reading([template, "@billing"]).unwrap();
        let call = call(&tool("get").set("shop").read_only().build(), arguments);
        assert_eq!(scopes.written_by(Some(&call)), None);
        let templates = scopes.read_by(None).unwrap();
        assert_eq!(templates, [template, "@billing"]);
        scopes.read_by(Some(&call)).unwrap()
    }

    #[test]
    fn arguments_name_the_scopes_of_a_call_or_else_everything() {
        let (seven, all) = (["@shop/order:7", "@billing"], ["@shop", "@billing"]);
        assert_eq!(read("order:{id}", json!({"id": " 7.0"})), seven);
        assert_eq!(read("order:{/a/id}", json!({"a": {"id": 7}})), seven);
        assert_eq!(read("order:{a/id}", json!({"a/id": 7})), seven);
        let two = read("order:{id}", json!({"id": [7, 8]}));
        assert_eq!(two, ["@shop/order:7", "@shop/order:8", "@billing"]);
        for arguments in [json!({}), json!({"id": 7, "ID": 8}), json!({"id": [[7]]})] {
            assert_eq!(read("order:{id}", arguments), all);
        }
        assert_eq!(read("*", json!({"id": 7})), all);
    }
}
