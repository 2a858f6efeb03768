//! Which scopes one tool's calls watch and touch.

use std::sync::Arc;

use callward_core::{FingerprintKey, ReplicaSetId, ToolCall, ToolName};
use serde_json::Value;
use smallvec::{SmallVec, smallvec};

use super::fold::{self, MOST, Values};
use super::group::Group;
use super::rules::{Names, Piece, ScopeTemplate};
use super::{Scope, ScopeRef, ScopeRules, Scopes, ToolScopes};

/// The scopes of one call, each at most once in what it watches.
pub(crate) type List = SmallVec<[ScopeRef; 4]>;

/// What a write moves, each scope once: counted twice in one, it would overlap with itself. Cloning copies
/// a pointer.
#[derive(Debug, Clone)]
pub(crate) struct Touched(Arc<[ScopeRef]>);

impl FromIterator<ScopeRef> for Touched {
    fn from_iter<T: IntoIterator<Item = ScopeRef>>(scopes: T) -> Self {
        let mut list = List::new();
        for scope in scopes {
            if !list.iter().any(|other| other.is(&scope)) {
                list.push(scope);
            }
        }
        Self(list.into_iter().collect())
    }
}

impl std::ops::Deref for Touched {
    type Target = [ScopeRef];

    fn deref(&self) -> &[ScopeRef] {
        &self.0
    }
}

/// Which scopes one tool's calls watch and touch.
#[derive(Debug)]
pub(crate) struct Footprint {
    set: ReplicaSetId,
    /// The group of the tool's own set, and those of other sets that its templates name.
    group: Group,
    others: Vec<(ReplicaSetId, Group)>,
    own: ScopeRef,
    reads: Said,
    writes: Said,
    /// What a read watches whose arguments do not matter: made once, looked at by every hit.
    fixed: Option<List>,
    /// What a write touches whose arguments do not matter.
    touched: Option<Touched>,
}

/// What is said of a tool's reads or writes.
#[derive(Debug)]
enum Said {
    /// Nothing: everything of the group.
    Nothing,
    /// By these templates.
    By(Vec<ScopeTemplate>),
}

/// Scopes, and whether they are made for this call or for all.
#[derive(Debug)]
pub(crate) enum Watched<'a> {
    Fixed(&'a [ScopeRef]),
    Made(List),
}

impl std::ops::Deref for Watched<'_> {
    type Target = [ScopeRef];

    fn deref(&self) -> &[ScopeRef] {
        match self {
            Self::Fixed(list) => list,
            Self::Made(list) => list,
        }
    }
}

