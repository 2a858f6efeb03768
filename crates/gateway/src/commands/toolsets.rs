//! `callward toolsets` and `callward notes`: the file of toolsets, beside a gateway that may run.

use std::process::ExitCode;

use callward_toolset::{Note, Store, ToolRef, Toolset, ToolsetError};
use serde_json::json;

use crate::args::{Notes, NotesCommand, ToolsetFile, Toolsets, ToolsetsCommand};
use crate::commands::approvals::list;
use crate::commands::serve::default_file;
use crate::config::{Config, Servers};
use crate::error::{AppError, Outcome};
use crate::state_dir::StateDir;
use crate::toolsets::{self, path_of};
use crate::{api, output};

pub(crate) async fn toolsets(args: Toolsets, state: Option<&StateDir>) -> Outcome {
    let (store, as_json) = (open(&args.file, state)?, args.file.json);
    let command = args.command.unwrap_or(ToolsetsCommand::List);
    if let ToolsetsCommand::Build { tools, .. } = &command {
        warn_of_unknown(tools, &args.file, state).await;
    }
    super::on_a_thread(move || {
        match command {
            ToolsetsCommand::List => {}
            ToolsetsCommand::Build {
                name,
                tools,
                description,
            } => {
                let tools = tools.iter().map(|tool| ToolRef::parse(tool)).collect();
                let toolset = Toolset::new(description, tools)?;
                store.change(|all| all.add(name, toolset))?;
            }
            ToolsetsCommand::Delete { name } => {
                store.change(|all| match all.toolsets.remove(&name) {
                    Some(_) => Ok(()),
                    None => Err(ToolsetError::NoToolset(name)),
                })?;
            }
        }
        let all = store.toolsets();
        let rows = all.file.toolsets.iter().map(|(name, toolset)| {
            let notes: usize = toolset.tool_notes.iter().map(|it| it.notes.len()).sum();
            json!({
                "name": name, "tools": toolset.tools.len(), "notes": notes,
                "path": path_of(name.as_str()), "description": toolset.description,
            })
        });
        list(
            rows.collect(),
            "name tools notes path description",
            "there are no toolsets",
            as_json,
        );
        Ok(ExitCode::SUCCESS)
    })
    .await
}

pub(crate) async fn notes(args: Notes, state: Option<&StateDir>) -> Outcome {
    let (store, as_json) = (open(&args.file, state)?, args.file.json);
    let command = args.command.unwrap_or(NotesCommand::List);
    if let NotesCommand::Set { tool, .. } = &command {
        warn_of_unknown(std::slice::from_ref(tool), &args.file, state).await;
    }
    super::on_a_thread(move || {
        match command {
            NotesCommand::List => {}
            NotesCommand::Set {
                toolset,
                tool,
                name,
                text,
            } => {
                let (tool, note) = (ToolRef::parse(&tool), Note::new(name, text));
                store.change(|all| all.get_mut(&toolset)?.set_note(&tool, note))?;
            }
            NotesCommand::Remove {
                toolset,
                tool,
                name,
            } => {
                let tool = ToolRef::parse(&tool);
                store.change(|all| {
                    match all.get_mut(&toolset)?.remove_notes(&tool, name.as_ref()) {
                        0 => Err(ToolsetError::NoNote(toolset.clone())),
                        _ => Ok(()),
                    }
                })?;
            }
        }
        let (all, mut rows) = (store.toolsets(), Vec::new());
        for (toolset, it) in all.file.toolsets.iter() {
            for of_tool in &it.tool_notes {
                let tool = of_tool.tool_ref.to_string();
                rows.extend(of_tool.notes.iter().map(|note| {
                    json!({
                        "toolset": toolset, "tool": tool, "name": note.name, "note": note.note,
                    })
                }));
            }
        }
        list(
            rows.into(),
            "toolset tool name note",
            "there are no notes",
            as_json,
        );
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// Warns of names that no tool has of the gateway that runs with the config, if there is one.
async fn warn_of_unknown(tools: &[String], file: &ToolsetFile, state: Option<&StateDir>) {
    let config = file.config.clone().or_else(default_file);
    let is_name = |tool: &&String| ToolRef::parse(tool).ref_id.is_none();
    if let Ok((Some(remote), _)) = api::find(None, config.as_deref(), state).await {
        for tool in tools.iter().filter(is_name) {
            match remote.explain(tool, None, &[]).await {
                Err(AppError::Remote(why)) if why.starts_with("no tool ") => output::warning(&why),
                _ => {}
            }
        }
    }
}

fn open(args: &ToolsetFile, state: Option<&StateDir>) -> Result<Store, AppError> {
    let file = args.config.clone().or_else(default_file).ok_or_else(|| {
        let why = "which config? name the file of the gateway with --config";
        AppError::Usage(why.to_owned())
    })?;
    let config = Config::load(&file, Servers::Any)?;
    if !config.toolsets.enabled {
        let file = file.display();
        output::warning(&format_args!(
            "{file}: without `toolsets.enabled`, no client sees them"
        ));
    }
    Ok(Store::open(toolsets::file(&config, Some(&file), state)?)?)
}
