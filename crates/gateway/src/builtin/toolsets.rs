//! The built-in tools with which agents choose tools, and take notes about them.

use std::sync::Arc;

use callward::registry::{Catalogue, Entry};
use callward_toolset::{
    Line, Name, Note, Resolver, Snapshot, TOKEN_BUDGET, ToolRef, Toolset, hydrate, tokens,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Builtins, Context};
use crate::error::AppError;
use crate::toolsets::{Active, Toolsets, path_of};

/// How many of the tools that are not there are named.
const MAX_MISSING: usize = 8;

/// Adds the tools to their server.
pub(super) fn add(builtins: Builtins) -> Result<Builtins, AppError> {
    builtins
        .add("list-available-tools", list_available)?
        .add("build-toolset", build)?
        .add("equip-toolset", equip)?
        .add("unequip-toolset", unequip)?
        .add("get-active-toolset", get_active)?
        .add("add-tool-annotation", annotate)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Build {
    name: Name,
    description: Option<Line>,
    tools: Vec<ToolRef>,
    #[serde(default)]
    auto_equip: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Equip {
    name: Name,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Annotate {
    tool_ref: ToolRef,
    notes: Vec<Note>,
}

/// The toolsets, and what the caller sees of them now.
struct Seen {
    context: Context,
    toolsets: Arc<Toolsets>,
    all: Arc<Snapshot>,
    catalogue: Arc<Catalogue>,
    active: Option<Active>,
}

impl Seen {
    fn by(context: Context) -> Result<Self, String> {
        let toolsets = context.runtime.toolsets.clone();
        let toolsets = toolsets.ok_or("there are no toolsets")?;
        let catalogue = context.runtime.stack.catalogue();
        Ok(Self {
            all: toolsets.all(),
            active: toolsets.active(&catalogue, context.call.caller()),
            toolsets,
            catalogue,
            context,
        })
    }

    /// Finds the tools of references, unless the caller may not know of one.
    async fn find(&self, tools: Vec<ToolRef>) -> Result<Vec<Arc<Entry>>, String> {
        let catalogue = self.catalogue.clone();
        // to find one by its hash, those of all tools are computed
        let found = tokio::task::spawn_blocking(move || {
            let resolver = Resolver::new(&catalogue);
            let found = tools.into_iter();
            let found = found.map(|tool| (resolver.find(&tool).cloned(), tool));
            found.collect::<Vec<_>>()
        });
        let found = found.await.map_err(|error| error.to_string())?.into_iter();
        let found = found.map(|(found, tool)| {
            let found = found.filter(|entry| self.context.may_know(entry));
            found.ok_or_else(|| {
                let shown: String = tool.to_string().chars().take(200).collect();
                format!("no tool {shown:?}; list-available-tools has all tools")
            })
        });
        found.collect()
    }

    /// Sets what the caller sees, and says so, or which path to use.
    fn choose(&self, choice: Option<&Name>) -> Value {
        let caller = self.context.call.caller();
        let chosen = self.toolsets.choose(caller, choice.cloned());
        let toolsets = &self.all.file.toolsets;
        let default = toolsets.iter().find(|(_, it)| it.is_default_for(caller));
        let path = choice.map(|name| path_of(name.as_str()));
        let path = path.unwrap_or_else(|| callward_mcp::server::PATH.to_owned());
        let message = match (chosen, choice, default) {
            (true, ..) => "list the tools again".to_owned(),
            (_, None, Some((name, _))) => format!(
                "at {path} you see the toolset `{name}`, the operator's default: no path has all \
                 tools"
            ),
            _ if choice.is_none() && self.active.is_none() => "you see all tools".to_owned(),
            _ => format!("the list of this connection is fixed: connect to {path}"),
        };
        json!({"success": true, "applied": chosen, "path": path, "message": message})
    }

    fn describe(&self, name: &Name, toolset: &Toolset) -> Value {
        let active = self.active.as_ref();
        json!({
            "name": name,
            "description": toolset.description,
            "toolCount": toolset.tools.len(),
            "active": active.is_some_and(|active| active.name == *name),
            "path": path_of(name.as_str()),
        })
    }
}

/// Refers to a tool in every way.
fn shown(entry: &Entry) -> Value {
    let full = ToolRef::full(entry.tool());
    json!({
        "namespacedName": full.namespaced_name, "refId": full.ref_id,
        "server": entry.tool().set(),
    })
}

async fn list_available(context: Context, _: Nothing) -> Answer {
    // hashes of all tools take time
    let listed = tokio::task::spawn_blocking(move || {
        let catalogue = context.runtime.stack.catalogue();
        let entries = catalogue.entries().iter();
        let known: Vec<_> = entries.filter(|entry| context.may_know(entry)).collect();
        let of_server = |tools: &[&Arc<Entry>]| {
            let described = tools.iter().map(|entry| {
                let mut tool = shown(entry);
                tool["name"] = entry.client_name().into();
                tool["serverName"] = tool["server"].take();
                tool["description"] = json!(entry.description());
                tool
            });
            let described: Vec<_> = described.collect();
            json!({
                "serverName": tools.first().map(|entry| entry.tool().set()),
                "toolCount": tools.len(), "tools": described,
            })
        };
        let servers = known.chunk_by(|a, b| a.tool().set() == b.tool().set());
        let servers: Vec<_> = servers.map(of_server).collect();
        json!({
            "summary": {"totalTools": known.len(), "totalServers": servers.len()},
            "toolsByServer": servers,
        })
    });
    listed.await.map_err(|error| error.to_string())
}

async fn build(context: Context, asked: Build) -> Answer {
    let seen = Seen::by(context)?;
    let (name, toolset) = (asked.name, Toolset::new(asked.description, asked.tools));
    let mut toolset = toolset.map_err(|error| error.to_string())?;
    let found = seen.find(toolset.tools.clone()).await?;
    let mut tools = Vec::new();
    for (tool, entry) in toolset.tools.iter().zip(&found) {
        // a hash is that of one name, by which the tool is found at once
        let stored = match tool.ref_id {
            Some(_) => ToolRef::full(entry.tool()),
            None => tool.to_tool(entry.tool()),
        };
        if !tools.contains(&stored) {
            tools.push(stored);
        }
    }
    toolset.tools = tools;
    let described = seen.describe(&name, &toolset);
    let added = name.clone();
    seen.toolsets
        .change(move |all| all.add(added, toolset))
        .await?;
    let equipped = asked.auto_equip && seen.choose(Some(&name))["applied"] == true;
    Ok(json!({
        "meta": {"success": true, "toolsetName": name, "autoEquipped": equipped},
        "toolset": described,
    }))
}

async fn equip(context: Context, Equip { name }: Equip) -> Answer {
    let seen = Seen::by(context)?;
    if !seen.all.file.toolsets.contains_key(&name) {
        return Err(format!(
            "no toolset is called `{name}`; get-active-toolset has all toolsets"
        ));
    }
    Ok(seen.choose(Some(&name)))
}

async fn unequip(context: Context, _: Nothing) -> Answer {
    Ok(Seen::by(context)?.choose(None))
}

async fn get_active(context: Context, _: Nothing) -> Answer {
    let seen = Seen::by(context)?;
    let (mut toolset, mut warnings) = (Value::Null, Vec::new());
    if let Some(active) = &seen.active {
        let found = seen.all.file.toolsets.get(active.name.as_str());
        toolset = found.map_or(Value::Null, |found| seen.describe(&active.name, found));
        let entries = seen.catalogue.entries().iter();
        let exposed =
            entries.filter(|entry| seen.context.may_know(entry) && active.listed(entry).is_some());
        toolset["tools"] = exposed.map(|entry| shown(entry)).collect();
        let missing = active.view.missing();
        match missing.len() {
            _ if found.is_none() => warnings.push(format!("`{}` was deleted", active.name)),
            0 => {}
            count => {
                let mut warning = format!("{count} of its tools are not there now");
                // rules may hide what the names tell of
                if seen.context.runtime.stack.policy().is_none() {
                    let named = missing.iter().take(MAX_MISSING).map(ToString::to_string);
                    warning += &format!(": {}", named.collect::<Vec<_>>().join(", "));
                }
                warnings.push(warning);
            }
        }
    }
    let all = seen.all.file.toolsets.iter();
    Ok(json!({
        "equipped": seen.active.is_some(),
        "toolset": toolset,
        "toolsets": all.map(|(name, toolset)| seen.describe(name, toolset)).collect::<Vec<_>>(),
        "warnings": warnings,
    }))
}

async fn annotate(context: Context, asked: Annotate) -> Answer {
    let seen = Seen::by(context)?;
    let active = seen.active.as_ref();
    let active = active.ok_or("no toolset is equipped: equip one, or connect to its path")?;
    let found = seen.find(vec![asked.tool_ref.clone()]).await?;
    let entry = found.first().ok_or("no tool")?;
    let full = ToolRef::full(entry.tool());
    if active.listed(entry).is_none() {
        return Err(format!(
            "the tool `{full}` is not in the toolset `{}`",
            active.name
        ));
    }
    // without members that are not known
    let notes = asked.notes.into_iter().map(Note::only_known);
    let notes: Vec<_> = notes.collect();
    let (name, tool, given) = (active.name.clone(), full.clone(), notes.clone());
    let stored = asked.tool_ref.to_tool(entry.tool());
    let changed = seen.toolsets.change(move |all| {
        let toolset = all.get_mut(&name)?;
        let added = toolset.add_notes(&stored, &tool, given)?;
        Ok((added, tokens(&hydrate(None, &toolset.notes_of(&tool)))))
    });
    let (added, size) = changed.await?;
    // of two equal ones, one is added
    let mut left: Vec<_> = added.iter().collect();
    let skipped = notes.iter().filter(|note| {
        let place = left.iter().position(|added| added == note);
        place.map(|place| left.swap_remove(place)).is_none()
    });
    let mut warnings: Vec<_> = skipped
        .map(|note| format!("the annotation `{}` exists already: skipped", note.name))
        .collect();
    let errors = notes.len() - added.len();
    if size > TOKEN_BUDGET {
        warnings.push(format!(
            "the annotations of `{full}` take about {size} tokens, more than {TOKEN_BUDGET}"
        ));
    }
    Ok(json!({
        "toolset": active.name, "tool": shown(entry), "addedNotes": added,
        "successCount": added.len(), "errorCount": errors, "warnings": warnings,
    }))
}