/// What one template names in one call.
pub(super) enum Named<'a> {
    Everything(&'a ReplicaSetId),
    Scopes(&'a ReplicaSetId, Vec<String>),
}

impl Footprint {
    pub(crate) fn new(
        scopes: &Scopes,
        rules: &ScopeRules,
        set: &ReplicaSetId,
        tool: &ToolName,
        own: Arc<Scope>,
    ) -> Self {
        let said = |templates: Option<&Vec<ScopeTemplate>>| match templates {
            None => Said::Nothing,
            Some(templates) => Said::By(templates.clone()),
        };
        let rule = rules.of(set, tool);
        let others = rule.into_iter().flat_map(ToolScopes::sets);
        let mut footprint = Self {
            set: set.clone(),
            group: rules.group(set),
            others: others.map(|set| (set.clone(), rules.group(set))).collect(),
            own: ScopeRef::Own(own),
            reads: said(rule.and_then(|rule| rule.reads.as_ref())),
            writes: said(rule.and_then(|rule| rule.writes.as_ref())),
            fixed: None,
            touched: None,
        };
        if !footprint.reads.asks_arguments() {
            footprint.fixed = Some(footprint.watch(scopes, &footprint.reads, &Value::Null));
        }
        if !footprint.writes.asks_arguments() {
            footprint.touched = Some(footprint.touch_of(scopes, &Value::Null));
        }
        footprint
    }

    /// Returns what the result of a read depends on.
    pub(crate) fn read(&self, scopes: &Scopes, call: &ToolCall) -> Watched<'_> {
        match &self.fixed {
            Some(fixed) => Watched::Fixed(fixed),
            None => Watched::Made(self.watch(scopes, &self.reads, &arguments(call))),
        }
    }

    /// Returns what must not have moved for the repeat of an idempotent write to change nothing: what
    /// it writes, and what it reads. One that copies does something else once its source is written.
    pub(crate) fn rewrite(&self, scopes: &Scopes, call: &ToolCall) -> List {
        let mut list = self.watch(scopes, &self.writes, &self.writes.arguments(call));
        for scope in self.read(scopes, call).iter() {
            if !list.iter().any(|other| other.is(scope)) {
                list.push(scope.clone());
            }
        }
        list
    }

    /// Returns what a write may change.
    pub(crate) fn touch(&self, scopes: &Scopes, call: &ToolCall) -> Touched {
        match &self.touched {
            Some(touched) => touched.clone(),
            None => self.touch_of(scopes, &arguments(call)),
        }
    }

    fn touch_of(&self, scopes: &Scopes, arguments: &Value) -> Touched {
        let mut list = List::new();
        for named in self.named(&self.writes, arguments) {
            match named {
                Named::Everything(set) => {
                    let group = self.group_of(set);
                    list.extend([scopes.any(group), scopes.wide(group)]);
                }
                Named::Scopes(set, names) => {
                    let group = self.group_of(set);
                    list.push(scopes.any(group));
                    list.extend(names.iter().map(|name| scopes.named(group, name)));
                }
            }
        }
        list.into_iter().collect()
    }

    /// Returns what reads depend on, as the operator says it: by templates, so that no argument shows.
    pub(crate) fn reads(&self) -> String {
        self.told(&self.reads)
    }

    /// Returns what writes may change, as [`reads`](Self::reads) does.
    pub(crate) fn writes(&self) -> String {
        self.told(&self.writes)
    }

    fn told(&self, said: &Said) -> String {
        match said {
            Said::Nothing => self.group.to_string(),
            Said::By(templates) if templates.is_empty() => "nothing but itself".to_owned(),
            Said::By(templates) => {
                let texts = templates.iter().map(|template| format!("`{template}`"));
                texts.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn watch(&self, scopes: &Scopes, said: &Said, arguments: &Value) -> List {
        let mut list: List = smallvec![self.own.clone()];
        let mut add = |scope: ScopeRef| {
            if !list.iter().any(|other| other.is(&scope)) {
                list.push(scope);
            }
        };
        if matches!(said, Said::By(_)) {
            // a write of which nothing is said may change whatever it is
            add(scopes.wide(&self.group));
        }
        for named in self.named(said, arguments) {
            match named {
                Named::Everything(set) => add(scopes.any(self.group_of(set))),
                Named::Scopes(set, names) => {
                    let group = self.group_of(set);
                    add(scopes.wide(group));
                    for name in &names {
                        add(scopes.named(group, name));
                    }
                }
            }
        }
        list
    }

    fn group_of(&self, set: &ReplicaSetId) -> &Group {
        let other = self.others.iter().find(|(other, _)| other == set);
        other.map_or(&self.group, |(_, group)| group)
    }

    fn named<'a>(&'a self, said: &'a Said, arguments: &Value) -> SmallVec<[Named<'a>; 2]> {
        let Said::By(templates) = said else {
            return smallvec![Named::Everything(&self.set)];
        };
        named(templates, &self.set, arguments)
    }
}

/// Returns what templates name in a call with these arguments; `own` is the tool's own set.
pub(super) fn named<'a>(
    templates: &'a [ScopeTemplate],
    own: &'a ReplicaSetId,
    arguments: &Value,
) -> SmallVec<[Named<'a>; 2]> {
    let mut left = MOST;
    templates
        .iter()
        .map(|template| {
            let set = template.set.as_ref().unwrap_or(own);
            match template.names.of(arguments) {
                Some(names) if names.len() <= left => {
                    left -= names.len();
                    Named::Scopes(set, names)
                }
                _ => Named::Everything(set),
            }
        })
        .collect()
}

impl Said {
    /// Says whether the arguments matter at all.
    fn asks_arguments(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::By(templates) => templates.iter().any(|template| template.names.ask()),
        }
    }

    fn arguments(&self, call: &ToolCall) -> Value {
        if self.asks_arguments() {
            arguments(call)
        } else {
            Value::Null
        }
    }
}

/// Returns the arguments as a tree; `null`, in which nothing is found, if they are not JSON or if two
/// servers may read them differently: a member that is there twice, or twice but for letter case.
pub(super) fn arguments(call: &ToolCall) -> Value {
    let text = call.arguments();
    match serde_json::from_slice(text) {
        Ok(tree) if FingerprintKey::fixed().json(text).is_ok() && is_plain(&tree) => tree,
        _ => Value::Null,
    }
}

/// Says whether no object has two members that differ in letter case alone.
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
    fn ask(&self) -> bool {
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
                // not to meet a tag of the same text
                let values = fold::all(arguments)?;
                return Some(values.iter().map(|value| format!("={value}")).collect());
            }
            Self::Pieces(pieces) => pieces,
        };
        let mut names = vec![String::new()];
        for piece in pieces {
            let values: Values = match piece {
                Piece::Text(text) => smallvec![text.clone()],
                Piece::Argument(pointer) => fold::at(arguments.pointer(pointer)?)?,
            };
            if names.len() * values.len() > MOST {
                return None;
            }
            let each = |name: &String| {
                values
                    .iter()
                    .map(|value| format!("{name}{value}"))
                    .collect()
            };
            names = names
                .iter()
                .flat_map(|name| -> Vec<String> { each(name) })
                .collect();
        }
        Some(names)
    }
}
